"""Judge bundles: what comes back, what is refused, and that every change of a file is noticed and named."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from judging import one_token

from rubricate.chat import MockModel, connect
from rubricate.chat.local import LocalModel, LocalOptions
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, FormatError
from rubricate.judges import CriterionJudge, HolisticJudge, LikertJudge, LogprobJudge, Router, ScriptedJudge
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.bundle import load_judge, read_bundle, save_bundle
from rubricate.judges.bundle_files import bundle_folders
from rubricate.judges.calibrated import Calibrated
from rubricate.judges.calibration import fit_calibration
from rubricate.judges.fewshot import Example, Examples
from rubricate.judges.rating import RatingJudge
from rubricate.judges.repeated import Repeated
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
        ("labels", {"yes": ["oui"], "no": ["non"]}, "other label tokens"),
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
        (tmp_path / folder).mkdir()
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
