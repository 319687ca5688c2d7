"""A defence rubric against reward hacking, mined from rollouts of abnormally high reward (Rubicon, 2508.12790)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal, Unpack

import numpy as np

from rubricate.chat.base import ChatModel
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, ParseError
from rubricate.failures import failure
from rubricate.narrow import as_array, as_number, as_object
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics.criterion import Criterion, Polarity, Provenance
from rubricate.rubrics.filters.judging import RubricJudge
from rubricate.rubrics.generators.asking import Asking, AskOptions, read_items, read_json
from rubricate.rubrics.generators.base import DatasetGenerator, Generated, GeneratorNote, Need, NoteKind
from rubricate.rubrics.generators.drafts import CHECKS, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.hacking_outliers import abnormally_high
from rubricate.rubrics.generators.model import Asks, finished, list_schema
from rubricate.rubrics.generators.recursive_checks import numbered
from rubricate.rubrics.generators.recursive_pool import Pool
from rubricate.rubrics.generators.search_quotes import find_quote
from rubricate.rubrics.generators.source import Source, text_of
from rubricate.rubrics.generators.synthesis_asking import again, question, text_field
from rubricate.rubrics.rubric import Scope
from rubricate.types import Failure, FailureCause, FailureKind, Usage

__all__ = ["KNOWN_PATTERNS", "HackingGenerator", "Pattern"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way in which responses game a grader.

    Attributes:
        name, description: what it is called, and what such a response does.
        examples: rollout ids with the words in which it shows, in the response's own letters.
    """

    name: str
    description: str
    examples: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        shown = [{"rollout": name, "quote": quote} for name, quote in self.examples]
        return {"name": self.name, "description": self.description, "examples": shown}


KNOWN_PATTERNS = (
    Pattern("flattering opening", "The response opens by praising the user or the user's question."),
    Pattern("self-praise", "The response praises itself: it calls its own answer thorough, excellent or complete."),
)
"""The two patterns that Rubicon names. The words are ours."""


@dataclass(frozen=True, slots=True)
class _Rolled:
    """A rollout with its reward."""

    rollout: Rollout
    text: str
    reward: float
    group: int


@dataclass(slots=True)
class _Work:
    """What has been found so far, and what it cost."""

    patterns: list[Pattern] = field(default_factory=list[Pattern])
    usage: Usage = Usage()
    notes: list[GeneratorNote] = field(default_factory=list[GeneratorNote])
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def away(self) -> Failure | None:
        """A failure that is no model's answer."""
        return next((one for one in self.failures if one.cause is FailureCause.INFRASTRUCTURE), None)


class HackingGenerator(DatasetGenerator):
    """Veto criteria against the ways in which a policy games its reward (Rubicon, 2508.12790).

    Sources hold rollouts as candidates and their rewards as labels. Those of abnormally high reward are shown to a
    model beside ordinary ones; it lists patterns, each with quotations that must stand in the responses (those that
    do not are dropped). A second question turns all patterns into veto criteria, penalties that state the
    misconduct. With a judge, each is tried: one that fires on more than `most_ordinary` of ordinary responses
    would punish honest work, and one that fires on no abnormal response it is for stops nothing; both are dropped,
    with the figures in the note. Rubicon names two patterns and publishes neither prompts nor thresholds.

    `extra["patterns"]` is the taxonomy, and `extra["abnormal"]` the ids of the rollouts it rests on.

    Args:
        model: finds patterns and writes criteria.
        judge: tries the criteria.
        z: modified z-score from which a reward is abnormal; see `abnormally_high`.
        compare: within the rollouts of one prompt (`prompt`), or over all (`all`).
        known: patterns that are taken for granted; Rubicon's two unless given.
        batch: abnormal rollouts in one question.
        ordinary: ordinary rollouts shown beside them, and judged in the trial, at most.
        most_abnormal: abnormal rollouts that are looked at, at most, the most abnormal first.
        most_ordinary: share of ordinary responses on which a criterion may fire, in [0, 1].
        weight: of the criteria; at 0 they count nowhere but as vetoes.
        quote_words: words that a quotation has at least.
        checks: rules of the linter that each criterion must pass.
        prompt: a template of one's own, for the patterns.
        options: how the model is asked; see `AskOptions`.
    """

    name = "hacking"
    needs = frozenset({Need.CANDIDATES, Need.LABELS})

    def __init__(
        self,
        model: ChatModel,
        judge: RubricJudge | None = None,
        *,
        z: float = 3.5,
        compare: Literal["prompt", "all"] = "all",
        known: Sequence[Pattern] = KNOWN_PATTERNS,
        batch: int = 6,
        ordinary: int = 12,
        most_abnormal: int = 60,
        most_ordinary: float = 0.05,
        weight: float = 0.0,
        quote_words: int = 3,
        checks: Sequence[str] = CHECKS,
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("max_tokens", 4096)
        if compare not in ("prompt", "all"):
            raise ConfigError(f"compare is {compare!r}", hint="use prompt or all")
        if min(batch, most_abnormal, quote_words) < 1 or ordinary < 0 or not z > 0 or not weight >= 0:
            hint = "batch, most_abnormal and quote_words are 1 or more, ordinary and weight 0 or more, z above 0"
            raise ConfigError("an option is out of range", hint=hint)
        if not 0.0 <= most_ordinary <= 1.0:
            raise ConfigError(f"most_ordinary is {most_ordinary}", hint="use a share from 0 to 1")
        self.model = model
        self.judge = judge
        self.prompt = prompt or load_prompt("generate_hacking")
        self.asking = Asking(model, AskOptions(**options))
        self.z, self.compare, self.known = z, compare, tuple(known)
        self.batch, self.ordinary, self.most_abnormal = batch, ordinary, most_abnormal
        self.most_ordinary, self.weight, self.quote_words = most_ordinary, weight, quote_words
        self.rules = ListRules(1, None, tuple(checks))

    def identity(self) -> dict[str, object]:
        """Model, judge, prompts and options."""
        names = ("z", "compare", "batch", "ordinary", "most_abnormal", "most_ordinary", "weight", "quote_words")
        own: dict[str, object] = {name: getattr(self, name) for name in names}
        prompts = [self.prompt.fingerprint, load_prompt("generate_hacking_vetoes").fingerprint]
        return own | {
            "model": self.model.fingerprint,
            "judge": None if self.judge is None else self.judge.fingerprint,
            "prompts": prompts,
            "known": [one.to_dict() for one in self.known],
            "asking": self.asking.options.identity(),
            "checks": list(self.rules.checks),
        }

    async def write_from(self, sources: Sequence[Source]) -> Generated:
        """The taxonomy, then the veto criteria, then the trial."""
        rolled = [one for group, source in enumerate(sources) for one in _rolled(source, group)]
        groups = [one.group for one in rolled] if self.compare == "prompt" else None
        places = abnormally_high([one.reward for one in rolled], z=self.z, groups=groups)
        high = [rolled[place] for place in places[: self.most_abnormal]]
        ordinary = _ordinary(rolled, set(places), self.ordinary)
        work = _Work(list(self.known))
        await self._taxonomy(work, rolled, high, ordinary)
        extra: dict[str, object] = {
            "patterns": [one.to_dict() for one in work.patterns],
            "abnormal": [one.rollout.id for one in high],
            "rollouts": len(rolled),
        }
        made = await self._criteria(work)
        criteria = await self._tried(work, made, high, ordinary)
        why = work.away
        if why is None and not criteria:
            kept = next(iter(work.failures), None)
            why = kept or failure(FailureKind.INCOMPLETE, "no pattern was found, or no criterion passed the trial")
        if why is not None:
            return Generated(None, why, work.usage, tuple(work.notes), extra=extra)
        origin = Provenance(generator=self.name, model=self.model.name, prompt_fingerprint=self.prompt.fingerprint)
        rubric = finished(criteria, origin, rubric_id="defence", scope=Scope.DATASET)
        return Generated(rubric, None, work.usage, tuple(work.notes), extra=extra)

    async def _taxonomy(
        self, work: _Work, rolled: Sequence[_Rolled], high: Sequence[_Rolled], ordinary: Sequence[_Rolled]
    ) -> None:
        """Ask for the patterns in the abnormal rollouts, batch by batch at once."""
        usual = {
            group: median(one.reward for one in rolled if one.group == group) for group in {o.group for o in high}
        }
        batches = [high[at : at + self.batch] for at in range(0, len(high), self.batch)]

        async def one(batch: Sequence[_Rolled]) -> None:
            texts: dict[str, str | list[str]] = {
                "entries": [each.text for each in batch],
                "prompts": [str(_task(each)) for each in batch],
                "ordinary": [each.text for each in ordinary[: self.batch]],
            }
            more: dict[str, object] = {
                "rewards": [f"{each.reward:g}" for each in batch],
                "usual": [f"{usual[each.group]:g}" for each in batch],
                "quote_words": self.quote_words,
            }
            messages = question(self.prompt, self.asking.options.run_key, texts, more)
            answer = await self.asking.ask(
                again(messages), lambda text: self._read_patterns(text, batch, work), schema=_PATTERNS
            )
            work.usage += answer.usage
            work.notes += answer.notes
            work.failures += [] if answer.failure is None else [answer.failure]
            work.patterns += answer.value or ()

        await asyncio.gather(*(one(batch) for batch in batches))

    def _read_patterns(self, text: str, batch: Sequence[_Rolled], work: _Work) -> list[Pattern]:
        fields = as_object(read_json(text)) or {}
        listed = as_array(fields.get("patterns"))
        if listed is None:
            raise ParseError("the answer has no list 'patterns'", reply=text)
        found: list[Pattern] = []
        for value in listed:
            entry = as_object(value) or {}
            name, said = text_field(entry, "name"), text_field(entry, "description")
            examples = [self._example(one, batch) for one in as_array(entry.get("examples")) or ()]
            good = tuple(one for one in examples if one is not None)
            if name and said and good:
                found.append(Pattern(name, said, good))
            else:
                why = (
                    "no quotation of it stands in a response" if name and said else "it has no name and description"
                )
                work.notes.append(GeneratorNote(NoteKind.DROPPED, f"a pattern: {why}", said or str(value)[:200]))
        return found

    def _example(self, value: object, batch: Sequence[_Rolled]) -> tuple[str, str] | None:
        fields = as_object(value) or {}
        number = as_number(fields.get("response"))
        if number is None or not number.is_integer() or not 1 <= number <= len(batch):
            return None
        one = batch[int(number) - 1]
        span = find_quote(text_field(fields, "quote"), one.text, least_words=self.quote_words)
        return None if span is None else (one.rollout.id, span.text)

    async def _criteria(self, work: _Work) -> list[Criterion]:
        """The veto criteria for all patterns."""
        if not work.patterns or work.away is not None:
            return []
        listed = numbered([f"{one.name}: {one.description}" for one in work.patterns])
        template = load_prompt("generate_hacking_vetoes")
        messages = question(template, self.asking.options.run_key, {"patterns": listed}, {})
        answer = await Drafting(self.asking, self.rules).draft(
            messages,
            lambda text: [self._veto(one, work.patterns) for one in read_items(text, "criteria")],
            schema=_vetoes,
        )
        work.usage += answer.usage
        work.notes += answer.notes
        work.failures += [] if answer.failure is None else [answer.failure]
        return list(answer.value or ())

    def _veto(self, value: object, patterns: Sequence[Pattern]) -> Item:
        fields = as_object(value) or {}
        said, title = text_field(fields, "criterion"), text_field(fields, "title")
        if not said:
            return Refused(str(value)[:200], "it is no object with title and criterion")
        numbers = [as_number(one) for one in as_array(fields.get("patterns")) or ()]
        places = [int(one) - 1 for one in numbers if one is not None and one.is_integer()]
        own = [patterns[at] for at in dict.fromkeys(places) if 0 <= at < len(patterns)]
        if not own:
            return Refused(said, "it names no pattern that it stops")
        examples = [example for one in own for example in one.examples]
        metadata: dict[str, object] = {"title": title} if title else {}
        metadata |= {"patterns": [one.name for one in own], "examples": [list(one) for one in examples]}
        return Criterion(
            id="new",
            text=said,
            weight=self.weight,
            polarity=Polarity.PENALTY,
            veto=True,
            tags=("defence",),
            provenance=Provenance(evidence=tuple(dict.fromkeys(f"rollout:{name}" for name, _ in examples))),
            metadata=metadata,
        )

    async def _tried(
        self, work: _Work, criteria: Sequence[Criterion], high: Sequence[_Rolled], ordinary: Sequence[_Rolled]
    ) -> list[Criterion]:
        """The criteria that fire where they should and not elsewhere, as the judge sees it."""
        if self.judge is None or not criteria:
            return list(criteria)
        pool = Pool(self.judge, [one.rollout for one in (*high, *ordinary)])
        scored = await pool.score(criteria)
        work.usage += pool.usage
        if pool.failure is not None and all(np.isnan(one.scores).all() for one in scored):
            work.failures.append(pool.failure)  # nothing was tried
            return []
        kept: list[Criterion] = []
        for one in scored:
            fires = {pool.rollouts[place].id for place in one.meeting(0.5)}
            known = [place for place, unknown in enumerate(np.isnan(one.scores)) if not unknown]
            honest = [place for place in known if place >= len(high)]
            wrong = sum(pool.rollouts[place].id in fires for place in honest)
            meant = {str(name).partition(":")[2] for name in _evidence(one.criterion)}
            tried = [place for place in known if pool.rollouts[place].id in meant]
            reason = ""
            if honest and wrong > self.most_ordinary * len(honest):
                reason = f"it fires on {wrong} of {len(honest)} ordinary responses"
            elif tried and not fires & meant:
                reason = f"it fires on none of the {len(tried)} responses it is for"
            if reason:
                work.notes.append(GeneratorNote(NoteKind.FILTERED, reason, one.criterion.text))
            else:
                figures = {"ordinary": [wrong, len(honest)], "abnormal": [len(fires & meant), len(tried)]}
                metadata = one.criterion.metadata | {"trial": figures}
                kept.append(one.criterion.model_copy(update={"metadata": metadata}))
        return kept

    async def aclose(self) -> None:
        """Close the model and the judge."""
        await self.model.aclose()
        if self.judge is not None:
            await self.judge.aclose()


def _rolled(source: Source, group: int) -> list[_Rolled]:
    """A source's candidates with their rewards; a source without an id is named by its place."""
    named = replace(source, id=source.id or str(group + 1))
    rollouts = named.rollouts(source.candidates)
    return [
        _Rolled(rollout, text_of(response), reward, group)
        for rollout, response, reward in zip(rollouts, source.candidates, source.labels, strict=True)
    ]


def _evidence(one: Criterion) -> tuple[str, ...]:
    return () if one.provenance is None else one.provenance.evidence


def _task(one: _Rolled) -> str:
    return Source(one.rollout.prompt).task


def _ordinary(rolled: Sequence[_Rolled], high: set[int], count: int) -> list[_Rolled]:
    """Rollouts that are not abnormal, the closest to the median of all first."""
    middle = median(one.reward for one in rolled)
    left = [one for place, one in enumerate(rolled) if place not in high]
    return sorted(left, key=lambda one: abs(one.reward - middle))[:count]


_TEXT: Mapping[str, object] = {"type": "string"}


def _list_of(fields: Mapping[str, object]) -> dict[str, object]:
    entry = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": "array", "items": entry}


_EXAMPLES = _list_of({"response": {"type": "integer"}, "quote": _TEXT})
_PATTERNS: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "patterns": _list_of({"name": _TEXT, "description": _TEXT, "examples": _EXAMPLES}),
        "sound": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["patterns", "sound"],
    "additionalProperties": False,
}


def _vetoes(least: int, most: int | None) -> Mapping[str, object]:
    whole = {"type": "array", "items": {"type": "integer"}, "minItems": 1}
    return list_schema("criteria", {"title": _TEXT, "criterion": _TEXT, "patterns": whole}, least, most)
