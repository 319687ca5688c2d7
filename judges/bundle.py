"""Judge bundles: a judge as one folder, with everything that its verdicts depend on, loadable by path or name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rubricate.chat import connect
from rubricate.chat.base import ChatModel
from rubricate.chat.limiter import Limiter
from rubricate.chat.limits import Limits
from rubricate.data.io import write_text
from rubricate.errors import ConfigError, FormatError
from rubricate.judges.arrow import ArrowJudge
from rubricate.judges.base import CriteriaJudge, ModelJudge
from rubricate.judges.bundle_files import MANIFEST, find_bundle, new_folder, read_manifest, write_manifest
from rubricate.judges.bundle_model import connection, is_moved, save_model
from rubricate.judges.calibrated import Calibrated
from rubricate.judges.calibration import Calibration
from rubricate.judges.code import VerifierJudge
from rubricate.judges.criterion import CriterionJudge
from rubricate.judges.decisions import DecisionsJudge
from rubricate.judges.fewshot import Examples
from rubricate.judges.geval import ExpectationJudge, HolisticExpectationJudge
from rubricate.judges.holistic import HolisticJudge, LikertJudge
from rubricate.judges.logprob import LogprobJudge
from rubricate.judges.rating import RatingJudge
from rubricate.judges.router import Router, anything, has_verifier
from rubricate.judges.slots import SlotsJudge
from rubricate.judges.view import final_answer, trajectory
from rubricate.narrow import as_number, as_object
from rubricate.prompts import Prompt
from rubricate.types import fingerprint
from rubricate.version import __version__

__all__ = ["Bundle", "load_judge", "read_bundle", "save_bundle"]

_SHOWN = ("show_reference", "run_key", "max_chars")
_SAMPLING = ("max_tokens", "temperature", "seed", "sample")
_MASS = ("max_outside", "top_logprobs")
_KINDS: Mapping[str, tuple[type[ModelJudge], tuple[str, ...]]] = {
    "criterion": (
        CriterionJudge,
        (*_SAMPLING, "criteria_per_call", "max_attempts", "tokens_per_criterion", "json_schema", "closing_list"),
    ),
    "logprob": (LogprobJudge, (*_MASS, "prefill", "yes", "no")),
    "slots": (SlotsJudge, (*_MASS, "questions_per_call", "filler")),
    "arrow": (ArrowJudge, (*_MASS, *_SAMPLING, "text_verdicts", "max_attempts", "tokens_per_criterion")),
    "expectation": (ExpectationJudge, (*_MASS, "prefill")),
    "holistic_expectation": (HolisticExpectationJudge, (*_MASS, "prefill", "low", "high", "with_rubric")),
    "decisions": (DecisionsJudge, ("max_outside", "questions_per_call", "sample")),
    "rating": (RatingJudge, (*_SAMPLING, "top_p")),
    "holistic": (HolisticJudge, (*_SAMPLING, "max_attempts")),
    "likert": (LikertJudge, (*_SAMPLING, "max_attempts")),
}
_VIEWS = {"final": final_answer, "trajectory": trajectory}
_PROMPT, _EXAMPLES, _CALIBRATION = "prompt.jinja2", "examples.jsonl", "calibration.json"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A judge's folder, whose files are what was saved.

    Attributes:
        path: the folder, absolute.
        kind: `criterion`, `logprob`, `slots`, `arrow`, `rating`, `holistic`, `likert`, `expectation`,
            `holistic_expectation` or `decisions`.
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
        backend: str | None = None,
        options: Mapping[str, object] | None = None,
        api_key: str | None = None,
        limits: Limits | None = None,
        limiter: Limiter | None = None,
        cache: str | os.PathLike[str] | None = None,
        record: str | os.PathLike[str] | None = None,
    ) -> ChatModel:
        """The judge's model. Nothing is loaded before its first call.

        Args:
            backend: `local` or `vllm`, to run a model that was saved with one of them on the other: the same
                weights, adapter and dtype (`options` may change that). Answers of the two differ a little.
            options: options of the back end that fit the model to this machine, such as `{"gpu_memory": 0.5}`.
            api_key, limits, limiter, cache, record: as in `connect`.

        Raises what `connect` raises, and ConfigError for a model that cannot run on that back end.
        """
        name, saved = connection(self.path, _object(self.fields, "model", self.path), backend)
        return connect(
            name,
            api_key=api_key,
            limits=limits,
            limiter=limiter,
            cache=None if cache is None else Path(cache),
            record=None if record is None else Path(record),
            **{**saved, **(options or {})},
        )

    def judge(
        self,
        model: ChatModel | None = None,
        *,
        backend: str | None = None,
        run_key: str | None = None,
        verifiers: bool = False,
    ) -> CriteriaJudge:
        """The judge.

        On another back end than it was saved with, it is another judge to the fingerprint, which is why the reward
        tells them apart. Its calibration is used there all the same, though it was fitted on the first one, and
        every reason that names it says so; fit one for this back end where its probabilities must be exact.

        Args:
            model: its model, where it is connected already (behind a cache, say): the same one, to the fingerprint,
                or the same files on another back end.
            backend: where no model is given, the back end to connect it on, as in `connect`.
            run_key: fence untrusted texts with another key than the saved one.
            verifiers: criteria with a verifier go to code, as with `build_judge`.

        Raises ConfigError where the judge is not what was saved: its model is another, or this version of rubricate
        makes another judge of the same options.
        """
        if model is not None and backend is not None:
            raise ConfigError("give a model or a back end, not both", hint="connect the model with that back end")
        made = self._made(model or self.connect(backend=backend))
        self._check(made)
        judge: CriteriaJudge = made
        calibration = self.fields.get("calibration")
        if calibration is not None:
            if calibration != _CALIBRATION:
                raise self._wrong(f"expected {_CALIBRATION}", "calibration")
            fitted_for = fingerprint(_object(self.fields, "identity", self.path))
            judge = Calibrated(made, Calibration.load(self.path / _CALIBRATION), fitted_for=fitted_for)
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
            if is_moved(judge.model, _object(self.fields, "model", self.path)):
                return
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
    backend: str | None = None,
    run_key: str | None = None,
    verifiers: bool = False,
) -> CriteriaJudge:
    """The judge of a bundle, by its path or name. Arguments, errors: those of `read_bundle` and `Bundle.judge`."""
    return read_bundle(place).judge(model, backend=backend, run_key=run_key, verifiers=verifiers)


def save_bundle(
    judge: CriteriaJudge,
    folder: str | os.PathLike[str],
    *,
    model: str | None = None,
    weights: bool = False,
    overwrite: bool = False,
) -> Bundle:
    """Save a judge as one folder: template, examples, calibration, view, layout, options, label words among them,
    the name of its model, the adapter of a `local:` or `vllm:` one, and fingerprints of all. The folder appears
    whole or not at all.

    Args:
        judge: a judge of one of the kinds that `Bundle` lists, or Calibrated around one.
        folder: where; its last part is the bundle's name.
        model: the name by which `connect` gives the same model, where its own does not (a local model with a name
            of your own, options of a server).
        weights: copy the weights of a `local:` or `vllm:` model into the folder, too. Without, they are found by
            the model's name.
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
    if isinstance(judge, Calibrated) and judge.calibration.judge != inner.fingerprint:
        raise ConfigError(
            f"the calibration of {judge.name} was fitted on another back end", hint="fit one for this judge"
        )
    place = Path(folder)
    with new_folder(place, overwrite=overwrite) as part:
        fields: dict[str, object] = {
            "rubricate": __version__,
            "kind": kind,
            "model": save_model(inner.model, model, part, weights=weights),
            "prompt": {"name": inner.prompt.name, "file": _PROMPT},
            "view": view,
            "layout": inner.layout,
            "options": {name: getattr(inner, name) for name in (*_KINDS[kind][1], *_SHOWN)},
            "identity": inner.identity(),
        }
        write_text(part / _PROMPT, inner.prompt.source)
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


def _object(fields: Mapping[str, object], name: str, path: Path) -> Mapping[str, object]:
    found = as_object(fields.get(name))
    if found is None:
        raise FormatError("expected an object", source=str(path / MANIFEST), field=name)
    return found
