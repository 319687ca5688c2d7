"""A GRPO run of TRL on a tiny random model with RubricReward: rewards, criteria and skipped rows reach its logs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import pytest

from rubricate.chat import ChatRequest, FailRate, MockModel
from rubricate.errors import ServerError
from rubricate.judges import CriteriaJudge, build_judge
from rubricate.rewardmodels import RubricReward
from rubricate.rubrics import Criterion, Rubric, VerifierSpec

WORDS = ("red", "green", "blue", "cat", "dog", "sun", "moon", "tea", ".")
SPECIAL = ("<pad>", "<eos>", "<user>", "<assistant>")
TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} <eos> {% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)
RUBRIC = Rubric(
    criteria=(
        Criterion(
            id="colour",
            text="It names a colour.",
            weight=2,
            channel="content",
            verifier=VerifierSpec(name="required", args={"phrases": ["red", "green", "blue"], "min": 1}),
        ),
        Criterion(
            id="short",
            text="It has at most six words.",
            channel="form",
            verifier=VerifierSpec(name="words", args={"max": 6}),
        ),
        Criterion(id="nice", text="It is nice.", channel="content"),
    )
)


# TRL 1.16 still reads an attribute that transformers 5.24 has renamed.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


class Trainer(Protocol):
    """TRL's trainer, as far as it is used here."""

    state: State

    def train(self) -> object: ...


class State(Protocol):
    log_history: list[dict[str, float]]


class Table(Protocol):
    """An Arrow table."""

    def to_pylist(self) -> list[dict[str, object]]: ...


def taste(request: ChatRequest) -> float:
    """P(yes) of the mock judge: no one knows why, but always the same for the same text."""
    return hashlib.sha256(request.text().encode()).digest()[0] / 255


def flaky() -> CriteriaJudge:
    """Hard rules by verifiers, the rest by a mock model of which one call in four fails."""
    error = ServerError("503 from the judge", status=503, retryable=False)  # or the limiter would heal it
    return build_judge(MockModel(p_yes=taste, fail=FailRate(0.25, seed=1, error=error)), mode="logprob")


def call(module: str, name: str, *args: object, **kwargs: object) -> object:
    """`module.name(*args, **kwargs)`, imported here and not before."""
    found = cast("Callable[..., object]", getattr(import_module(module), name))
    return found(*args, **kwargs)


def tokenizer() -> object:
    vocabulary = {word: index for index, word in enumerate((*SPECIAL, *WORDS))}
    core = call("tokenizers", "Tokenizer", call("tokenizers.models", "WordLevel", vocabulary, unk_token="."))
    setattr(core, "pre_tokenizer", call("tokenizers.pre_tokenizers", "WhitespaceSplit"))  # noqa: B010 # untyped
    return call(
        "transformers",
        "PreTrainedTokenizerFast",
        tokenizer_object=core,
        pad_token="<pad>",
        eos_token="<eos>",
        additional_special_tokens=["<user>", "<assistant>"],
        chat_template=TEMPLATE,
    )


def model() -> object:
    call("torch", "manual_seed", 0)
    config = call(
        "transformers",
        "Qwen3Config",
        vocab_size=len(SPECIAL) + len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=64,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return call("transformers", "Qwen3ForCausalLM", config)


def run(reward: object, folder: Path, *, steps: int, **columns: Sequence[object]) -> list[dict[str, float]]:
    """Some GRPO steps of 8 completions, groups of 4; the log entry of each step."""
    prompts = [[{"role": "user", "content": f"{word} ."}] for word in WORDS[:-1]]
    dataset = cast("Callable[[Mapping[str, object]], object]", import_module("datasets").Dataset.from_dict)
    args = call(
        "trl",
        "GRPOConfig",
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        max_steps=steps,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=8,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        disable_tqdm=True,
        log_completions=True,
        seed=1,
    )
    trainer = cast(
        "Trainer",
        call(
            "trl",
            "GRPOTrainer",
            model=model(),
            reward_funcs=[reward],
            args=args,
            train_dataset=dataset({"prompt": prompts, **columns}),
            processing_class=tokenizer(),
        ),
    )
    trainer.train()
    return [entry for entry in trainer.state.log_history if "reward" in entry]


def completions(folder: Path) -> list[dict[str, object]]:
    """TRL's table of completions, all steps together."""
    read = cast("Callable[[str], Table]", import_module("pyarrow.parquet").read_table)
    return [row for path in sorted(folder.glob("completions/*.parquet")) for row in read(str(path)).to_pylist()]


def check_masked(entry: Mapping[str, float], rows: Sequence[Mapping[str, object]]) -> None:
    """The skipped rows of a step are in its log, and its mean reward is that of the others."""
    unscored = [row for row in rows if row["rubric/status"] == "unscored"]
    scored = [cast("float", row["rubric"]) for row in rows if row["rubric/status"] == "ok"]
    assert len(unscored) + len(scored) == len(rows) == 8
    assert entry["rubric/unscored"] == pytest.approx(len(unscored) / 8)
    assert entry["rewards/rubric/mean"] == pytest.approx(math.fsum(scored) / len(scored), abs=1e-6)
    assert entry["rubric/criterion/short"] == pytest.approx(
        math.fsum(cast("float", row["rubric/criterion/short"]) for row in rows) / 8, abs=1e-6
    )
    for row in unscored:
        assert row["advantage"] == 0.0
        assert row["rubric/criterion/nice"] is None
        assert "503" in str(row["rubric/failure"])


def test_five_steps_with_a_judge_that_fails_one_time_in_four(tmp_path: Path) -> None:
    reward = RubricReward(flaky(), RUBRIC, name="rubric", num_generations=4)
    history = run(reward, tmp_path, steps=5)
    rows = completions(tmp_path)
    assert len(history) == 5
    assert len(rows) == 40
    assert 0 < sum(row["rubric/status"] == "unscored" for row in rows) < 40
    for index, entry in enumerate(history):
        check_masked(entry, [row for row in rows if row["step"] == index + 1])
        assert {"rubric/criterion/colour", "rubric/channel/content", "rubric/coverage"} <= entry.keys()
        assert math.isfinite(entry["loss"])
    for row in rows:
        scores = [row[f"rubric/criterion/{name}"] for name in RUBRIC.ids]
        if row["rubric/status"] == "ok":
            colour, short, nice = (cast("float", score) for score in scores)
            assert row["rubric"] == pytest.approx((2 * colour + short + nice) / 4)


def test_the_async_twin_with_rubrics_from_a_column(tmp_path: Path) -> None:
    record = json.dumps({"criteria": [c.model_dump(mode="json") for c in RUBRIC.criteria]})
    reward = RubricReward(flaky(), name="rubric", channels=["content", "form"]).as_async()
    history = run(
        reward, tmp_path, steps=2, rubric=[record] * (len(WORDS) - 1), solution=["red"] * (len(WORDS) - 1)
    )
    assert len(history) == 2
    assert all(0.0 <= entry["rewards/rubric/mean"] <= 1.0 for entry in history)
    assert all("rubric/channel/form" in entry and "rubric/criterion/short" not in entry for entry in history)
