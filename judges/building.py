"""The usual judge of a model: code for hard rules, the model for the rest, or the judge that ships for it."""

from __future__ import annotations

from rubricate.chat import connect
from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.bundle import read_bundle
from rubricate.judges.code import VerifierJudge
from rubricate.judges.criterion import CriterionJudge
from rubricate.judges.geval import ExpectationJudge, has_levels
from rubricate.judges.holistic import HolisticJudge, LikertJudge
from rubricate.judges.logprob import LogprobJudge
from rubricate.judges.router import Router, anything, has_verifier, is_binary
from rubricate.judges.view import View, final_answer, get_view

__all__ = ["MODES", "build_judge", "default_mode", "shipped_bundle"]

MODES = ("logprob", "reasoned", "holistic", "likert")

_SHIPPED: dict[str, str] = {}


def shipped_bundle(model: str) -> str | None:
    """Name of the judge bundle that ships with the package for a model of that name; None where none does.

    `local:smollm2?adapter=none` is the model without it.
    """
    return _SHIPPED.get(model)


def default_mode(model: str) -> str:
    """How to judge where nobody says: `logprob` with local models, which reason badly, and with mock models of one
    P(yes), which it shows as it is; else `reasoned`."""
    scripted = model.startswith("mock:p=") or model in ("mock:yes", "mock:no")
    return "logprob" if scripted or model.startswith("local:") else "reasoned"


def build_judge(
    model: ChatModel | str | None,
    *,
    mode: str | None = None,
    criteria_per_call: int | None = 1,
    view: str | View = "final",
    show_reference: bool = True,
    run_key: str = "rubricate",
) -> CriteriaJudge:
    """The usual judge: criteria with a verifier go to code, the rest to a model.

    Args:
        model: a chat model or its name; None for code alone (criteria without a verifier then fail). In mode
            `logprob` a name with a `shipped_bundle` means that bundle's judge, which takes binary criteria only.
        mode: `reasoned` (reasons, then verdicts), `logprob` (probability of a one-token answer; criteria with
            levels or few whole numbers get the mean over these by probability, see `ExpectationJudge`, and other
            scales are judged `reasoned`), `holistic` (one rating for the whole rubric), `likert` (one rating
            without the rubric). The last two make no use of verifiers. None: `default_mode` of the model's name.
        criteria_per_call: criteria a call in `reasoned` mode, None for all.
        view: what judges see of a rollout: `final`, `trajectory`, or a function.
        show_reference: show the reference answer where there is one.
        run_key: key of the hash that fences untrusted text.

    Raises ConfigError for an unknown mode.
    """
    name = model if isinstance(model, str) else model.name if model is not None else ""
    mode = mode or default_mode(name)
    if mode not in MODES:
        raise ConfigError(f"there is no judge mode {mode!r}", hint=f"use one of {', '.join(MODES)}")
    code = VerifierJudge(view=view)
    if model is None:
        return code
    seen = get_view(view)
    shipped = shipped_bundle(name) if isinstance(model, str) and mode == "logprob" else None
    if shipped is not None:
        bundle = read_bundle(shipped)
        if seen is final_answer and show_reference:
            return bundle.judge(run_key=run_key, verifiers=True)
        model = bundle.connect()  # seen otherwise, its probabilities are not those that were calibrated
    chat = connect(model)
    if mode == "holistic":
        return HolisticJudge(chat, view=seen, show_reference=show_reference, run_key=run_key)
    if mode == "likert":
        return LikertJudge(chat, view=seen, show_reference=show_reference, run_key=run_key)
    reasoned = CriterionJudge(
        chat, view=seen, show_reference=show_reference, run_key=run_key, criteria_per_call=criteria_per_call
    )
    if mode == "reasoned":
        return Router([(has_verifier, code), (anything, reasoned)])
    logprob = LogprobJudge(chat, view=seen, show_reference=show_reference, run_key=run_key)
    levels = ExpectationJudge(chat, view=seen, show_reference=show_reference, run_key=run_key)
    return Router([(has_verifier, code), (is_binary, logprob), (has_levels, levels), (anything, reasoned)])
