"""Rows of texts to train on: prompt and completion, or messages; as tokens, with what is trained marked."""

from __future__ import annotations

import functools
import hashlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from rubricate.chat.local_text import Codec
from rubricate.chat.local_torch import ChatTokenizer
from rubricate.data.io import Row, read_rows
from rubricate.data.records import Turn, parse_turns
from rubricate.data.values import field_name, walk
from rubricate.errors import ConfigError, FormatError
from rubricate.training.recipe import DataSettings
from rubricate.training.tree_rows import IGNORED

__all__ = ["TextRow", "TextSplits", "encode_row", "read_texts"]


@dataclass(frozen=True, slots=True)
class TextRow:
    """Tokens of a row.

    Attributes:
        ids: the tokens.
        labels: the same where the token is trained on, else -100.
        key: hash of the prompt; rows with the same are held out together.
    """

    ids: array[int]
    labels: array[int]
    key: str


@dataclass(slots=True)
class TextSplits:
    """Rows by their use, and what was cut or left out.

    Attributes:
        train, held_out: rows.
        truncated, dropped: names of the rows that were (file and line).
        notes: what else is to be known, in words.
    """

    train: list[TextRow] = field(default_factory=list[TextRow])
    held_out: list[TextRow] = field(default_factory=list[TextRow])
    truncated: list[str] = field(default_factory=list[str])
    dropped: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])


_COLUMNS = ("prompt", "completion", "messages")


class _Encoding(Protocol):
    input_ids: list[int]
    offset_mapping: list[tuple[int, int]]


class _Tokenizer(Protocol):
    eos_token: str | None
    is_fast: bool

    def __call__(self, text: str, *, add_special_tokens: bool, return_offsets_mapping: bool) -> _Encoding: ...


def read_texts(data: DataSettings, tokenizer: ChatTokenizer, *, assistant_only: bool = True) -> TextSplits:
    """The rows of a recipe's files.

    A row has `prompt` and `completion`, both text or both messages, or `messages` that end with the assistant's.
    Plain text is trained on as it is, with the end-of-text token behind the completion. Messages go through the
    chat template; special tokens in what they say are broken by a blank, as the local back end breaks them. Only
    completions are trained on; of `messages`, the assistant's turns.

    Raises FormatError, naming file, line and field, for other rows, and for rows that are too long where the recipe
    says so; ConfigError where nothing is left.
    """
    splits = TextSplits()
    # all files together: a prompt may be in several
    rows = [row for source in data.train for row in _read(source, data, tokenizer, splits, assistant_only)]
    keys = sorted(
        {row.key for row in rows}, key=lambda key: hashlib.sha256(f"{data.seed}:{key}".encode()).hexdigest()
    )
    few = round(len(keys) * data.held_out_share) or int(data.held_out_share > 0.0 and len(keys) > 1)
    chosen = set(keys[:few]) if not data.held_out else set[str]()
    splits.train += [row for row in rows if row.key not in chosen]
    splits.held_out += [row for row in rows if row.key in chosen]
    for source in data.held_out:
        splits.held_out += _read(source, data, tokenizer, splits, assistant_only)
    both = {row.key for row in splits.train} & {row.key for row in splits.held_out}
    if both:
        splits.notes.append(f"{len(both)} prompts that are evaluated on are trained on, too")
    if not splits.train:
        raise ConfigError("nothing is left to train on", hint="raise data.max_tokens, or give more rows")
    return splits


def _read(
    source: str, data: DataSettings, tokenizer: ChatTokenizer, splits: TextSplits, assistant_only: bool
) -> list[TextRow]:
    found: list[TextRow] = []
    for row in read_rows(source):
        name = f"{source}:{row.line}"
        text = encode_row(row, tokenizer, assistant_only=assistant_only)
        if len(text.ids) > data.max_tokens:
            if data.too_long == "error":
                raise FormatError(
                    f"the row has {len(text.ids)} tokens, data.max_tokens is {data.max_tokens}",
                    source=row.source,
                    line=row.line,
                    hint="raise it, or set data.too_long to drop or truncate",
                )
            cut = TextRow(text.ids[: data.max_tokens], text.labels[: data.max_tokens], text.key)
            # cut in the prompt, there is nothing left to learn
            if data.too_long == "drop" or all(label == IGNORED for label in cut.labels):
                splits.dropped.append(name)
                continue
            splits.truncated.append(name)
            text = cut
        found.append(text)
    return found


def encode_row(row: Row, tokenizer: ChatTokenizer, *, assistant_only: bool = True) -> TextRow:
    """One row as tokens. Raises FormatError, naming file, line and field, as `read_texts` says."""
    record = row.record
    try:
        for path, problem in walk({name: record[name] for name in _COLUMNS if record.get(name) is not None}):
            raise FormatError(f"the value {problem}", field=field_name(path))
        if record.get("completion") is not None:
            text, spans, key = _completion(record, tokenizer)
        elif record.get("messages") is not None:
            text, spans, key = _messages(record, tokenizer, assistant_only)
        else:
            raise FormatError(
                "there is neither completion nor messages",
                field="completion",
                hint=f"give prompt and completion, or messages; columns here: {', '.join(record)}",
            )
    except FormatError as error:
        raise FormatError(
            error.detail, source=row.source, line=row.line, field=error.field, hint=error.hint
        ) from None
    ids, taken = _encoded(text, spans, cast("_Tokenizer", tokenizer))
    if not any(taken):
        raise FormatError("nothing is left to train on", source=row.source, line=row.line, field="completion")
    labels = [token if take else IGNORED for token, take in zip(ids, taken, strict=True)]
    return TextRow(
        array("i", ids), array("i", labels), hashlib.sha256(key.encode(errors="replace")).hexdigest()[:16]
    )


def _encoded(text: str, spans: Sequence[tuple[int, int]], tokenizer: _Tokenizer) -> tuple[list[int], list[bool]]:
    """The tokens, and which of them are trained on.

    A token over the edge of a span would be learnt in part: there the text is cut, as it is when a model goes on
    from a prompt.
    """
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    edges = {edge for span in spans for edge in span}
    if not any(left < edge < right for left, right in encoding.offset_mapping for edge in edges):
        within = [any(start <= left < end for start, end in spans) for left, _ in encoding.offset_mapping]
        return encoding.input_ids, within
    ids: list[int] = []
    taken: list[bool] = []
    cuts = sorted({0, len(text), *edges})
    for begin, end in zip(cuts, cuts[1:], strict=False):
        piece = tokenizer(text[begin:end], add_special_tokens=False, return_offsets_mapping=True).input_ids
        ids += piece
        taken += [any(start <= begin < stop for start, stop in spans)] * len(piece)
    return ids, taken


_Spans = list[tuple[int, int]]


def _completion(record: Mapping[str, object], tokenizer: ChatTokenizer) -> tuple[str, _Spans, str]:
    if record.get("prompt") is None:
        raise FormatError("there is no prompt", field="prompt", hint="a completion needs one; it may be empty text")
    prompt, completion = parse_turns(record["prompt"], "prompt"), parse_turns(record["completion"], "completion")
    if isinstance(prompt, str) and isinstance(completion, str):
        if not completion:
            raise FormatError("the completion is empty", field="completion")
        end = cast("_Tokenizer", tokenizer).eos_token or ""
        whole = prompt + completion + end
        return whole, [(len(prompt), len(whole))], prompt
    if isinstance(prompt, str) or isinstance(completion, str):
        raise FormatError(
            "prompt and completion are of two kinds", field="completion", hint="both are text, or both messages"
        )
    if not completion or any(turn.role != "assistant" for turn in completion[:1]):
        raise FormatError("a completion begins with the assistant's message", field="completion")
    text, starts = _rendered([*prompt, *completion], [len(prompt)], tokenizer, "completion")
    return text, [(starts[0][0], len(text))], repr(prompt)


def _messages(
    record: Mapping[str, object], tokenizer: ChatTokenizer, assistant_only: bool
) -> tuple[str, _Spans, str]:
    turns = parse_turns(record["messages"])
    if isinstance(turns, str) or not turns or turns[-1].role != "assistant":
        raise FormatError("expected a list of messages that ends with the assistant's", field="messages")
    places = [number for number, turn in enumerate(turns) if turn.role == "assistant"]
    text, spans = _rendered(turns, places, tokenizer, "messages")
    return text, spans if assistant_only else [(0, len(text))], repr(turns[: places[0]])


def _rendered(
    turns: Sequence[Turn], places: Sequence[int], tokenizer: ChatTokenizer, name: str
) -> tuple[str, _Spans]:
    """The conversation as text, and the stretch of each assistant's turn at `places`, its end token included."""
    if not tokenizer.chat_template:
        raise ConfigError("the tokenizer has no chat template", hint="give prompt and completion as plain text")
    whole = _render(turns, tokenizer, False)
    spans: _Spans = []
    for place in places:
        before = _render(turns[:place], tokenizer, True)
        after = _render(turns[: place + 1], tokenizer, False) if place + 1 < len(turns) else whole
        if not whole.startswith(before) or not whole.startswith(after):
            raise FormatError(
                "the chat template renders earlier turns otherwise once another follows, so the assistant's cannot "
                "be told apart",
                field=f"{name}[{place}]",
                hint="set text.assistant_only=false, or give prompt and completion",
            )
        spans.append((len(before), len(after)))
    return whole, spans


@functools.lru_cache(maxsize=1)
def _codec(tokenizer: ChatTokenizer) -> Codec:
    return Codec(tokenizer, name="the model", context=None, stops=frozenset())


def _render(turns: Sequence[Turn], tokenizer: ChatTokenizer, generation: bool) -> str:
    if any(turn.tool_calls for turn in turns):
        raise FormatError("tool calls cannot be trained on", field="messages", hint="leave such rows out")
    codec = _codec(tokenizer)
    messages = [{"role": turn.role, "content": codec.as_data(turn.content)} for turn in turns]
    if not messages:
        return ""
    return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=generation)
