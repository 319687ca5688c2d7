"""The listwise judge: a group of responses in one call, under drawn labels in a drawn order, scored or ranked."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion
from rubricate.comparisons import GroupScores, ranks_of
from rubricate.data.records import Rollout
from rubricate.errors import AnswerError, ChatError, ConfigError, ParseError
from rubricate.failures import ASK_AGAIN
from rubricate.judges.base import Shown, failure, failure_of
from rubricate.judges.pairwise_base import GroupModelJudge, SharedMaterial, ids_of
from rubricate.judges.parsing.agreed import agreed
from rubricate.judges.parsing.reading import read_reply as split_reply
from rubricate.judges.reply import Question, question_of, read_reply, reply_schema
from rubricate.narrow import as_array, as_object
from rubricate.prompts import Prompt
from rubricate.rubrics import Criterion, NumericScale, Rubric
from rubricate.types import Failure, FailureKind, Usage, fingerprint

__all__ = ["ListwiseJudge"]

# Two capitals that make no word, so that no label can be taken for a part of a text or a grade.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_LABELS = [one + two for one in _LETTERS for two in _LETTERS if one != two]
_COMPLAINTS = {
    FailureKind.EMPTY: "it was empty",
    FailureKind.LENGTH: "it was too long; keep each reason to one sentence",
    FailureKind.AMBIGUOUS: "it named a label twice, a label that is not there, or contradicted itself",
    FailureKind.OUT_OF_RANGE: "a score was outside the scale",
    FailureKind.INCOMPLETE: "it left out a label, or did not close as asked",
}


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Responses that are shown together: places in the group by label, in the order shown."""

    material: SharedMaterial
    rubric: Rubric | None
    places: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a reply, or all replies about a chunk, brought: answers and failures by label."""

    scores: Mapping[str, float]
    reasons: Mapping[str, str]
    failures: Mapping[str, Failure]
    usage: Usage = Usage()


class ListwiseJudge(GroupModelJudge):
    """Shows a chat model a whole group and asks for scores, or for a ranking.

    Every label must come back once. A reply with a label twice or one that is not there is asked for again as a
    whole; a response that was left out, or whose score contradicts itself, is asked for again alone, on the same
    prefix. What stays without a score fails: those responses alone in `scores` mode, the group in `ranks` mode.

    Args:
        mode: `scores` (whole numbers from `low` to `high`) or `ranks` (a score is then the share of the others
            that a response is ahead of, ties half, in [0, 1]).
        low, high: ends of the scale of `scores`.
        max_group: responses a call at most; a larger group is split by lot into parts of like size. Scores of
            different parts compare only as far as the judge keeps to its scale; ranks cannot be split.
        seed: of labels, order and parts; they follow from it, the prompt and `sample`.
        max_attempts: calls that one response takes part in at most, the first included.
        max_tokens: tokens for a reply with one response; each further one adds `tokens_per_response`.
        json_schema: constrain decoding where the back end can; a re-ask goes without.
        sample: number of this judge among repeated ones: another draw, and caches keep the answers apart.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        mode: Literal["scores", "ranks"] = "scores",
        low: int = 1,
        high: int = 10,
        max_group: int = 8,
        seed: int = 0,
        prompt: Prompt | None = None,
        max_attempts: int = 3,
        max_tokens: int = 400,
        tokens_per_response: int = 150,
        json_schema: bool = True,
        temperature: float = 0.0,
        sample: int = 0,
        fenced: bool = True,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or "listwise_judge", fenced=fenced, **shown)
        if mode not in ("scores", "ranks"):
            raise ConfigError(f"mode is {mode!r}", hint="use 'scores' or 'ranks'")
        if low >= high:
            raise ConfigError(f"the scale goes from {low} to {high}", hint="low must be smaller than high")
        if not 1 <= max_group <= len(_LABELS) or max_attempts < 1:
            raise ConfigError(
                f"max_group is {max_group}, max_attempts {max_attempts}",
                hint=f"use 1 to {len(_LABELS)} responses and 1 or more attempts",
            )
        self.mode = mode
        self.low = low
        self.high = high
        self.max_group = max_group
        self.seed = seed
        self.max_attempts = max_attempts
        self.max_tokens = max_tokens
        self.tokens_per_response = tokens_per_response
        self.json_schema = json_schema
        self.temperature = temperature
        self.sample = sample

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("mode", "low", "high", "max_group", "seed", "max_attempts", "max_tokens", "tokens_per_response")
        names += ("json_schema", "temperature", "sample")
        return super().identity() | {name: getattr(self, name) for name in names}

    async def score_group(self, rollouts: Sequence[Rollout], rubric: Rubric | None = None) -> GroupScores:
        """Scores of the responses of a group, by rollout id (by place from 0 where none has an id).

        Raises ConfigError for a group that this judge can never take: ids that repeat, different prompts, or in
        `ranks` mode more than `max_group` responses.
        """
        ids = ids_of(rollouts)
        if self.mode == "ranks" and len(rollouts) > self.max_group:
            raise ConfigError(
                f"{len(rollouts)} responses cannot be ranked {self.max_group} a call",
                hint="raise max_group, use mode='scores', or a Tournament",
            )
        if not rollouts:
            return self._scores([], {}, {}, {}, Usage())
        material = self.material(rollouts)
        failures = dict(material.overflows)
        fitting = [place for place in range(len(rollouts)) if place not in failures]
        if self.mode == "ranks" and len(fitting) == 1:
            failures[fitting.pop()] = failure(FailureKind.INCOMPLETE, "one response alone has no rank")
        chunks = self._chunks(material, rubric, fitting)
        scores, reasons, usage = dict[int, float](), dict[int, str](), Usage()
        for chunk, found in zip(chunks, await asyncio.gather(*map(self._judge, chunks)), strict=True):
            usage += found.usage
            for label, place in chunk.places.items():
                if label in found.scores:
                    scores[place], reasons[place] = found.scores[label], found.reasons.get(label, "")
                else:
                    failures[place] = found.failures[label]
        return self._scores(ids, scores, failures, reasons, usage)

    def _scores(
        self,
        ids: Sequence[str],
        scores: Mapping[int, float],
        failures: Mapping[int, Failure],
        reasons: Mapping[int, str],
        usage: Usage,
    ) -> GroupScores:
        low, high = (self.low, self.high) if self.mode == "scores" else (0, 1)
        return GroupScores(
            {id: scores.get(place) for place, id in enumerate(ids)},
            {ids[place]: why for place, why in sorted(failures.items())},
            low,
            high,
            {ids[place]: reason for place, reason in sorted(reasons.items()) if reason},
            samples=int(bool(scores)),
            failed_samples=int(bool(failures) and not scores),
            usage=usage,
            judge=self.name,
        )

    def _chunks(self, material: SharedMaterial, rubric: Rubric | None, places: list[int]) -> list[_Chunk]:
        """The group in a drawn order, in parts of like size, under drawn labels."""
        draw = random.Random(fingerprint([self.seed, material.plain_task, self.sample]))
        draw.shuffle(places)
        parts = -(-len(places) // self.max_group)
        cuts = [len(places) * n // parts for n in range(parts + 1)] if parts else []
        return [
            _Chunk(material, rubric, dict(zip(draw.sample(_LABELS, end - start), places[start:end], strict=True)))
            for start, end in pairwise(cuts)
        ]

    async def _judge(self, chunk: _Chunk) -> _Found:
        """Ask until every label has a score, or the attempts are used up, or asking is no use."""
        scores, reasons, usage = dict[str, float](), dict[str, str](), Usage()
        wanted, failures = list(chunk.places), dict[str, Failure]()
        for attempt in range(self.max_attempts):
            why = failures.get(wanted[0])
            (reply,) = await self.model.complete_many([self._request(chunk, wanted, attempt, why)])
            found = self._read(chunk, wanted, reply)
            usage += found.usage
            scores |= found.scores
            reasons |= found.reasons
            failures = dict(found.failures)
            wanted = [label for label in wanted if label in failures]
            if not any(failures[label].kind in ASK_AGAIN for label in wanted):
                break
        return _Found(scores, reasons, failures, usage)

    def _request(self, chunk: _Chunk, wanted: Sequence[str], attempt: int, why: Failure | None) -> ChatRequest:
        responses = [
            {"label": label, "text": chunk.material.response(place, f"response_{label}")}
            for label, place in chunk.places.items()
        ]
        complaint = _COMPLAINTS.get(why.kind, "it was not the JSON object that was asked for") if why else ""
        # All of them are asked for again where ranks are wanted, since a rank is nothing alone.
        item = {"responses": responses, "wanted": list(wanted), "complaint": complaint}
        more = {"mode": self.mode, "low": self.low, "high": self.high}
        tokens = self.max_tokens + self.tokens_per_response * (len(wanted) - 1)
        constrain = self.json_schema and attempt == 0 and self.model.capabilities.json_schema
        scored = self.mode == "scores"
        schema = reply_schema(self._questions(wanted)) if scored else _rank_schema(wanted)
        return ChatRequest(
            self.request_messages(self.shared_values(chunk.material, chunk.rubric), item, **more),
            max_tokens=tokens * (3 if why is not None and why.kind is FailureKind.LENGTH else 1),
            temperature=self.temperature,
            json_schema=schema if constrain else None,
            sample=self.sample * self.max_attempts + attempt,
        )

    def _questions(self, labels: Sequence[str]) -> list[Question]:
        scale = NumericScale(low=self.low, high=self.high, integer=True)
        return [question_of(Criterion(id=label, text=label, scale=scale), label) for label in labels]

    def _read(self, chunk: _Chunk, wanted: Sequence[str], reply: Completion | ChatError) -> _Found:
        if isinstance(reply, ChatError):
            return _Found({}, {}, dict.fromkeys(wanted, failure_of(reply)))
        try:
            text = reply.require_text(self.model.name)
            quoted = chunk.material.quoted
            record = agreed(lambda said: _record(said, quoted), text, quoted, _decided)
            if self.mode == "ranks":
                scores, reasons = _read_ranks(record, wanted, text)
                return _Found(scores, reasons, {}, reply.usage)
            _check_labels(_ids_in(record.get("verdicts")), chunk.places, text)
            _check_labels([label.strip() for label in as_object(record.get("final")) or {}], chunk.places, text)
            answers, failures = read_reply(text, self._questions(wanted), chunk.material.quoted)
        except (AnswerError, ParseError) as error:
            return _Found({}, {}, dict.fromkeys(wanted, failure_of(error)), reply.usage)
        scores = {label: float(answer.raw) for label, answer in answers.items()}
        return _Found(scores, {label: a.reason for label, a in answers.items()}, failures, reply.usage)


def _record(text: str, quoted: Sequence[str]) -> Mapping[str, object]:
    """The one JSON object of a reply that is not copied from a response."""
    found = [record for part in split_reply(text, quoted).structures if (record := as_object(part.value))]
    if len(found) != 1:
        kind = "incomplete" if not found else "ambiguous"
        raise ParseError(f"the reply holds {len(found)} JSON objects", kind=kind, reply=text)
    return found[0]


def _decided(record: Mapping[str, object]) -> list[object]:
    """What of a record decides."""
    return [record.get(key) for key in ("ranking", "best", "final")]


def _ids_in(entries: object) -> list[str]:
    records = [as_object(entry) or {} for entry in as_array(entries) or ()]
    return [str(record.get("id", "")).strip() for record in records]


def _check_labels(labels: Sequence[str], known: Collection[str], text: str) -> None:
    """Raises ParseError for a label that occurs twice or is not there: who is meant is then not plain."""
    wrong = [label for label, times in Counter(labels).items() if times > 1 or label not in known]
    if wrong:
        raise ParseError(f"labels twice or unknown: {', '.join(wrong)}", kind="ambiguous", reply=text)


def _read_ranks(
    record: Mapping[str, object], labels: Sequence[str], text: str
) -> tuple[dict[str, float], dict[str, str]]:
    """The share of the others that each label is ahead of, ties half, in [0, 1]; reasons by label."""
    tiers = [_tier(item) for item in as_array(record.get("ranking")) or ()]
    listed = [label for tier in tiers for label in tier]
    _check_labels(listed, labels, text)
    notes = record.get("notes")
    _check_labels(_ids_in(notes), labels, text)
    without = [label for label in labels if label not in listed]
    if without:
        raise ParseError(f"the ranking leaves out {', '.join(without)}", kind="incomplete", reply=text)
    if "best" not in record:
        raise ParseError("the reply does not close with the best label", kind="incomplete", reply=text)
    if set(_tier(record["best"])) != set(tiers[0]):
        raise ParseError("the closing label is not the first of the ranking", kind="ambiguous", reply=text)
    ranks = ranks_of({label: -float(n) for n, tier in enumerate(tiers) for label in tier})
    scores = {label: (len(labels) - rank) / (len(labels) - 1) for label, rank in ranks.items() if rank is not None}
    told = [as_object(note) or {} for note in as_array(notes) or ()]
    return scores, {str(note.get("id")).strip(): str(note.get("reason", "")) for note in told}


def _tier(item: object) -> list[str]:
    return [str(label).strip() for label in (as_array(item) if not isinstance(item, str) else None) or (item,)]


def _rank_schema(labels: Sequence[str]) -> dict[str, object]:
    """JSON schema of a ranking. The reader checks that every label occurs once, which a schema cannot say."""
    label = {"type": "string", "enum": list(labels)}
    tier = {"anyOf": [label, {"type": "array", "items": label, "minItems": 2}]}
    note = {
        "type": "object",
        "properties": {"id": label, "reason": {"type": "string"}},
        "required": ["id", "reason"],
    }
    return {
        "type": "object",
        "properties": {
            "notes": {"type": "array", "items": note, "minItems": len(labels), "maxItems": len(labels)},
            "ranking": {"type": "array", "items": tier, "minItems": 1},
            "best": tier,
        },
        "required": ["notes", "ranking", "best"],
        "additionalProperties": False,
    }
