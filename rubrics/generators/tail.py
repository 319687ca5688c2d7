"""Rubrics refined on the best responses of a pool, pair by pair (Chasing the Tail, 2509.21500)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.failures import failure
from rubricate.narrow import as_number, as_object
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics.criterion import Criterion, Polarity, Provenance
from rubricate.rubrics.filters.judging import RubricJudge, verdicts_of
from rubricate.rubrics.generators.asking import Answered, read_items
from rubricate.rubrics.generators.base import Generated, GeneratorNote, Need, NoteKind
from rubricate.rubrics.generators.contrastive_pairs import response_fault
from rubricate.rubrics.generators.drafts import CHECKS, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator, evidence_of, finished, list_schema
from rubricate.rubrics.generators.source import Source, Text, text_of
from rubricate.rubrics.generators.tail_scoring import weighted_score
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Usage, fingerprint

__all__ = ["FALLBACKS", "TailGenerator", "tail_fallback"]

FALLBACKS = ("none", "generic")
"""What stands in for an initial rubric that could not be had: nothing, or the ten general criteria."""

_TOP = 3.0
_KEYS = ("rubrics", "criteria", "rubric")

_GENERIC = (
    ("The response does what the request asks for.", 3),
    ("The response is correct in what it states.", 3),
    ("The response answers every part of the request.", 3),
    ("The response keeps to the limits and the form that the request sets.", 2),
    ("The response gives reasons or evidence where the reader needs them.", 2),
    ("The response is specific to the request, and no stock text.", 2),
    ("The response is ordered so that its points are easy to find.", 1),
    ("The response is clear in its wording.", 1),
    ("The response has nothing that is beside the point.", 1),
    ("The response is in a tone that suits the reader.", 1),
)


def tail_fallback() -> Rubric:
    """Ten general criteria, weights 1 to 3, for a prompt for which no rubric could be had (in our words)."""
    criteria = [Criterion(id="new", text=text, weight=float(weight)) for text, weight in _GENERIC]
    return finished(criteria, Provenance(generator="tail-fallback"), rubric_id="tail-fallback")


@dataclass(slots=True)
class _Run:
    """Where the refinement of one source stands.

    Attributes:
        failed: a verdict's failure that left a response without a score.
        stopped: why the last rewriting failed, or why no two responses have a score.
    """

    source: Source
    pool: list[Rollout]
    rubric: Rubric
    used: set[str] = field(default_factory=set[str])
    rounds: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    usage: Usage = Usage()
    notes: list[GeneratorNote] = field(default_factory=list[GeneratorNote])
    failed: Failure | None = None
    stopped: Failure | None = None

    @property
    def done(self) -> int:
        """Rounds that changed the rubric."""
        return sum(bool(one["rewritten"]) for one in self.rounds)


class TailGenerator(ModelGenerator):
    """Rewrites a rubric, round by round, so that it separates the two best responses not used before (2509.21500).

    It starts from the source's first rubric, or one that it writes from the prompt alone. In each round a judge
    scores the responses not used yet by the rubric as it stands, r = sum w V / sum w; the model sees the two best
    and writes the whole rubric anew. Equal scores are told apart by lot, from `tie_seed`; the last two left need no
    scores. A verdict that failed is unknown, never "no": it is left out of the score, and a response of which less
    than `min_coverage` of the weight is known is not chosen. What the model fails to rewrite stays as it was, with
    a note. `Generated.extra["tail"]` has every round.

    The responses are the source's candidates, or else those of its ranking and pairs.

    Args:
        model: writes and rewrites. The paper: GPT-4.1 first, then a stronger proposer.
        judge: judges a response by the rubric, criterion by criterion; not needed in `single`, where the pool has
            two responses.
        mode: `iterative`, or `single`: one round.
        rounds: rounds at most in `iterative` (4).
        pool: responses of a source at most, the first ones (16).
        min_coverage: see above, in (0, 1].
        verify: judge the two again by the new rubric, and keep the old one where it scores them alike. Not in the
            paper.
        least_rounds: with fewer rounds that changed the rubric there is no rubric (1): what was never refined must
            not pass for it. 0 gives the initial rubric. Nor is there one where a model or judge was away or the
            budget was used up, since the same row can be refined later.
        fallback: `generic` puts ten general criteria in place of an initial rubric that could not be had, with a
            note; `none` is a failure.
        tie_seed: of equal scores.
        least, most: numbers of criteria (the published rubrics have 4 to 37).
        quote_words: words in a row of one response that are a copy; None looks for none.
        checks: rules of the linter that each criterion must pass.
        on_bad: what becomes of single criteria that break a rule; see `ListRules`.
        prompt, refine: templates of one's own, for the initial rubric and for rewriting it.
        options: how the model is asked; see `AskOptions`. The paper: temperature 0, then 1.

    Raises ConfigError for options outside their ranges, and for `iterative` without a judge.
    """

    uses = frozenset({Need.CANDIDATES, Need.RANKED, Need.PAIR, Need.RUBRICS})

    def __init__(
        self,
        model: ChatModel,
        judge: RubricJudge | None = None,
        *,
        mode: Literal["iterative", "single"] = "iterative",
        rounds: int = 4,
        pool: int = 16,
        min_coverage: float = 0.5,
        verify: bool = False,
        least_rounds: int = 1,
        fallback: Literal["none", "generic"] = "none",
        tie_seed: int = 0,
        least: int = 4,
        most: int | None = 37,
        quote_words: int | None = 6,
        checks: Sequence[str] = CHECKS,
        on_bad: Literal["mend", "drop"] = "mend",
        prompt: Prompt | None = None,
        refine: Prompt | str | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("retry_temperature", 1.0)
        options.setdefault("max_tokens", 4096)
        super().__init__(model, prompt or "generate_tail", **options)
        if mode not in ("iterative", "single") or fallback not in FALLBACKS:
            hint = f"modes: iterative, single; fallbacks: {', '.join(FALLBACKS)}"
            raise ConfigError(f"there is no mode {mode!r} with fallback {fallback!r}", hint=hint)
        if judge is None and (mode == "iterative" or verify):
            raise ConfigError(f"mode {mode!r} needs a judge", hint="give one, or use mode='single'")
        if rounds < 1 or pool < 2 or not 0.0 < min_coverage <= 1.0:
            hint = "1 round or more, 2 responses or more, a share above 0 and at most 1"
            raise ConfigError(f"rounds is {rounds}, pool {pool}, min_coverage {min_coverage}", hint=hint)
        self.rounds = 1 if mode == "single" else rounds
        if not 0 <= least_rounds <= self.rounds:
            raise ConfigError(f"least_rounds is {least_rounds}", hint=f"use 0 to {self.rounds}")
        if quote_words is not None and quote_words < 1:
            raise ConfigError(f"quote_words is {quote_words}", hint="use 1 or more, or None")
        self.judge = judge
        self.mode = mode
        self.pool = pool
        self.min_coverage = min_coverage
        self.verify = verify
        self.least_rounds = least_rounds
        self.fallback = fallback
        self.tie_seed = tie_seed
        self.quote_words = quote_words
        self.rules = ListRules(least, most, tuple(checks), None, on_bad)
        self.refine = refine if isinstance(refine, Prompt) else load_prompt(refine or "generate_tail_refine")
        self.name = "tail" if mode == "iterative" else "tail-single"

    def identity(self) -> dict[str, object]:
        """Adds the judge and the options of this method."""
        names = ("mode", "rounds", "pool", "min_coverage", "verify", "least_rounds", "fallback", "tie_seed")
        own = {name: getattr(self, name) for name in (*names, "quote_words")}
        judge = None if self.judge is None else self.judge.fingerprint
        more = {"judge": judge, "refine": self.refine.fingerprint, "rules": self.rules.identity()}
        return super().identity() | own | more

    def check(self, source: Source) -> None:
        """Also raises ConfigError for fewer than two responses that differ, and for a rubric with penalties."""
        super().check(source)
        row = f" (row {source.id})" if source.id else ""
        count = len(self._pool(source))
        if count < 2:
            raise ConfigError(f"{self.name} needs two responses that differ, and this source has {count}{row}")
        if self.judge is None and count > 2:
            raise ConfigError(f"there are {count} responses and no judge to choose two{row}", hint="give a judge")
        if source.rubrics and any(one.polarity is Polarity.PENALTY for one in source.rubrics[0].criteria):
            hint = "its items are rewards; state the penalties as what a good response does"
            raise ConfigError(f"{self.name} cannot rewrite a rubric with penalties{row}", hint=hint)

    def _pool(self, source: Source) -> list[Rollout]:
        """The first responses that differ, with ids by place."""
        first = dict[str, Text]()
        for one in source.candidates or source.responses:
            first.setdefault(text_of(one), one)
        return source.rollouts(list(first.values())[: self.pool])

    async def write(self, source: Source) -> Generated:
        """The initial rubric, then the rounds."""
        first = await self._initial(source)
        if first.rubric is None:
            return first
        run = _Run(source, self._pool(source), first.rubric, usage=first.usage, notes=list(first.notes))
        for number in range(1, self.rounds + 1):
            if not await self._round(run, number):
                break
        away = run.stopped is not None and run.stopped.cause is FailureCause.INFRASTRUCTURE
        if away or run.done < self.least_rounds:
            few = f"{run.done} of {self.rounds} rounds changed the rubric, {self.least_rounds} are needed"
            why = run.stopped or failure(FailureKind.INCOMPLETE, few)
            return Generated.failed(why, usage=run.usage, notes=run.notes)
        return Generated(
            run.rubric,
            None,
            run.usage,
            tuple(run.notes),
            extra={"tail": {"rounds": run.rounds, "changed": run.done}},
        )

    async def _initial(self, source: Source) -> Generated:
        if source.rubrics:
            return Generated(source.rubrics[0])
        values = self.fenced(source.task) | {"least": self.rules.least, "most": self.rules.most}
        made = self.made(await self._draft(self.prompt, values, [], source.task), source)
        if made.rubric is not None or self.fallback == "none":
            return made
        told = made.failure.message if made.failure else ""
        note = GeneratorNote(NoteKind.CHANGED, f"the fallback rubric stands in for the initial one: {told}")
        return Generated(tail_fallback(), None, made.usage, (*made.notes, note))

    # Rounds

    async def _round(self, run: _Run, number: int) -> bool:
        """Choose a pair and rewrite; False where no pair is left."""
        left = [one for one in run.pool if one.id not in run.used]
        scores: dict[str, float] = {}
        if self.judge is not None and len(left) > 2:
            scores = await self._scores(run, self.judge, left)
            left = self._ranked([one for one in left if one.id in scores], scores, run.source.task, number)
            if len(left) < 2:
                run.stopped = run.failed
                told = f"round {number}: fewer than two responses have a score"
                run.notes.append(GeneratorNote(NoteKind.FILTERED, told))
        if len(left) < 2:
            return False
        pair = left[0], left[1]
        run.used |= {one.id for one in pair}
        rewritten = await self._rewrite(run, pair, number)
        run.rounds.append(
            {
                "round": number,
                "pair": [one.id for one in pair],
                "scores": [scores.get(one.id) for one in pair],
                "scored": len(scores),
                "rewritten": rewritten,
                "criteria": len(run.rubric),
            }
        )
        return run.stopped is None or run.stopped.cause is FailureCause.RESPONSE

    async def _scores(self, run: _Run, judge: RubricJudge, responses: Sequence[Rollout]) -> dict[str, float]:
        """Scores by response id; a response of which too little is known has none."""
        said = await asyncio.gather(*(verdicts_of(judge, one, run.rubric) for one in responses))
        run.usage = sum((one.usage for one in said), run.usage)
        scores: dict[str, float] = {}
        for response, judgement in zip(responses, said, strict=True):
            scored = weighted_score(run.rubric, judgement)
            if scored.score is not None and scored.coverage >= self.min_coverage:
                scores[response.id] = scored.score
            else:
                run.failed = next((one.failure for one in judgement.verdicts if one.failure), run.failed)
        if len(scores) < len(responses):
            few = f"{len(responses) - len(scores)} of {len(responses)} responses have no score: verdicts failed"
            run.notes.append(GeneratorNote(NoteKind.FILTERED, few))
        return scores

    def _ranked(
        self, responses: list[Rollout], scores: Mapping[str, float], task: str, number: int
    ) -> list[Rollout]:
        """Best first, equal ones by lot."""
        random.Random(fingerprint([self.tie_seed, task, number])).shuffle(responses)
        return sorted(responses, key=lambda one: -scores[one.id])

    async def _rewrite(self, run: _Run, pair: tuple[Rollout, Rollout], number: int) -> bool:
        """Whether the rubric was written anew."""
        texts = [text_of(one.response) for one in pair]
        listed = "\n".join(
            f"{n}. ({one.weight:g}) {one.text}" for n, one in enumerate(run.rubric.criteria, start=1)
        )
        values = self.fenced(run.source.task, rubric=listed, response=texts)
        values |= {"least": self.rules.least, "most": self.rules.most}
        answer = await self._draft(self.refine, values, texts, run.source.task)
        run.usage += answer.usage
        run.notes += answer.notes
        if answer.value is None:
            run.stopped = answer.failure
            told = answer.failure.message if answer.failure else ""
            run.notes.append(GeneratorNote(NoteKind.DROPPED, f"round {number}: the rubric stays as it was: {told}"))
            return False
        before = run.rubric.criteria[0].provenance
        evidence = (*(before.evidence if before is not None else ()), *evidence_of("candidate", *texts))
        made = self.finish(answer.value, run.source, evidence=evidence, prompt=self.refine)
        if self.verify and not await self._separates(run, made, pair):
            told = f"round {number}: the rubric stays as it was: the new one is not known to separate the pair"
            run.notes.append(GeneratorNote(NoteKind.DROPPED, told))
            return False
        run.rubric = made
        return True

    async def _separates(self, run: _Run, rubric: Rubric, pair: Sequence[Rollout]) -> bool:
        """Whether the judge is known to score the two differently by this rubric."""
        judge = self.judge
        if judge is None:
            return False
        said = await asyncio.gather(*(verdicts_of(judge, one, rubric) for one in pair))
        run.usage = sum((one.usage for one in said), run.usage)
        one, two = (weighted_score(rubric, judgement) for judgement in said)
        known = min(one.coverage, two.coverage) >= self.min_coverage
        return known and None not in (one.score, two.score) and one.score != two.score

    # Asking

    async def _draft(
        self, prompt: Prompt, values: dict[str, object], responses: Sequence[str], task: str
    ) -> Answered[tuple[Criterion, ...]]:
        return await Drafting(self.asking, self.rules).draft(
            self.messages(values, prompt),
            lambda text: [self._read(value, responses, task) for value in read_items(text, *_KEYS)],
            schema=_schema,
        )

    def _read(self, value: object, responses: Sequence[str], task: str) -> Item:
        """One element of the model's list as a criterion, or why it is none."""
        fields = as_object(value)
        text = None if fields is None else fields.get("criterion", fields.get("text"))
        if fields is None or not isinstance(text, str) or not text.strip():
            return Refused(str(value)[:200], "it is no object with criterion and weight")
        text = " ".join(text.split())
        weight = as_number(fields.get("weight"))
        if weight is None or not weight.is_integer() or not 1.0 <= weight <= _TOP:
            shown = "missing" if "weight" not in fields else repr(fields["weight"])[:20]
            return Refused(text, f"its weight is {shown}; it must be 1, 2 or 3")
        fault = response_fault(text, responses, task, self.quote_words)
        return Refused(text, fault) if fault else Criterion(id="new", text=text, weight=weight)


def _schema(least: int, most: int | None) -> dict[str, object]:
    weight = {"type": "integer", "minimum": 1, "maximum": int(_TOP)}
    return list_schema("rubrics", {"criterion": {"type": "string"}, "weight": weight}, least, most)
