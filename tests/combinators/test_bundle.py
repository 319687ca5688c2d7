"""Judge bundles: what comes back, what is refused, and that every change of a file is noticed and named."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from judging import one_token

from rubricate.chat import ChatRequest, Completion, MockModel, connect
from rubricate.chat.limited import innermost
from rubricate.chat.local import LocalModel, LocalOptions
from rubricate.chat.vllm import VllmModel
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, FormatError
from rubricate.judges import CriterionJudge, HolisticJudge, LikertJudge, LogprobJudge, Router, ScriptedJudge
from rubricate.judges.arrow import ArrowJudge
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.bundle import load_judge, read_bundle, save_bundle
from rubricate.judges.bundle_files import bundle_folders
from rubricate.judges.calibrated import Calibrated
from rubricate.judges.calibration import fit_calibration
from rubricate.judges.decisions import DecisionsJudge
from rubricate.judges.fewshot import Example, Examples
from rubricate.judges.geval import ExpectationJudge, HolisticExpectationJudge
from rubricate.judges.rating import RatingJudge
from rubricate.judges.repeated import Repeated
from rubricate.judges.slots import SlotsJudge
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import Criterion, VerifierSpec
from rubricate.types import fingerprint

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
ONE = Criterion(id="a", text="Names a bird.")
EXAMPLES = Examples([Example(ROLLOUT, ONE, "met"), Example(Rollout("P", "R"), ONE, "unmet")], k=2)


def calibrated(judge: CriteriaJudge) -> Calibrated:
    rng = random.Random(0)
    labels = [rng.random() < 0.6 for _ in range(60)]
    return Calibrated(judge, fit_calibration(judge, [0.6 + 0.3 * label for label in labels], labels))


def logprob(name: str = "mock:p=0.9") -> LogprobJudge:
    return LogprobJudge(connect(name), max_outside=0.4, view="trajectory", run_key="mine", examples=EXAMPLES)


@pytest.mark.parametrize(
    "make",
    [
        logprob,
        lambda: calibrated(logprob()),
        lambda: CriterionJudge(connect("mock:yes"), criteria_per_call=None, temperature=0.5, seed=3, sample=2),
        lambda: CriterionJudge(connect("mock:yes"), examples=EXAMPLES, max_chars=1000),
        lambda: CriterionJudge(
            connect("mock:yes"), prompt=Prompt("my own", load_prompt("criterion_judge").source + "\n")
        ),
        lambda: RatingJudge(connect("mock:yes"), top_p=0.5),
        lambda: HolisticJudge(connect("mock:yes"), max_attempts=2, show_reference=False),
        lambda: LikertJudge(connect("mock:yes")),
        lambda: LogprobJudge(connect("mock:yes"), yes=("Oui", "vrai"), no=["non"]),
        lambda: SlotsJudge(connect("mock:yes"), questions_per_call=3, filler="?"),
        lambda: calibrated(ArrowJudge(connect("mock:yes"), text_verdicts=True, temperature=0.5, sample=1)),
        lambda: ExpectationJudge(connect("mock:yes"), top_logprobs=12),
        lambda: HolisticExpectationJudge(connect("mock:yes"), low=0, high=5, with_rubric=False),
        lambda: DecisionsJudge(connect("decisions:http://localhost:1/v1#small"), questions_per_call=9, sample=2),
    ],
)
def test_the_same_judge_comes_back(tmp_path: Path, make: Callable[[], CriteriaJudge]) -> None:
    judge = make()
    bundle = save_bundle(judge, tmp_path / "judge")
    again = load_judge(bundle.path)
    assert type(again) is type(judge) and again.fingerprint == judge.fingerprint
    assert [entry.name for entry in tmp_path.iterdir()] == ["judge"]


async def test_it_says_the_same(tmp_path: Path) -> None:
    judge = calibrated(logprob())
    save_bundle(judge, tmp_path / "judge")
    said = await load_judge(f"bundle:{tmp_path / 'judge'}").judge_criteria(ROLLOUT, [ONE])
    assert said == await judge.judge_criteria(ROLLOUT, [ONE])
    assert said.verdicts[0].probability not in (None, 0.9)


async def test_criteria_with_a_verifier_go_to_code_where_asked_for(tmp_path: Path) -> None:
    save_bundle(logprob(), tmp_path / "judge")
    judge = load_judge(tmp_path / "judge", verifiers=True)
    assert isinstance(judge, Router)
    coded = Criterion(id="c", text="Is short.", verifier=VerifierSpec(name="words", args={"max": 9}))
    said = await judge.judge_criteria(ROLLOUT, [coded, ONE])
    assert [verdict.judge for verdict in said.verdicts] == ["verifier:words", logprob().name]


async def test_another_run_key_and_a_model_that_is_connected_already(tmp_path: Path) -> None:
    save_bundle(calibrated(logprob()), tmp_path / "judge")
    model = connect("mock:p=0.9")
    judge = load_judge(tmp_path / "judge", model=model, run_key="secret")
    assert isinstance(judge, Calibrated) and isinstance(judge.inner, LogprobJudge)
    assert judge.inner.model is model and judge.inner.run_key == "secret"
    assert judge.fingerprint != calibrated(logprob()).fingerprint
    assert (await judge.judge_criteria(ROLLOUT, [ONE])).verdicts[0].score is not None


def test_another_model_is_an_error(tmp_path: Path) -> None:
    save_bundle(logprob(), tmp_path / "judge")
    with pytest.raises(ConfigError, match="not the one that the judge judge was saved with"):
        load_judge(tmp_path / "judge", model=connect("mock:p=0.8"))


@pytest.mark.parametrize("name", ["prompt.jinja2", "examples.jsonl", "calibration.json", "bundle.json"])
def test_a_changed_file_is_named(tmp_path: Path, name: str) -> None:
    bundle = save_bundle(calibrated(logprob()), tmp_path / "judge")
    path = bundle.path / name
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace('"logprob"', '"rating"') if name == "bundle.json" else text + "\n", encoding="utf-8"
    )
    with pytest.raises(FormatError, match=rf"{name}.*(this file|judge bundle) was changed"):
        load_judge(bundle.path)


async def test_label_words_are_asked_for_and_read_after_loading(tmp_path: Path) -> None:
    asked: list[ChatRequest] = []

    def french(request: ChatRequest) -> Completion:
        asked.append(request)
        return one_token(("Oui", 0.7), ("non", 0.2), ("yes", 0.1))

    judge = LogprobJudge(MockModel(french, name="mock:yes"), yes=("oui",), no=("non",), examples=EXAMPLES)
    verdict = (await judge.judge_criteria(ROLLOUT, [ONE])).verdicts[0]
    assert verdict.probability == pytest.approx(0.7 / 0.9) and verdict.raw == "oui"
    text = asked[0].text()
    assert "one word: oui or non." in text and "Answer oui or non." in text and " yes" not in text
    saved = LogprobJudge(connect("mock:yes"), yes=("oui",), no=("non",), examples=EXAMPLES)
    loaded = load_judge(save_bundle(saved, tmp_path / "judge").path)
    assert isinstance(loaded, LogprobJudge) and (loaded.yes, loaded.no) == (("oui",), ("non",))
    assert loaded.fingerprint != LogprobJudge(connect("mock:yes"), examples=EXAMPLES).fingerprint


@pytest.mark.parametrize(
    ("yes", "no"),
    [("yes", ["no"]), ([], ["no"]), (["yes"], ["no", " "]), (["yes"], ["no."]), (["a", "b"], ["A"])],
)
def test_label_words_that_cannot_be_read_are_refused(yes: Sequence[str], no: Sequence[str]) -> None:
    with pytest.raises(ConfigError, match="yes|no"):
        LogprobJudge(MockModel("yes"), yes=yes, no=no)


def test_a_decisions_server_is_saved_with_its_options_where_they_are_named(tmp_path: Path) -> None:
    name = "decisions:http://localhost:1/v1#small?dialect=sglang"
    judge = DecisionsJudge(connect(name))
    with pytest.raises(ConfigError, match="not the one"):
        save_bundle(judge, tmp_path / "judge")
    save_bundle(judge, tmp_path / "judge", model=name)
    assert load_judge(tmp_path / "judge").fingerprint == judge.fingerprint
    with pytest.raises(ConfigError, match="another model tomorrow"):
        save_bundle(DecisionsJudge(connect("decisions:http://localhost:1/v1")), tmp_path / "other")


def test_a_missing_file_a_new_one_and_a_link_are_named(tmp_path: Path) -> None:
    bundle = save_bundle(calibrated(logprob()), tmp_path / "judge")
    (bundle.path / "README.md").write_text("notes do no harm", encoding="utf-8")
    load_judge(bundle.path)
    (bundle.path / "adapter").mkdir()
    (bundle.path / "adapter" / "adapter_model.bin").write_bytes(b"x")
    with pytest.raises(FormatError, match="adapter_model.bin.*has come since"):
        load_judge(bundle.path)
    (bundle.path / "adapter" / "adapter_model.bin").unlink()
    (bundle.path / "calibration.json").unlink()
    with pytest.raises(FormatError, match="calibration.json.*is missing"):
        load_judge(bundle.path)
    (bundle.path / "calibration.json").symlink_to("/etc/hostname")
    with pytest.raises(FormatError, match="holds no links"):
        load_judge(bundle.path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", 2, "reads format 1"),
        ("kind", "oracle", "knows criterion"),
        ("view", "everything", "expected one of"),
        ("layout", "criterion_first", "layout differ"),
        ("options", {"prefill": ""}, "unknown or missing"),
        ("model", "mock:yes", "expected an object"),
        ("examples", {"k": "two"}, "expected k and seed"),
    ],
)
def test_a_manifest_from_elsewhere(tmp_path: Path, field: str, value: object, message: str) -> None:
    """One whose fingerprint is right, but which this version cannot honour."""
    bundle = save_bundle(logprob(), tmp_path / "judge")
    path = bundle.path / "bundle.json"
    record = {**json.loads(path.read_text(encoding="utf-8")), field: value}
    record.pop("fingerprint")
    path.write_text(json.dumps({**record, "fingerprint": fingerprint(record)}), encoding="utf-8")
    with pytest.raises((ConfigError, FormatError), match=message):
        load_judge(bundle.path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": NaN}'])
def test_a_broken_manifest(tmp_path: Path, text: str) -> None:
    bundle = save_bundle(logprob(), tmp_path / "judge")
    (bundle.path / "bundle.json").write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match="bundle.json"):
        load_judge(bundle.path)


def test_a_folder_here_never_takes_the_place_of_a_named_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("named", "here"):
        (tmp_path / name).mkdir()
        save_bundle(logprob(f"mock:p={0.1 if name == 'here' else 0.9}"), tmp_path / name / "j")
    monkeypatch.setenv("RUBRICATE_JUDGES", str(tmp_path / "named"))
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ConfigError, match="two judge bundles 'j'"):
        load_judge("j")
    assert load_judge("./j").fingerprint == logprob("mock:p=0.1").fingerprint


def test_names_are_looked_up_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUBRICATE_JUDGES", str(tmp_path))
    judge = logprob()
    save_bundle(judge, tmp_path / "small-1")
    assert load_judge("small-1").fingerprint == load_judge("bundle:small-1").fingerprint == judge.fingerprint
    with pytest.raises(ConfigError, match="no judge bundle 'small-2'") as caught:
        load_judge("small-2")
    assert "small-1" in caught.value.hint
    with pytest.raises(ConfigError, match="no judge bundle at"):
        load_judge("../small-1")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="is no judge bundle"):
        load_judge(tmp_path / "empty")
    monkeypatch.delenv("RUBRICATE_JUDGES")
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert bundle_folders()[0] == Path("/somewhere/rubricate/judges")


def test_places_that_are_taken(tmp_path: Path) -> None:
    first, second = logprob(), logprob("mock:p=0.8")
    save_bundle(first, tmp_path / "judge")
    with pytest.raises(ConfigError, match="exists already"):
        save_bundle(second, tmp_path / "judge")
    save_bundle(second, tmp_path / "judge", overwrite=True)
    assert load_judge(tmp_path / "judge").fingerprint == second.fingerprint
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years", encoding="utf-8")
    with pytest.raises(ConfigError, match="exists already"):
        save_bundle(first, precious, overwrite=True)
    assert (precious / "thesis.txt").exists()
    with pytest.raises(ConfigError, match="does not exist"):
        save_bundle(first, tmp_path / "no" / "judge")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["judge", "precious"]


def test_what_cannot_come_back_is_not_saved(tmp_path: Path) -> None:
    for judge, message in (
        (ScriptedJudge(), "cannot be saved"),
        (Repeated(RatingJudge(connect("mock:yes")), n=2), "cannot be saved"),
        (LogprobJudge(connect("mock:yes"), view=lambda rollout: "x"), "view of one's own"),
        (LogprobJudge(connect("http://localhost:1/v1")), "another model tomorrow"),
        (LogprobJudge(MockModel(one_token(("yes", 1.0)), name="mock:yes")), "not the one"),
        (LogprobJudge(MockModel("yes", name="mine")), "does not name a model"),
    ):
        with pytest.raises(ConfigError, match=message):
            save_bundle(judge, tmp_path / "judge")
    with pytest.raises(ConfigError, match="weights of mock"):
        save_bundle(logprob(), tmp_path / "judge", weights=True)
    assert not list(tmp_path.iterdir())


def test_a_server_is_saved_by_address_and_name(tmp_path: Path) -> None:
    judge = LogprobJudge(connect("http://localhost:1/v1#small"))
    bundle = save_bundle(judge, tmp_path / "judge")
    assert bundle.model.endswith("#small") and read_bundle(bundle.path).judge().fingerprint == judge.fingerprint


def local(tmp_path: Path, name: str = "") -> LogprobJudge:
    """A judge on a local model whose files are there, but are no weights: nothing loads them here."""
    for folder, config in (("model", "config.json"), ("lora", "adapter_config.json")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / config).write_text("{}", encoding="utf-8")
        (tmp_path / folder / "weights.safetensors").write_bytes(folder.encode() * 9)
    options = LocalOptions(adapter=str(tmp_path / "lora"), dtype="float32", device="cpu")
    return LogprobJudge(LocalModel(str(tmp_path / "model"), options, name=name))


def test_an_adapter_lies_in_the_bundle_and_weights_where_asked_for(tmp_path: Path) -> None:
    judge = local(tmp_path)
    thin = save_bundle(judge, tmp_path / "thin")
    whole = save_bundle(judge, tmp_path / "whole dir", weights=True)
    (tmp_path / "lora").rename(tmp_path / "gone")
    (tmp_path / "deep").mkdir()
    for bundle in (thin, whole):
        moved = bundle.path.rename(tmp_path / "deep" / bundle.path.name)
        again = load_judge(moved)
        assert again.fingerprint == judge.fingerprint and isinstance(again, LogprobJudge)
    (tmp_path / "model").rename(tmp_path / "lost")
    assert load_judge(tmp_path / "deep" / "whole dir").fingerprint == judge.fingerprint
    with pytest.raises(ConfigError, match="no local model"):
        load_judge(tmp_path / "deep" / "thin")
    weights = tmp_path / "deep" / "whole dir" / "adapter" / "weights.safetensors"
    weights.write_bytes(b"trained a little longer")
    with pytest.raises(FormatError, match="weights.safetensors.*was changed"):
        load_judge(tmp_path / "deep" / "whole dir")


def test_changed_weights_outside_the_bundle_are_another_model(tmp_path: Path) -> None:
    save_bundle(local(tmp_path), tmp_path / "judge")
    (tmp_path / "model" / "weights.safetensors").write_bytes(b"other weights")
    with pytest.raises(ConfigError, match="its weights, adapter, dtype or address changed"):
        load_judge(tmp_path / "judge")


@pytest.fixture
def _vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM's back end without vLLM: nothing here starts its engine."""
    monkeypatch.setattr("rubricate.chat.vllm.require_vllm", lambda: None)


@pytest.mark.usefixtures("_vllm")
@pytest.mark.parametrize("weights", [False, True])
async def test_what_was_saved_on_one_back_end_loads_on_the_other(tmp_path: Path, weights: bool) -> None:
    bundle = save_bundle(calibrated(local(tmp_path)), tmp_path / "judge", weights=weights)
    (tmp_path / "lora").rename(tmp_path / "gone")
    judge = load_judge(bundle.path, backend="vllm")
    assert isinstance(judge, Calibrated) and isinstance(judge.inner, LogprobJudge)
    model = innermost(judge.inner.model)
    assert isinstance(model, VllmModel) and model.options.dtype == "float32"
    assert model.options.adapter == str(bundle.path / "adapter")
    assert judge.inner.prompt.fingerprint == local(tmp_path / "other").prompt.fingerprint
    # the reward tells the two judges apart, and a reason says where the calibration comes from
    assert judge.fingerprint != load_judge(bundle.path).fingerprint
    judge.inner.model = MockModel(p_yes=0.9)
    verdict = (await judge.judge_criteria(ROLLOUT, [ONE])).verdicts[0]
    assert verdict.probability == judge.calibration(0.9)
    assert verdict.reason == "[P 0.900 before calibration, fitted on another back end]"
    with pytest.raises(ConfigError, match="fitted on another back end"):
        save_bundle(judge, tmp_path / "again")


@pytest.mark.usefixtures("_vllm")
def test_what_was_saved_with_vllm_runs_on_the_local_back_end(tmp_path: Path) -> None:
    inner = innermost(local(tmp_path).model)
    assert isinstance(inner, LocalModel)
    name = f"vllm:{tmp_path / 'model'}?eager=true&max_model_len=512&gpu_memory=0.3"
    judge = LogprobJudge(connect(name, adapter=inner.options.adapter, engine={"block_size": 8}))
    bundle = save_bundle(judge, tmp_path / "judge")
    same = innermost(bundle.connect())
    assert isinstance(same, VllmModel) and same.fingerprint == judge.model.fingerprint
    assert same.options.engine == {"block_size": 8} and same.options.max_model_len == 512
    assert same.options.gpu_memory == 0.9  # this is the machine's
    there = innermost(bundle.connect(backend="local", options={"dtype": "float32", "device": "cpu"}))
    assert isinstance(there, LocalModel) and there.options.dtype == "float32"
    loaded = bundle.judge(there)
    assert loaded.fingerprint != judge.fingerprint == bundle.judge(same).fingerprint


@pytest.mark.usefixtures("_vllm")
def test_another_back_end_is_no_way_to_other_weights(tmp_path: Path) -> None:
    bundle = save_bundle(local(tmp_path), tmp_path / "judge")
    bare = connect(f"vllm:{tmp_path / 'model'}?dtype=float32")
    with pytest.raises(ConfigError, match="not the one"):
        bundle.judge(bare)  # without the adapter
    with pytest.raises(ConfigError, match="not the one"):  # on its own back end the dtype counts
        bundle.judge(bundle.connect(options={"dtype": "bfloat16"}))
    with pytest.raises(ConfigError, match="not both"):
        bundle.judge(bare, backend="vllm")
    for backend in ("openai", "http", "mock"):
        with pytest.raises(ConfigError, match="cannot run on"):
            load_judge(bundle.path, backend=backend)
    (tmp_path / "model" / "weights.safetensors").write_bytes(b"other weights")
    with pytest.raises(ConfigError, match="not the one"):
        load_judge(bundle.path, backend="vllm")
    server = save_bundle(LogprobJudge(connect("http://localhost:1/v1#small")), tmp_path / "server")
    with pytest.raises(ConfigError, match="cannot run on 'vllm'"):
        server.connect(backend="vllm")


def test_bundles_that_ship_with_the_package_come_after_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shipped(package: str) -> Path:
        assert package == "rubricate.judges"
        return tmp_path / "package"

    monkeypatch.setenv("RUBRICATE_JUDGES", str(tmp_path / "mine"))
    monkeypatch.setattr("rubricate.judges.bundle_files.files", shipped)
    for folder in ("package/bundles", "mine"):
        (tmp_path / folder).mkdir(parents=True)
    first, second = logprob(), logprob("mock:p=0.8")
    save_bundle(first, tmp_path / "package" / "bundles" / "small")
    assert load_judge("small").fingerprint == first.fingerprint
    save_bundle(second, tmp_path / "mine" / "small")
    assert load_judge("small").fingerprint == second.fingerprint


def test_bundles_need_no_torch() -> None:
    code = (
        "import sys, rubricate.judges.bundle; sys.exit(bool({'torch', 'transformers', 'vllm'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_local_model_with_a_name_of_ones_own(tmp_path: Path) -> None:
    judge = local(tmp_path, name="mine")
    with pytest.raises(ConfigError, match="does not tell where"):
        save_bundle(judge, tmp_path / "judge")
    save_bundle(judge, tmp_path / "judge", model=f"local:{tmp_path / 'model'}")
    assert load_judge(tmp_path / "judge").fingerprint == judge.fingerprint


def rewrite(folder: Path, **changes: object) -> None:
    """Change a manifest, and make it look untouched."""
    record = json.loads((folder / "bundle.json").read_text(encoding="utf-8")) | changes
    record.pop("fingerprint")
    (folder / "bundle.json").write_text(
        json.dumps({**record, "fingerprint": fingerprint(record)}), encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"calibration": "../calibration.json"}, "calibration"),
        ({"calibration": "/tmp/calibration.json"}, "calibration"),
        ({"calibration": 3}, "calibration"),
        ({"model": {"name": "local:x", "weights": "../model"}}, "model.weights"),
        ({"model": {"name": "local:x", "weights": "weights/../../model"}}, "model.weights"),
        ({"model": {"name": "local:x", "weights": "/tmp"}}, "model.weights"),
        ({"kind": ["logprob"]}, "kind"),
        ({"view": []}, "view"),
    ],
)
def test_a_manifest_that_leads_elsewhere_is_refused(tmp_path: Path, changes: dict[str, object], field: str) -> None:
    bundle = save_bundle(calibrated(logprob()), tmp_path / "judge")
    rewrite(bundle.path, **changes)
    with pytest.raises(FormatError) as caught:
        load_judge(bundle.path)
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["strict judge", "ünïcødé 鳥", "-x", "50%"])
def test_any_name_that_a_folder_may_have_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("RUBRICATE_JUDGES", str(tmp_path))
    save_bundle(logprob(), tmp_path / name)
    assert load_judge(name).fingerprint == load_judge(f"bundle:{name}").fingerprint == logprob().fingerprint


@pytest.mark.parametrize("name", ["", ".", "..", "../judge", "sub/judge", "x" * 5000])
def test_what_is_no_name_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for folder in ("names", "names/sub", "here"):
        (tmp_path / folder).mkdir()
    save_bundle(logprob(), tmp_path / "judge")
    save_bundle(logprob(), tmp_path / "names" / "sub" / "judge")
    monkeypatch.setenv("RUBRICATE_JUDGES", str(tmp_path / "names"))
    (tmp_path / "here" / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "here" / "deep")
    with pytest.raises(ConfigError, match="no judge bundle"):
        load_judge(f"bundle:{name}")


def test_saving_through_a_link_replaces_what_it_leads_to(tmp_path: Path) -> None:
    save_bundle(logprob(), tmp_path / "judge")
    (tmp_path / "link").symlink_to(tmp_path / "judge")
    other = logprob("mock:p=0.2")
    save_bundle(other, tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink() and load_judge(tmp_path / "judge").fingerprint == other.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["judge", "link"]
