"""Which columns of a record are read as prompt, response, reference and so on, and rollouts made of them.

| role | accepted columns | value |
|---|---|---|
| prompt | `prompt`, `question`, `instruction`, `query`, `input`, `messages`, and the two below | text or messages |
| system | `system_prompt`, `system` | text put before the prompt as a system turn |
| response | `response`, `completion`, `output` | text, a message, or a list of messages |
| responses | `responses`, `completions`, `outputs` | a list of responses to the one prompt: a group |
| reference | `reference`, `reference_answer` | text, a number, or null |
| id | `id`, `prompt_id`, `QUESTION_ID` | text or a whole number |
| finish | `finish`, `finish_reason` | text, such as `stop` or `length` |
| rubric | `rubric`, `rubrics` | read by `rubricate.rubrics.formats`, not here |

Two columns for one role are an error unless they hold the same, or the caller names the one to take. `instruction`
with a text in `input` is one prompt of both, as in Alpaca. `messages` that end with the assistant's turns hold the
response too, where no other column does. The columns `conversation_history` (AdvancedIF) and `CONVERSATION`
(MultiChallenge) hold the prompt's turns. A list may come as JSON text, as it does in CSV. Where no column has an
accepted name, one that has it but for case and blanks around it is taken, as in a spreadsheet: `Prompt`. An
element of `responses` may be an object with one of the response columns; its other fields go to
`metadata["response"]`. All other columns go to the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rubricate.data.jsontext import parse_json
from rubricate.data.records import Rollout, Turn, parse_turns
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_object

__all__ = [
    "COLUMNS",
    "RUBRIC_COLUMNS",
    "Columns",
    "listed_value",
    "read_identity",
    "read_prompt",
    "read_reference",
    "rollouts_from_record",
]

_CONVERSATIONS = ("conversation_history", "CONVERSATION")
_TURNS = ("messages", *_CONVERSATIONS)
"""Columns that hold turns, as a list or as JSON text of one."""

COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "prompt": ("prompt", "question", "instruction", "query", "input", "messages", *_CONVERSATIONS),
        "system": ("system_prompt", "system"),
        "response": ("response", "completion", "output"),
        "responses": ("responses", "completions", "outputs"),
        "reference": ("reference", "reference_answer"),
        "id": ("id", "prompt_id", "QUESTION_ID"),
        "finish": ("finish", "finish_reason"),
    }
)
"""Roles and the columns accepted for each."""

RUBRIC_COLUMNS = ("rubric", "rubrics")
"""Columns that may hold a rubric. They are no part of a rollout's metadata."""

Text = str | tuple[Turn, ...]

_TURNS_TEXT = re.compile(r'\s*\[\s*\{\s*"(role|content)"\s*:')


class Columns:
    """A record whose columns are taken one role at a time; what nobody took is metadata.

    Args:
        record: column names and values.
        chosen: role and column, where the caller names it.
        roles: the roles and the columns accepted for each.

    Raises ConfigError for a role that does not exist.
    """

    def __init__(
        self,
        record: Mapping[str, object],
        chosen: Mapping[str, str],
        roles: Mapping[str, tuple[str, ...]] = COLUMNS,
    ) -> None:
        self.record = record
        self.roles = roles
        self._chosen = chosen
        self.used: set[str] = {name for name in RUBRIC_COLUMNS if name in record}
        unknown = [role for role in chosen if role not in roles]
        if unknown:
            hint = f"roles: {', '.join(roles)}"
            raise ConfigError(f"there is no role {unknown[0]!r} for a column", hint=hint)

    def find(self, role: str) -> str:
        """The column that plays a role, or "" where none does. Raises FormatError where several do."""
        chosen = self._chosen.get(role)
        if chosen is not None:
            if chosen not in self.record:
                raise FormatError(f"the column chosen as {role} is not there", field=chosen, hint=self._seen())
            return chosen
        taken = set(self._chosen.values())
        names = [name for name in self.roles[role] if self.record.get(name) not in (None, "") and name not in taken]
        if not names:
            empty = (name for name in self.roles[role] if name in self.record and name not in taken)
            return next(empty, "") or self._spelled_otherwise(role, taken)
        for other in names[1:]:
            if self.record[other] != self.record[names[0]]:
                message = f"{names[0]!r} and {other!r} could both be the {role}, and they differ"
                raise FormatError(message, field=other, hint=f"choose: columns={{{role!r}: {names[0]!r}}}")
        self.used.update(names)
        return names[0]

    def _spelled_otherwise(self, role: str, taken: set[str]) -> str:
        """The column that has an accepted name but for case and surrounding blanks; "" where there is none.

        Raises FormatError where there are several.
        """
        accepted = {name.casefold() for name in self.roles[role]}
        known = {name for names in self.roles.values() for name in names} | taken
        found = [name for name in self.record if name.strip().casefold() in accepted and name not in known]
        for other in found[1:]:
            message = f"{found[0]!r} and {other!r} could both be the {role}"
            raise FormatError(message, field=other, hint=f"choose: columns={{{role!r}: {found[0]!r}}}")
        return found[0] if found else ""

    def chose(self, role: str) -> bool:
        """Whether the caller named the column for this role."""
        return role in self._chosen

    def take(self, role: str) -> tuple[str, object]:
        """The column that plays a role, and its value; `("", None)` where none does."""
        name = self.find(role)
        self.used.add(name)
        return name, self.record.get(name)

    def _seen(self) -> str:
        return f"columns here: {', '.join(self.record)}"

    def missing(self, roles: Sequence[str]) -> FormatError:
        """The error for a role that no column plays, to be raised."""
        wanted = " or ".join(name for role in roles for name in self.roles[role])
        hint = f"name the one to take: columns={{{roles[0]!r}: NAME}}, or --column {roles[0]}=NAME; {self._seen()}"
        return FormatError(f"no {roles[0]}: none of the columns {wanted} is there", hint=hint)

    def rest(self) -> dict[str, object]:
        """The columns that nobody took."""
        return {name: value for name, value in self.record.items() if name not in self.used}


def rollouts_from_record(
    record: Mapping[str, object], *, default_id: str, columns: Mapping[str, str] | None = None
) -> list[Rollout]:
    """The rollouts of one record; see the module's table.

    Args:
        record: column names and values.
        default_id: id of a record that has none.
        columns: role and column, where several columns could play the role.

    Raises FormatError naming the field, ConfigError for a role that does not exist.
    """
    columns_ = Columns(record, columns or {})
    prompt, response = read_prompt(columns_)
    answers = _responses(columns_) if response is None else [("", response, None)]
    reference = read_reference(*columns_.take("reference"))
    name = read_identity(*columns_.take("id")) or default_id
    finish_column, finish = columns_.take("finish")
    if finish is not None and not isinstance(finish, str):
        raise FormatError(f"expected text, got {type(finish).__name__}", field=finish_column)
    metadata = columns_.rest()
    rollouts: list[Rollout] = []
    for suffix, answer, extra in answers:
        own = metadata if extra is None else metadata | {"response": extra}
        ending = extra.get("finish_reason", extra.get("finish")) if extra else None
        rollouts.append(Rollout(prompt, answer, reference, name + suffix, str(ending or finish or ""), dict(own)))
    return rollouts


def listed_value(value: object, field: str) -> object:
    """A list that came as JSON text (CSV, some Parquet files) as a list; anything else as it is."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return parse_json(value, line=None)
        except FormatError as error:
            raise FormatError(f"expected a list as JSON text: {error.detail}", field=field) from None
    return value


def read_prompt(columns: Columns, *, response: bool = True) -> tuple[Text, Text | None]:
    """The prompt, and the response where the column `messages` holds that too.

    Args:
        response: the row must have a response, in `messages` where no other column has it.

    Raises FormatError for a prompt that is missing, empty, or neither text nor messages.
    """
    joined = _alpaca(columns)
    if joined:
        return _with_system(joined, columns), None
    name, value = columns.take("prompt")
    if not name:
        raise columns.missing(["prompt"])
    turns = parse_turns(listed_value(value, name) if name in _TURNS else _turns_in_text(value), name)
    if not turns or (isinstance(turns, str) and not turns.strip()):
        raise FormatError("the prompt is empty", field=name)
    found: Text | None = None
    if name == "messages" and not isinstance(turns, str) and (response or turns[-1].role == "assistant"):
        turns, found = _split_messages(turns, columns)
    return _with_system(turns, columns), found


def _turns_in_text(value: object) -> object:
    """The messages in a text that is JSON of nothing but them, whatever its column is called; else the value."""
    if not isinstance(value, str) or _TURNS_TEXT.match(value) is None:
        return value
    try:
        found = as_array(parse_json(value, line=None)) or ()
    except FormatError:
        return value
    messages = [as_object(item) or {} for item in found]
    whole = all(isinstance(message.get("role"), str) and "content" in message for message in messages)
    return found if messages and whole else value


def _alpaca(columns: Columns) -> str:
    """`instruction` and `input` as one text, where both hold text and the caller chose no column."""
    first, second = columns.record.get("instruction"), columns.record.get("input")
    others = [name for name in COLUMNS["prompt"] if name in columns.record and name not in ("instruction", "input")]
    if others or columns.chose("prompt") or not isinstance(first, str) or not isinstance(second, str):
        return ""
    columns.used |= {"instruction", "input"}
    return "\n\n".join(text for text in (first, second) if text.strip())


def _split_messages(turns: tuple[Turn, ...], columns: Columns) -> tuple[tuple[Turn, ...], Text | None]:
    if columns.find("response") or columns.find("responses"):
        return turns, None
    last = max((index for index, turn in enumerate(turns) if turn.role == "user"), default=-1)
    if last < 0 or last + 1 == len(turns):
        raise columns.missing(["response", "responses"])
    after = turns[last + 1 :]
    plain = len(after) == 1 and not after[0].tool_calls and not after[0].reasoning
    return turns[: last + 1], after[0].content if plain else after


def _with_system(prompt: Text, columns: Columns) -> Text:
    name, value = columns.take("system")
    if value is None or value == "":
        return prompt
    if not isinstance(value, str):
        raise FormatError(f"expected text, got {type(value).__name__}", field=name)
    turns = (Turn("user", prompt),) if isinstance(prompt, str) else prompt
    if turns[0].role == "system":
        raise FormatError("the prompt has a system turn of its own", field=name, hint="leave one of them out")
    return (Turn("system", value), *turns)


Answer = tuple[str, Text, Mapping[str, object] | None]


def _responses(columns: Columns) -> list[Answer]:
    """Id suffix, response and further fields of each response."""
    single, group = columns.find("response"), columns.find("responses")
    if single and group and columns.record[single] is not None:
        message = f"{single!r} and {group!r} are both there"
        raise FormatError(message, field=group, hint="a row has one response or a group of them")
    name, value = columns.take("responses" if group else "response")
    if not name:
        raise columns.missing(["response", "responses"])
    if not group:
        return [("", *_response(value, name))]
    listed = as_array(listed_value(value, name))
    if listed is None:
        raise FormatError(f"expected a list of responses, got {type(value).__name__}", field=name)
    if not listed:
        raise FormatError("the list holds no response", field=name)
    return [(f"#{index}", *_response(item, f"{name}[{index}]")) for index, item in enumerate(listed)]


def _response(value: object, field: str) -> tuple[Text, Mapping[str, object] | None]:
    fields = as_object(value)
    if fields is None:
        listed = as_array(value)
        if listed and all(isinstance(item, str) for item in listed):
            hint = "a list of alternatives belongs in a column named responses"
            raise FormatError("expected one response, got a list of texts", field=field, hint=hint)
        if listed is not None and not listed:
            raise FormatError("the response has no messages", field=field)
        return parse_turns(value, field), None
    if "role" in fields:
        return parse_turns([fields], field), None
    names = [name for name in COLUMNS["response"] if name in fields]
    if len(names) != 1:
        expected = ", ".join(COLUMNS["response"])
        message = f"expected a message, or an object with one of {expected}"
        raise FormatError(message, field=field, hint=f"fields here: {', '.join(fields)}")
    extra = {key: item for key, item in fields.items() if key != names[0]}
    return parse_turns(fields[names[0]], f"{field}.{names[0]}"), extra


def read_reference(name: str, value: object) -> str | None:
    """The value of the column `name` as a reference answer; None where it is empty. Raises FormatError."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise FormatError(f"expected text, got {type(value).__name__}", field=name)
    return str(value)


def read_identity(name: str, value: object) -> str:
    """The value of the column `name` as the row's id; "" where it is empty. Raises FormatError."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise FormatError(f"expected text or a whole number, got {type(value).__name__}", field=name)
    return str(value)
