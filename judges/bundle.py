"""Judge bundles: a judge as one folder, with everything that its verdicts depend on, loadable by path or name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote

from rubricate.chat import connect
from rubricate.chat.base import ChatModel
from rubricate.chat.limited import innermost
from rubricate.chat.limiter import Limiter
from rubricate.chat.limits import Limits
from rubricate.chat.local import LocalModel
from rubricate.chat.local_host import resolved_dtype
from rubricate.chat.local_source import resolve
from rubricate.data.io import write_text
from rubricate.errors import ConfigError, FormatError
from rubricate.judges.base import CriteriaJudge, ModelJudge
from rubricate.judges.bundle_files import MANIFEST, find_bundle, new_folder, read_manifest, write_manifest
from rubricate.judges.calibrated import Calibrated
from rubricate.judges.calibration import Calibration
from rubricate.judges.code import VerifierJudge
from rubricate.judges.criterion import CriterionJudge
from rubricate.judges.fewshot import Examples
from rubricate.judges.holistic import HolisticJudge, LikertJudge
from rubricate.judges.logprob import NO, YES, LogprobJudge
from rubricate.judges.rating import RatingJudge
from rubricate.judges.router import Router, anything, has_verifier
from rubricate.judges.view import final_answer, trajectory
from rubricate.narrow import as_number, as_object
from rubricate.prompts import Prompt
from rubricate.version import __version__

__all__ = ["Bundle", "load_judge", "read_bundle", "save_bundle"]

_SHOWN = ("show_reference", "run_key", "max_chars")
_SAMPLING = ("max_tokens", "temperature", "seed", "sample")
_KINDS: Mapping[str, tuple[type[ModelJudge], tuple[str, ...]]] = {
    "criterion": (
        CriterionJudge,
        (*_SAMPLING, "criteria_per_call", "max_attempts", "tokens_per_criterion", "json_schema", "closing_list"),
    ),
    "logprob": (LogprobJudge, ("max_outside", "top_logprobs", "prefill")),
    "rating": (RatingJudge, (*_SAMPLING, "top_p")),
    "holistic": (HolisticJudge, (*_SAMPLING, "max_attempts")),
    "likert": (LikertJudge, (*_SAMPLING, "max_attempts")),
}
_VIEWS = {"final": final_answer, "trajectory": trajectory}
_PROMPT, _EXAMPLES, _CALIBRATION = "prompt.jinja2", "examples.jsonl", "calibration.json"
_ADAPTER, _WEIGHTS = "adapter", "weights"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A judge's folder, whose files are what was saved.

    Attributes:
        path: the folder, absolute.
        kind: `criterion`, `logprob`, `rating`, `holistic` or `likert`.
        model: name of its model as `connect` takes it; weights and adapter that lie in the folder come on top.
        fields: the whole manifest.
    """

    path: Path
    kind: str
    model: str
    fields: Mapping[str, object]

    def connect(
        self,
        *,
        limits: Limits | None = None,
        limiter: Limiter | None = None,
        cache: str | os.PathLike[str] | None = None,
        record: str | os.PathLike[str] | None = None,
    ) -> ChatModel:
        """The judge's model. Nothing is loaded before its first call. Arguments and errors as in `connect`."""
        model = _object(self.fields, "model", self.path)
        name, weights = self.model, model.get("weights")
        options = {key: str(value) for key, value in (as_object(model.get("options")) or {}).items()}
        if isinstance(weights, str):
            if Path(weights).parts[:1] != (_WEIGHTS,) or ".." in Path(weights).parts:
                raise self._wrong("expected a path in this bundle", "model.weights")
            name = f"local:{self.path / weights}"
        if model.get("adapter"):
            options["adapter"] = str(self.path / _ADAPTER)
        query = "&".join(f"{key}={quote(value, safe='/')}" for key, value in options.items())
        return connect(
            f"{name}?{query}" if query else name,
            limits=limits,
            limiter=limiter,
            cache=None if cache is None else Path(cache),
            record=None if record is None else Path(record),
        )

    def judge(
        self, model: ChatModel | None = None, *, run_key: str | None = None, verifiers: bool = False
    ) -> CriteriaJudge:
        """The judge.

        Args:
            model: its model, where it is connected already (behind a cache, say): the same one, to the fingerprint.
            run_key: fence untrusted texts with another key than the saved one.
            verifiers: criteria with a verifier go to code, as with `build_judge`.

        Raises ConfigError where the judge is not what was saved: its model is another, or this version of rubricate
        makes another judge of the same options.
        """
        made = self._made(model or self.connect())
        self._check(made)
        judge: CriteriaJudge = made
        calibration = self.fields.get("calibration")
        if calibration is not None:
            if calibration != _CALIBRATION:
                raise self._wrong(f"expected {_CALIBRATION}", "calibration")
            judge = Calibrated(made, Calibration.load(self.path / _CALIBRATION))
        if run_key is not None:
            made.run_key = run_key
        if not verifiers:
            return judge
        return Router([(has_verifier, VerifierJudge(view=made.view)), (anything, judge)])

    def _made(self, model: ChatModel) -> ModelJudge:
        kind, names = _KINDS[self.kind]
        options = dict(_object(self.fields, "options", self.path))
        if set(options) != {*names, *_SHOWN}:
            odd = sorted(set(options) ^ {*names, *_SHOWN})
            raise self._wrong(f"the option {odd[0]!r} is unknown or missing", "options")
        view = self.fields.get("view")
        if not isinstance(view, str) or view not in _VIEWS:
            raise self._wrong(f"expected one of {', '.join(_VIEWS)}", "view")
        if "labels" in self.fields and self.fields["labels"] != _labels():
            raise self._wrong("this version reads other label tokens", "labels")
        source = (self.path / _PROMPT).read_text(encoding="utf-8")
        options["prompt"] = Prompt(str(_object(self.fields, "prompt", self.path).get("name")), source)
        shots = as_object(self.fields.get("examples"))
        if shots is not None:
            k, seed = (as_number(shots.get(name)) for name in ("k", "seed"))
            if k is None or seed is None:
                raise self._wrong("expected k and seed", "examples")
            options["examples"] = Examples.load(self.path / _EXAMPLES, k=int(k), seed=int(seed))
        make = cast("Callable[..., ModelJudge]", kind)
        try:
            return make(model, view=view, **options)
        except TypeError as error:
            raise self._wrong(f"no judge can be made of these: {error}", "options") from error

    def _check(self, judge: ModelJudge) -> None:
        saved, now = _object(self.fields, "identity", self.path), judge.identity()
        other = sorted(name for name in {*saved, *now} if saved.get(name) != now.get(name))
        if judge.layout != self.fields.get("layout"):
            other.append("layout")
        if not other:
            return
        if other == ["model"]:
            raise ConfigError(
                f"the model {judge.model.name} is not the one that the judge {self.path.name} was saved with",
                hint="its weights, adapter, dtype or address changed: save the judge anew, and fit its calibration",
            )
        raise ConfigError(
            f"the judge {self.path.name} is not what was saved: {', '.join(other)} differ",
            hint=f"it was saved by rubricate {self.fields.get('rubricate')}, this is {__version__}",
        )

    def _wrong(self, message: str, field: str) -> FormatError:
        return FormatError(message, source=str(self.path / MANIFEST), field=field, hint="save the judge anew")


def read_bundle(place: str | os.PathLike[str]) -> Bundle:
    """A bundle by its path or name (`bundle:` may stand in front), every file checked against what was saved.

    Names are looked up in the user's folder (`RUBRICATE_JUDGES`, else `XDG_DATA_HOME/rubricate/judges`, else
    `~/.local/share/rubricate/judges`), then among those that ship with the package.

    Raises ConfigError where there is none, FormatError, naming the file, where one was changed.
    """
    path = find_bundle(place)
    fields = read_manifest(path)
    kind, model = fields.get("kind"), _object(fields, "model", path).get("name")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise FormatError(
            f"this version knows {', '.join(_KINDS)}, not {kind!r}", source=str(path / MANIFEST), field="kind"
        )
    if not isinstance(model, str):
        raise FormatError("expected a model's name", source=str(path / MANIFEST), field="model.name")
    return Bundle(path, kind, model, fields)


def load_judge(
    place: str | os.PathLike[str],
    *,
    model: ChatModel | None = None,
    run_key: str | None = None,
    verifiers: bool = False,
) -> CriteriaJudge:
    """The judge of a bundle, by its path or name. Arguments, errors: those of `read_bundle` and `Bundle.judge`."""
    return read_bundle(place).judge(model, run_key=run_key, verifiers=verifiers)


def save_bundle(
    judge: CriteriaJudge,
    folder: str | os.PathLike[str],
    *,
    model: str | None = None,
    weights: bool = False,
    overwrite: bool = False,
) -> Bundle:
    """Save a judge as one folder: template, examples, calibration, label tokens, view, layout, options, the name of
    its model, the adapter of a local one, and fingerprints of all. The folder appears whole or not at all.

    Args:
        judge: a CriterionJudge, LogprobJudge, RatingJudge, HolisticJudge or LikertJudge, or Calibrated around one.
        folder: where; its last part is the bundle's name.
        model: the name by which `connect` gives the same model, where its own does not (a local model with a name
            of your own, options of a server).
        weights: copy a local model's weights into the folder, too. Without, they are found by the model's name.
        overwrite: a bundle may be there already.

    Raises ConfigError for another kind of judge, a view of one's own, a model that cannot be had again by its name,
    or a place that is taken.
    """
    inner = judge.inner if isinstance(judge, Calibrated) else judge
    kind = next((name for name, (cls, _) in _KINDS.items() if type(inner) is cls), None)
    if kind is None or not isinstance(inner, ModelJudge):
        raise ConfigError(
            f"{judge.name} cannot be saved as a bundle",
            hint=f"save a judge of the kind {', '.join(_KINDS)}, and combine judges after loading them",
        )
    view = next((name for name, function in _VIEWS.items() if function is inner.view), None)
    if view is None:
        raise ConfigError("a judge with a view of one's own cannot be saved", hint=f"use {' or '.join(_VIEWS)}")
    place = Path(folder)
    with new_folder(place, overwrite=overwrite) as part:
        fields: dict[str, object] = {
            "rubricate": __version__,
            "kind": kind,
            "model": _save_model(inner.model, model, part, weights=weights),
            "prompt": {"name": inner.prompt.name, "file": _PROMPT},
            "view": view,
            "layout": inner.layout,
            "options": {name: getattr(inner, name) for name in (*_KINDS[kind][1], *_SHOWN)},
            "identity": inner.identity(),
        }
        write_text(part / _PROMPT, inner.prompt.source)
        if isinstance(inner, LogprobJudge):
            fields["labels"] = _labels()
        if isinstance(inner, CriterionJudge | LogprobJudge) and inner.examples is not None:
            inner.examples.save(part / _EXAMPLES)
            fields["examples"] = {"file": _EXAMPLES, "k": inner.examples.k, "seed": inner.examples.seed}
        if isinstance(judge, Calibrated):
            judge.calibration.save(part / _CALIBRATION)
            fields["calibration"] = _CALIBRATION
        write_manifest(part, fields)
        # What cannot be loaded, or loads as another judge, is never saved.
        if read_bundle(part).judge().fingerprint != judge.fingerprint:
            raise ConfigError(f"{judge.name} does not come back from its bundle as the same judge")
    return read_bundle(place)


def _save_model(model: ChatModel, name: str | None, folder: Path, *, weights: bool) -> dict[str, object]:
    """The model as the manifest has it, its adapter and, where asked for, its weights copied into the folder."""
    inner = innermost(model)
    if not isinstance(inner, LocalModel):
        if weights:
            raise ConfigError(f"the weights of {model.name} are not on this machine", hint="leave `weights` out")
        name = name or model.name
        if name.startswith("http") and "#" not in name:
            raise ConfigError(
                f"the server at {name} may serve another model tomorrow", hint="name it: http://host/v1#MODEL"
            )
        return {"name": name}
    adapter = Path(inner.options.adapter) if inner.options.adapter else None
    name = name or inner.name.removesuffix(f"+{adapter.name}" if adapter else "")
    if not name.startswith("local:") or "?" in name:
        raise ConfigError(
            f"the name {name!r} does not tell where the model's weights are", hint="give model='local:...'"
        )
    # dtype `auto` is another on another machine
    saved: dict[str, object] = {"options": {"dtype": resolved_dtype(inner.options)}}
    if adapter is not None:
        shutil.copytree(adapter, folder / _ADAPTER)
        saved["adapter"] = _ADAPTER
    source = resolve(name.removeprefix("local:")).path
    if weights and source.is_dir():
        shutil.copytree(source, folder / _WEIGHTS)
        saved["weights"] = _WEIGHTS
    elif weights:
        (folder / _WEIGHTS).mkdir()
        shutil.copy2(source, folder / _WEIGHTS / source.name)
        saved["weights"] = f"{_WEIGHTS}/{source.name}"
    elif Path(name.removeprefix("local:")).expanduser().exists():
        name = f"local:{source}"
    return {"name": name, **saved}


def _labels() -> dict[str, object]:
    return {"yes": sorted(YES), "no": sorted(NO)}


def _object(fields: Mapping[str, object], name: str, path: Path) -> Mapping[str, object]:
    found = as_object(fields.get(name))
    if found is None:
        raise FormatError("expected an object", source=str(path / MANIFEST), field=name)
    return found
