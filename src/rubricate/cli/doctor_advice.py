"""What a model's probes mean for judging: which mode, how many criteria a call, and what a judgement costs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import commonprefix

from rubricate.chat import Message, MockModel
from rubricate.chat.probing import ModelReport, Sign, Trial
from rubricate.data.records import Rollout
from rubricate.errors import ParseError, RequestError
from rubricate.judges import AnswerMass, answer_mass, build_judge
from rubricate.judges.reply import question_of, read_reply
from rubricate.rubrics import Criterion

__all__ = ["Advice", "ModeCost", "advise", "judge_questions", "judge_trial", "masses", "mode_costs"]

CRITERIA = 10
MAX_OUTSIDE = 0.5
"""Share of probability outside yes and no from which a log-probability judge gives no verdict."""
REASON = 80
"""Completion tokens of a reason and its verdict, assumed; a rating of the whole response takes 1.5 times that."""
_SUM = Rollout("What is two plus two?", "Two plus two is four.")
_MET = Criterion(id="met", text="It says four.")
_RESPONSE = (
    "The tide rises and falls because the moon pulls at the near side of the sea more than at the far. " * 12
)


@dataclass(frozen=True, slots=True)
class ModeCost:
    """What judging one response of some 300 tokens by 10 criteria takes in one mode, without retries.

    Attributes:
        mode: as in `rubricate score --mode`.
        criteria_per_call: None for all.
        calls, prompt_tokens: each prompt counted whole, four characters a token.
        computed_tokens: prompt tokens that remain where the server computes what prompts share once.
        completion_tokens: one a criterion by log-probability, else assumed.
        money: by the prices given, None without; cached tokens at full price.
    """

    mode: str
    criteria_per_call: int | None
    calls: int
    prompt_tokens: int
    computed_tokens: int
    completion_tokens: int
    money: float | None = None

    @property
    def label(self) -> str:
        """The mode, with the criteria a call where there is a choice."""
        return f"reasoned, {self.criteria_per_call or 'all'} a call" if self.mode == "reasoned" else self.mode


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with a model.

    Attributes:
        mode: the judge mode to use, None where the model cannot judge.
        criteria_per_call: in `reasoned` mode; None for all.
        logprob: whether log-probability judging is possible.
        reasons: why, a sentence each.
    """

    mode: str | None
    criteria_per_call: int | None
    logprob: bool
    reasons: tuple[str, ...]


def masses(report: ModelReport) -> tuple[AnswerMass, ...]:
    """Mass of yes and no at the first token: where the right answer is yes, and where it is no."""
    return tuple(answer_mass(token) for token in report.first_tokens)


def judge_questions() -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """What our log-probability judge sends for a criterion that is plainly met, and for one that is plainly not."""
    model = _ask("logprob", 1, _SUM, [_MET, Criterion(id="unmet", text="It names an animal.")])
    met, unmet = (request.messages for request in model.requests)
    return met, unmet


def judge_trial() -> Trial:
    """What our reasoned judge sends for a criterion that is plainly met, and how it reads the reply."""
    (request,) = _ask("reasoned", 1, _SUM, [_MET]).requests

    def read(reply: str) -> str:
        answers, failures = read_reply(reply, [question_of(_MET, "C1")])
        if why := failures.get("C1"):
            raise ParseError(why.message)
        raw = answers["C1"].raw
        return "a readable verdict came" + ("" if raw == "met" else f", but {raw!r} where 'met' is right")

    return Trial(request, read)


def _ask(mode: str, per_call: int | None, rollout: Rollout, criteria: Sequence[Criterion]) -> MockModel:
    """A model that has seen what a judge sends for these criteria, and has answered nothing."""
    model = MockModel(RequestError("nothing is asked"))  # of a kind that no judge tries again
    judge = build_judge(model, mode=mode, criteria_per_call=per_call)
    asyncio.run(judge.judge_criteria(rollout, criteria))
    return model


def mode_costs(prices: tuple[float, float] | None = None) -> list[ModeCost]:
    """Cost of one response with 10 criteria in each mode, from the prompts that our judges really send."""
    kinds = [("logprob", 1), ("reasoned", 1), ("reasoned", 5), ("reasoned", None), ("holistic", None)]
    return [_cost(mode, per_call, prices) for mode, per_call in (*kinds, ("likert", None))]


def _cost(mode: str, per_call: int | None, prices: tuple[float, float] | None) -> ModeCost:
    criteria = [
        Criterion(id=f"c{n}", text=f"Names cause number {n} of the tides, and says how large its part is.")
        for n in range(CRITERIA)
    ]
    rollout = Rollout("Why are there tides, and what makes them differ?", _RESPONSE)
    model = _ask(mode, per_call, rollout, criteria)
    texts = [request.text() for request in model.requests]
    shared = len(commonprefix(texts)) if len(texts) > 1 else 0
    characters = sum(map(len, texts))
    prompt = characters // 4
    answer = {"logprob": CRITERIA, "reasoned": CRITERIA * REASON}.get(mode, REASON * 3 // 2)
    money = None if prices is None else (prompt * prices[0] + answer * prices[1]) / 1e6
    computed = (characters - shared * (len(texts) - 1)) // 4
    return ModeCost(mode, per_call, len(texts), prompt, computed, answer, money)


def advise(report: ModelReport) -> Advice:
    """The mode to use, and why."""
    if not report.answers:
        return Advice(None, None, False, ("it does not answer, so it cannot judge",))
    logprob, why = _logprob(report)
    reasons = [f"logprob: {why}", *_schema(report)]
    cache = report.finding("prefix_cache")
    per_call: int | None = 1
    if cache.holds:
        reasons.append("one criterion a call: what the calls share is computed once")
    elif cache.sign in (Sign.NO, Sign.UNLIKELY):
        per_call = 5
        reasons.append(
            f"several criteria a call: without a prefix cache {CRITERIA} calls read the response {CRITERIA} times "
            "(at 1 a call verdicts influence each other least)"
        )
    else:
        reasons.append("criteria a call: prefix caching is unknown; 1 is safest for accuracy, 5 for cost")
    local = report.model.startswith("local:")
    judgement = report.finding("judgement")
    if judgement.sign is Sign.NO:
        reasons.append(f"reasoned: not possible as it is: {judgement.text}")
        if not logprob:
            return Advice(None, None, False, ("no judge can read its answers: take another model", *reasons))
        return Advice("logprob", per_call, logprob, tuple(reasons))
    if local and not logprob:
        reasons.append("a small model in this process reasons badly: expect verdicts that fail")
    elif local:
        reasons.append("a small model in this process reasons badly; its log-probabilities say more")
    elif logprob:
        reasons.append("reasoned gives reasons with its verdicts; --mode logprob costs one token a criterion")
    return Advice("logprob" if local and logprob else "reasoned", per_call, logprob, tuple(reasons))


def _logprob(report: ModelReport) -> tuple[bool, str]:
    found = masses(report)
    if len(found) < 2:
        return False, f"not possible: {report.finding('logprobs').text}"
    short = next((why for mass in found if (why := mass.shortfall(MAX_OUTSIDE))), "")
    if short:
        return False, f"not possible as it is: {short}{_unread(report)}"
    yes, no = ((mass.p_yes or 0.0) for mass in found)
    told = f"P(yes) is {yes:.2f} where the answer is yes and {no:.2f} where it is no"
    if yes <= no:
        return True, f"possible, but it does not tell two trivial questions apart: {told}"
    if yes < 0.5 or no >= 0.5:
        return True, f"possible, but it needs calibrating, or a better model: {told}"
    return True, f"possible: {told}"


def _unread(report: ModelReport) -> str:
    said = next((token.token for token in report.first_tokens if "think" in token.token), None)
    if said is None:
        return f" (a judge allows {MAX_OUTSIDE:.0%})"
    return f"; it begins with {said!r}: turn its reasoning off, as in ?extra=" + (
        '{"chat_template_kwargs":{"enable_thinking":false}}'
    )


def _schema(report: ModelReport) -> Sequence[str]:
    found = report.finding("json_schema")
    if not report.claimed.json_schema or found.sign in (Sign.YES, Sign.SKIPPED):
        return ()
    form = found.details.get("works_as")
    if isinstance(form, str):
        return (f"json_schema: put ?schema={form} in the name, or every call of the reasoned mode fails",)
    if found.sign is Sign.FAILED:
        return ("json_schema: put ?schema=none in the name, or every call of the reasoned mode fails",)
    if found.details.get("came") == "empty":
        return ("json_schema: put ?schema=none in the name, or every verdict is asked for twice",)
    return ("json_schema: replies are not held to it; they are parsed and checked all the same",)
