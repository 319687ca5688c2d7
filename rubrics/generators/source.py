"""What rubrics are generated from: a prompt with what is known about it, and reading it out of rows.

Besides the columns of `rubricate.data.columns` (prompt, system, reference, id), a row may have:

| role | accepted columns | value |
|---|---|---|
| chosen, rejected | `chosen`, `rejected` | text or messages: a preference pair |
| first, second | `response_a`, `response_b`; `output_1`, `output_2`; `response_1`, `response_2` | a pair |
| winner | `winner`, `label`, `preference` | 1 or 2, A or B, or a column's name; 0 or "tie" makes no pair |
| ranked | `ranked`, `ranked_responses` | responses, best first |
| responses | `candidates`, `responses`, `completions`, `outputs`, or one `response` | candidates, not ranked |
| labels | `labels`, `scores`, `label_scores` | a number a candidate, higher is better |
| ranks | `ranks`, `label_rank`, `label_ranks` | a rank a candidate, 1 is best |
| rubrics | `rubric`, `rubrics` | read only where the caller asks: rubrics to start from |

A pair without a prompt column has its prompt in `chosen`, where that holds messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from rubricate.data.columns import COLUMNS, Columns, listed_value, read_identity, read_prompt, read_reference
from rubricate.data.io import Row, read_rows
from rubricate.data.records import Preference, Rollout, Turn, parse_turns
from rubricate.data.turns import prompt_of, turns_text
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.rubrics.rubric import Rubric

__all__ = [
    "SOURCE_COLUMNS",
    "Source",
    "Text",
    "read_sources",
    "source_from_record",
    "source_from_row",
    "text_of",
]

Text = str | tuple[Turn, ...]

_FIRST = ("response_a", "output_1", "response_1")
_SECOND = ("response_b", "output_2", "response_2")

SOURCE_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "prompt": COLUMNS["prompt"],
        "system": COLUMNS["system"],
        "reference": COLUMNS["reference"],
        "id": COLUMNS["id"],
        "chosen": ("chosen",),
        "rejected": ("rejected",),
        "first": _FIRST,
        "second": _SECOND,
        "winner": ("winner", "label", "preference"),
        "ranked": ("ranked", "ranked_responses"),
        "responses": ("candidates", *COLUMNS["responses"]),
        "response": COLUMNS["response"],
        "labels": ("labels", "scores", "label_scores"),
        "ranks": ("ranks", "label_rank", "label_ranks"),
    }
)
"""Roles and the columns accepted for each."""

_WINNERS = {"1": 0, "a": 0, "2": 1, "b": 1}
_TIES = frozenset({"0", "tie", "both", "c", "equal"})


@dataclass(frozen=True, slots=True)
class Source:
    """A prompt, and what is known about it.

    Attributes:
        prompt: the request, as text or as the turns of a conversation that ends with the user's.
        reference: a reference answer.
        pairs: preference pairs on this prompt.
        ranked: responses, best first.
        candidates: responses that are not ranked.
        labels: a number for each candidate, higher is better; empty where there are none.
        rubrics: rubrics to start from: to refine, to merge.
        id: name of the row, for people and for resuming.
        metadata: anything else; generators do not show it to models.

    Raises ConfigError where labels and candidates are not equally many.
    """

    prompt: Text
    reference: str | None = None
    pairs: tuple[Preference, ...] = ()
    ranked: tuple[Text, ...] = ()
    candidates: tuple[Text, ...] = ()
    labels: tuple[float, ...] = ()
    rubrics: tuple[Rubric, ...] = ()
    id: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        if self.labels and len(self.labels) != len(self.candidates):
            raise ConfigError(
                f"{len(self.labels)} labels for {len(self.candidates)} candidates", hint="give a label a candidate"
            )

    @property
    def task(self) -> str:
        """The prompt as one text, as judges see it."""
        return prompt_of(self.prompt)

    @property
    def responses(self) -> tuple[Text, ...]:
        """Every response of the row, each once: ranked ones, candidates, the pairs' chosen and rejected ones."""
        paired = [text for pair in self.pairs for text in (pair.chosen, pair.rejected)]
        return tuple(dict.fromkeys((*self.ranked, *self.candidates, *paired)))

    def rollouts(self, responses: Sequence[Text] | None = None) -> list[Rollout]:
        """Responses as judges take them (every response of the row unless given), ids by place."""
        listed = self.responses if responses is None else responses
        return [
            Rollout(self.prompt, response, self.reference, f"{self.id}#{place}")
            for place, response in enumerate(listed)
        ]


def text_of(response: Text) -> str:
    """A response as one text; the turns of a trajectory keep their roles."""
    if isinstance(response, str):
        return response
    if len(response) == 1 and response[0].role == "assistant" and not response[0].tool_calls:
        return response[0].content
    return turns_text(response)


def source_from_record(
    record: Mapping[str, object],
    *,
    default_id: str = "",
    columns: Mapping[str, str] | None = None,
    rubrics: Sequence[Rubric] = (),
) -> Source:
    """The source that a record is; see the module's table.

    Args:
        record: column names and values.
        default_id: id of a record that has none.
        columns: role and column, where several columns could play the role.
        rubrics: rubrics of this row that the caller has read.

    Raises FormatError naming the field, ConfigError for a role that does not exist.
    """
    columns_ = Columns(record, columns or {}, SOURCE_COLUMNS)
    prompt, answered = _prompt(columns_)
    reference = read_reference(*columns_.take("reference"))
    name = read_identity(*columns_.take("id")) or default_id
    pair = _chosen(columns_) or _labelled(columns_)
    pairs = () if pair is None else (Preference(prompt, *pair, reference, name),)
    ranked = _texts(*columns_.take("ranked"))
    candidates = _texts(*columns_.take("responses"))
    single, response = columns_.take("response")
    if response is not None and not candidates:
        candidates = (_text(response, single),)
    if answered is not None and not candidates:
        candidates = (answered,)
    labels = _labels(columns_, len(candidates))
    rest = columns_.rest()
    return Source(prompt, reference, pairs, ranked, candidates, labels, tuple(rubrics), name, rest)


def source_from_row(
    row: Row, *, columns: Mapping[str, str] | None = None, rubrics: Sequence[Rubric] = ()
) -> Source:
    """As `source_from_record`; a row without an id has its line for one. Errors name the row's file and line."""
    try:
        return source_from_record(row.record, default_id=str(row.line), columns=columns, rubrics=rubrics)
    except FormatError as error:
        raise FormatError(
            error.detail, source=row.source, line=row.line, field=error.field, hint=error.hint
        ) from None


def read_sources(
    path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None
) -> Iterator[tuple[Row, Source]]:
    """Each row of a file with its source, read one at a time. Ids may repeat: keeping them apart is the caller's.

    Raises FormatError as `read_rows` and `source_from_record` do, ConfigError for a role that does not exist.
    """
    for row in read_rows(path):
        yield row, source_from_row(row, columns=columns)


def _prompt(columns: Columns) -> tuple[Text, Text | None]:
    """The prompt, and the response that came with it; from the messages in `chosen` where there is no other."""
    chosen = columns.record.get(columns.find("chosen"))
    if columns.find("prompt") or isinstance(chosen, str) or chosen is None:
        return read_prompt(columns, response=False)
    name = columns.find("chosen")
    turns = parse_turns(listed_value(chosen, name), name)
    before = _split(turns)[0] if not isinstance(turns, str) else ()
    if not before:
        raise columns.missing(["prompt"])
    return before, None


def _split(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """The turns up to the last one of the user's, and those after it."""
    last = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=-1)
    return turns[: last + 1], turns[last + 1 :]


def _text(value: object, field_name: str) -> Text:
    """A response: text, a message, or messages, of which those after the user's last turn count."""
    message = as_object(value)
    if message is not None and "role" not in message:
        held = [name for name in ("content", "text", *COLUMNS["response"]) if name in message]
        if not held:
            hint = f"fields here: {', '.join(message)}"
            raise FormatError("expected a response, got an object without one", field=field_name, hint=hint)
        value, message, field_name = message[held[0]], None, f"{field_name}.{held[0]}"
    turns = parse_turns([message] if message is not None else value, field_name)
    after = turns if isinstance(turns, str) else _split(turns)[1]
    if not (after.strip() if isinstance(after, str) else after):
        raise FormatError("the response is empty", field=field_name)
    if not isinstance(after, str) and len(after) == 1 and not after[0].tool_calls and not after[0].reasoning:
        return after[0].content
    return after


def _texts(field_name: str, value: object) -> tuple[Text, ...]:
    if value is None or value == "":
        return ()
    listed = as_array(listed_value(value, field_name))
    if listed is None:
        raise FormatError(f"expected a list of responses, got {type(value).__name__}", field=field_name)
    return tuple(_text(item, f"{field_name}[{place}]") for place, item in enumerate(listed))


def _chosen(columns: Columns) -> tuple[str, str] | None:
    texts: list[str] = []
    missing = [role for role in ("chosen", "rejected") if columns.record.get(columns.find(role)) in (None, "")]
    for role in ("chosen", "rejected"):
        name, value = columns.take(role)
        if len(missing) == 1:
            raise FormatError(f"the pair has no {missing[0]} response", field=missing[0])
        if not missing:
            texts.append(text_of(_text(listed_value(value, name), name)))
    return None if missing else (texts[0], texts[1])


def _labelled(columns: Columns) -> tuple[str, str] | None:
    """The pair of two columns of which a third names the better one; None where they tie, or are not there."""
    places = [place for place, name in enumerate(_FIRST) if name in columns.record]
    first = columns.find("first")
    second = columns.find("second") if not places else _SECOND[places[0]]
    if not first or second not in columns.record:
        return None
    winner, value = columns.take("winner")
    columns.used |= {first, second}
    if not winner or value is None:
        raise FormatError("nothing says which response is better", field="winner", hint="add a column winner")
    said = re.sub(r"^(?:response|output|model|answer)?[ _]*", "", str(value).strip(" []").casefold())
    texts = [text_of(_text(columns.record[name], name)) for name in (first, second)]
    place = {first: 0, second: 1}.get(str(value), _WINNERS.get(said))
    if place is None and said not in _TIES:
        hint = "use 1 or 2, A or B, the column's name, or 0 for a tie"
        raise FormatError(f"the better response is {str(value)[:20]!r}", field=winner, hint=hint)
    return None if place is None else (texts[place], texts[1 - place])


def _labels(columns: Columns, count: int) -> tuple[float, ...]:
    for role, sign in (("labels", 1.0), ("ranks", -1.0)):
        name, value = columns.take(role)
        listed = as_array(listed_value(value, name)) if name else None
        if listed is None:
            continue
        numbers = [as_number(item) for item in listed]
        if None in numbers:
            raise FormatError("expected numbers", field=f"{name}[{numbers.index(None)}]")
        if len(numbers) != count:
            raise FormatError(f"{len(numbers)} {role} for {count} candidates", field=name)
        return tuple(sign * number for number in numbers if number is not None)
    return ()
