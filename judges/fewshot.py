"""Few-shot examples in judges' prompts: balanced by verdict, chosen by seed, never the item that is judged."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from pydantic import ValidationError

from rubricate.chat.base import Message
from rubricate.data.io import Row, read_rows, write_jsonl
from rubricate.data.records import Rollout, Turn, parse_turns
from rubricate.errors import ConfigError, ContextOverflowError, FormatError
from rubricate.judges.base import ModelJudge
from rubricate.judges.reply import question_of
from rubricate.judges.view import prompt_text
from rubricate.narrow import as_number, as_object
from rubricate.rubrics import Criterion, NumericScale
from rubricate.types import fingerprint

__all__ = ["Example", "Examples", "Prefix", "Shots", "yes_or_no"]

_FIELDS = ("prompt", "response", "reference", "criterion", "verdict", "reason")


@dataclass(frozen=True, slots=True)
class Example:
    """A verdict that is right, to be shown to a judge.

    Attributes:
        rollout: prompt and response.
        criterion: what was judged; its id, weight and polarity are not shown.
        verdict: in the words of the criterion's scale: `met` or `unmet`, a level's label, a number, or, where the
            criterion has a condition, `not_applicable`.
        reason: why, in a sentence; shown to judges that give reasons.

    Raises ConfigError for a verdict that the criterion does not allow.
    """

    rollout: Rollout
    criterion: Criterion
    verdict: str | float
    reason: str = ""

    def __post_init__(self) -> None:
        question, scale = question_of(self.criterion, "C1"), self.criterion.scale
        number = as_number(self.verdict)
        if number is not None and isinstance(scale, NumericScale):
            fits = scale.low <= number <= scale.high and (number.is_integer() or not scale.integer)
        else:
            fits = self.verdict in question.choices
        if not fits:
            allowed = question.allowed or ", ".join(f'"{choice}"' for choice in question.choices)
            raise ConfigError(
                f"the verdict {self.verdict!r} of an example is none that its criterion "
                f"{self.criterion.text[:60]!r} allows",
                hint=f"use {allowed}",
            )

    def to_record(self) -> dict[str, object]:
        """As a JSON-ready record; what is not shown to a judge (ids, metadata) is left out."""
        rollout = self.rollout
        record: dict[str, object] = {"prompt": _plain(rollout.prompt), "response": _plain(rollout.response)}
        if rollout.reference is not None:
            record["reference"] = rollout.reference
        record["criterion"] = self.criterion.model_dump(mode="json")
        record["verdict"] = self.verdict
        if self.reason:
            record["reason"] = self.reason
        return record


class Examples:
    """Examples for a judge's prompt, of which k are shown.

    The k are balanced by verdict, as far as the pool has enough of each, and chosen and ordered by the seed. They
    are the same for every item, so that the prefix stays shared, but for an item that is in the pool itself (same
    prompt and response): it sees others in place of its own.

    Args:
        pool: examples to choose from.
        k: how many are shown; at most as many as the pool has.
        seed: of the choice and the order.

    Raises ConfigError for a k that the pool cannot fill.

    Attributes:
        order: the pool's indices as they are used: shuffled by the seed, and each verdict in turn.
    """

    def __init__(self, pool: Sequence[Example], *, k: int = 4, seed: int = 0) -> None:
        if not 1 <= k <= len(pool):
            raise ConfigError(f"{k} examples are to be shown of {len(pool)}", hint="use 1 to as many as there are")
        self.pool = tuple(pool)
        self.k = k
        self.seed = seed
        self.order = self._dealt()

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, k: int = 4, seed: int = 0) -> Examples:
        """Read a pool from a file of records: prompt, response, criterion (a text, or a criterion's fields) and
        verdict, with reference and reason where there are some.

        Raises FormatError, naming the line and field, and ConfigError as the class does.
        """
        return cls([_read(row) for row in read_rows(path)], k=k, seed=seed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pool as JSON Lines, atomically."""
        write_jsonl(path, [example.to_record() for example in self.pool])

    @property
    def fingerprint(self) -> str:
        """Of the pool and the options."""
        return fingerprint([[example.to_record() for example in self.pool], self.k, self.seed])

    def _dealt(self) -> tuple[int, ...]:
        rng = random.Random(f"examples:{self.seed}")
        classes: dict[str, list[int]] = {}
        for index, example in enumerate(self.pool):
            classes.setdefault(str(example.verdict), []).append(index)
        hands = [classes[name] for name in sorted(classes)]
        for hand in hands:
            rng.shuffle(hand)
        rng.shuffle(hands)
        rounds = max(len(hand) for hand in hands)
        return tuple(hand[turn] for turn in range(rounds) for hand in hands if turn < len(hand))


@dataclass(frozen=True, slots=True)
class Prefix:
    """What all requests about one response begin with.

    Attributes:
        shared: the user message up to the item.
        system: the system message with examples; None for the judge's own.
    """

    shared: str
    system: Message | None = None

    def messages(self, judge: ModelJudge, item: str) -> tuple[Message, ...]:
        """The messages of a request about one item."""
        own = judge.messages(self.shared, item)
        return own if self.system is None else (self.system, *own[1:])


class Shots:
    """A judge's examples as system messages, which are rendered once for each choice.

    Args:
        judge: the judge; its template's system block must list `examples`.
        examples: what to choose from.
        item: renders the item part of an example as the judge renders its own.
        reply: the right reply to it, in the judge's format.

    Raises ConfigError where the template shows no examples, or an example is longer than the judge takes.
    """

    def __init__(
        self,
        judge: ModelJudge,
        examples: Examples,
        *,
        item: Callable[[Example], str],
        reply: Callable[[Example], str],
    ) -> None:
        if "examples" not in judge.prompt.source:
            raise ConfigError(
                f"the prompt {judge.prompt.name!r} shows no examples",
                hint="list `examples` in its system block (each has `shown` and `reply`), or leave them out",
            )
        for number, example in enumerate(examples.pool, start=1):
            try:
                judge.material(example.rollout)
            except ContextOverflowError as error:
                raise ConfigError(f"example {number} cannot be shown: {error.message}", hint=error.hint) from None
        self._judge = judge
        self._examples = examples
        self._item = item
        self._reply = reply
        self._items = [self._key(example.rollout) for example in examples.pool]
        self._rendered: dict[tuple[int, ...], Message] = {}

    def system(self, rollout: Rollout) -> Message:
        """The system message for requests about this rollout."""
        item, examples = self._key(rollout), self._examples
        picked = tuple(index for index in examples.order if self._items[index] != item)[: examples.k]
        if picked not in self._rendered:
            chosen = [examples.pool[index] for index in picked]
            shown = [{"shown": self._shown(example), "reply": self._reply(example)} for example in chosen]
            values = {**self._judge.system_values(), "examples": shown}
            self._rendered[picked] = Message("system", self._judge.prompt.render("system", values).strip())
        return self._rendered[picked]

    def _shown(self, example: Example) -> str:
        judge = self._judge
        shared = judge.prompt.render("shared", judge.material(example.rollout).values())
        return shared + self._item(example).rstrip()

    def _key(self, rollout: Rollout) -> object:
        return prompt_text(rollout).strip(), self._judge.view(rollout).strip()


def yes_or_no(example: Example) -> str:
    """An example's verdict as the answer to a yes/no question. Raises ConfigError where it is none."""
    if example.verdict not in ("met", "unmet") or example.criterion.condition:
        raise ConfigError(
            f"a yes/no judge cannot show the example with the verdict {example.verdict!r}",
            hint="use binary criteria without a condition",
        )
    return "yes" if example.verdict == "met" else "no"


def _plain(value: str | tuple[Turn, ...]) -> object:
    """A prompt or response as `parse_turns` reads it."""
    if isinstance(value, str):
        return value
    return [
        {
            **{name: field for name, field in asdict(turn).items() if field and name != "tool_calls"},
            "role": turn.role,
            **(
                {"tool_calls": [{"name": n, "arguments": a} for n, a in turn.tool_calls]} if turn.tool_calls else {}
            ),
        }
        for turn in value
    ]


def _read(row: Row) -> Example:
    record = row.record
    for name in record:
        if name not in _FIELDS:
            raise _wrong(row, f"unknown field; an example has {', '.join(_FIELDS)}", name)
    try:
        prompt, response = (parse_turns(record.get(name), name) for name in ("prompt", "response"))
    except FormatError as error:
        raise _wrong(row, error.detail, error.field) from None
    reference, reason, verdict = record.get("reference"), record.get("reason", ""), record.get("verdict")
    if reference is not None and not isinstance(reference, str):
        raise _wrong(row, "expected text", "reference")
    if not isinstance(reason, str):
        raise _wrong(row, "expected text", "reason")
    number = as_number(verdict)
    if number is None and not isinstance(verdict, str):
        raise _wrong(row, "expected a verdict in the words of the criterion's scale", "verdict")
    criterion = _criterion(row, record.get("criterion"))
    said = verdict if isinstance(verdict, str) else number
    assert said is not None
    try:
        return Example(Rollout(prompt, response, reference), criterion, said, reason)
    except ConfigError as error:
        raise _wrong(row, error.message, "verdict", error.hint) from None


def _criterion(row: Row, value: object) -> Criterion:
    fields: Mapping[str, object] | None = {"text": value} if isinstance(value, str) else as_object(value)
    if fields is None:
        raise _wrong(row, "expected a text or a criterion's fields", "criterion")
    try:
        return Criterion.model_validate({"id": "example", **fields})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(["criterion", *(str(part) for part in first["loc"])])
        raise _wrong(row, first["msg"], place) from None


def _wrong(row: Row, message: str, field: str, hint: str = "") -> FormatError:
    return FormatError(message, source=row.source, line=row.line, field=field, hint=hint)
