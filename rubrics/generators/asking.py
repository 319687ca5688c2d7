"""Asking a model for something structured, and again with the reason where the answer breaks the rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from rubricate.chat.base import ChatModel, ChatRequest, Message
from rubricate.chat.jsonlike import Conflict
from rubricate.chat.reasoning import strip_reasoning
from rubricate.chat.reply_json import find_spans, whole_value
from rubricate.errors import AnswerError, ChatError, ConfigError, ParseError
from rubricate.failures import ASK_AGAIN, failure_of
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.generators.base import GeneratorNote, NoteKind
from rubricate.types import Failure, FailureKind, Usage

__all__ = ["Answered", "AskOptions", "Asking", "read_items", "read_json", "whole_part"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How a generator asks. Raises ConfigError for options out of range.

    Attributes:
        max_attempts: answers asked for at most, the first included.
        max_tokens: tokens of an answer; doubled for the next one where an answer was cut.
        temperature, top_p, seed: sampling.
        retry_temperature: of the attempts after the first; None for the same.
        sample: number of this generation among repeated ones, so that caches keep them apart.
        structured: ask for an answer by JSON schema, where the model can. After an answer that is empty or cannot
            be read, the next is asked for without.
        run_key: key of the hash that fences untrusted text.
    """

    max_attempts: int = 3
    max_tokens: int = 2048
    temperature: float = 0.0
    retry_temperature: float | None = None
    top_p: float = 1.0
    seed: int | None = None
    sample: int = 0
    structured: bool = True
    run_key: str = "rubricate"

    def __post_init__(self) -> None:
        for name, value in (("max_attempts", self.max_attempts), ("max_tokens", self.max_tokens)):
            if value < 1:
                raise ConfigError(f"{name} is {value}", hint="use 1 or more")
        if self.sample < 0:
            raise ConfigError(f"sample is {self.sample}", hint="use 0 or more")

    def identity(self) -> dict[str, object]:
        """JSON-ready content, for fingerprints."""
        return {
            "max_attempts": self.max_attempts,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "retry_temperature": self.retry_temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "sample": self.sample,
            "structured": self.structured,
            "run_key": self.run_key,
        }


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """What came of asking: a value, or why there is none.

    Attributes:
        text: visible text of the last answer.
        usage: cost of all attempts.
        notes: what was asked again, with the reasons.
    """

    value: T | None
    failure: Failure | None = None
    text: str = ""
    usage: Usage = Usage()
    notes: tuple[GeneratorNote, ...] = field(default=())


class Asking:
    """Asks a model, reads each answer, and asks again with the reason what could not be used.

    Args:
        model: the chat model.
        options: how to ask.
    """

    def __init__(self, model: ChatModel, options: AskOptions | None = None) -> None:
        self.model = model
        self.options = options or AskOptions()

    async def ask(
        self,
        make: Callable[[str], Sequence[Message]],
        read: Callable[[str], T],
        *,
        schema: Mapping[str, object] | None = None,
        sample: int = 0,
    ) -> Answered[T]:
        """Ask until an answer can be read, at most `max_attempts` times.

        Args:
            make: the messages, given why the answer before was refused ("" at first).
            read: gets the visible text and raises ParseError for what breaks the rules; its message is the reason.
            schema: JSON schema of the answer.
            sample: number of the question among several that this generation asks in the same words.
        """
        usage, notes, why = Usage(), list[GeneratorNote](), None
        text = ""
        for attempt in range(self.options.max_attempts):
            if why is not None:
                notes.append(GeneratorNote(NoteKind.REASKED, why.message))
            value, why, text, cost = await self.once(make, read, schema, attempt, why, sample)
            usage += cost
            if why is None:
                return Answered(value, None, text, usage, tuple(notes))
            if why.kind not in ASK_AGAIN:
                break
        return Answered(None, why, text, usage, tuple(notes))

    async def once(
        self,
        make: Callable[[str], Sequence[Message]],
        read: Callable[[str], T],
        schema: Mapping[str, object] | None,
        attempt: int,
        why: Failure | None,
        sample: int = 0,
    ) -> tuple[T | None, Failure | None, str, Usage]:
        """One attempt: value or failure, visible text, cost. `why` is the failure of the attempt before."""
        request = self._request(make("" if why is None else why.message), schema, attempt, why, sample)
        try:
            reply = await self.model.complete(request)
        except ChatError as error:
            return None, failure_of(error), "", Usage()
        text = strip_reasoning(reply.text)
        try:
            visible = strip_reasoning(reply.require_text(self.model.name))
            if not visible.strip():
                raise ParseError("the answer is nothing but reasoning", kind="empty", reply=reply.text)
            return read(visible), None, text, reply.usage
        except (AnswerError, ParseError) as error:
            # The hint is for people, and the message goes back to the model.
            return None, replace(failure_of(error), message=error.message), text, reply.usage

    def _request(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, object] | None,
        attempt: int,
        why: Failure | None,
        sample: int,
    ) -> ChatRequest:
        options = self.options
        failed = why is not None and why.kind in {FailureKind.EMPTY, FailureKind.UNPARSABLE, FailureKind.LENGTH}
        constrained = schema is not None and options.structured and self.model.capabilities.json_schema
        again = options.temperature if options.retry_temperature is None else options.retry_temperature
        longer = 2 if why is not None and why.kind is FailureKind.LENGTH else 1
        return ChatRequest(
            tuple(messages),
            max_tokens=options.max_tokens * longer,
            temperature=again if attempt else options.temperature,
            top_p=options.top_p,
            seed=options.seed,
            json_schema=schema if constrained and not failed else None,
            sample=(options.sample + sample) * options.max_attempts + attempt,
        )


def read_json(text: str) -> object:
    """The JSON value of an answer, its usual faults repaired; of several objects, a list of them.

    Raises ParseError for an answer without one, with one that was cut, or with a key that has two values.
    """
    whole = whole_value(text)
    if whole is not None and not isinstance(whole.value, str):
        return _clear(whole.value, text)
    spans = find_spans(text)[1]
    if not spans:
        raise ParseError("the answer holds no JSON object", reply=text)
    if not spans[-1].complete:
        raise ParseError("the JSON of the answer is not closed", kind="incomplete", reply=text)
    values = [span.value for span in spans if span.complete]
    return _clear(values[0] if len(values) == 1 else values, text)


def whole_part(text: str) -> str:
    """What a cut answer holds whole, as JSON: its list without the last element, which was cut; "" for nothing."""
    spans = find_spans(text)[1]
    if not spans or spans[-1].complete:
        return ""
    value = spans[-1].value
    listed = as_array(value)
    fields = as_object(value)
    if listed is not None:
        value = list(listed[:-1])
    elif fields:
        last = list(fields)[-1]
        value = dict(fields) | {last: list((as_array(fields[last]) or ())[:-1])}
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):  # a key with two values
        return ""


def _clear(value: object, text: str) -> object:
    if isinstance(value, Conflict):
        raise ParseError("a key of the JSON occurs twice, with different values", kind="ambiguous", reply=text)
    inside = as_object(value)
    for inner in as_array(value) or () if inside is None else inside.values():
        _clear(inner, text)
    return value


def read_items(text: str, *keys: str) -> Sequence[object]:
    """The list that an answer is, or that it holds under one of the keys; objects that follow one another are one.

    Where the answer holds several objects and one of them has the list, that one counts, the last if several do.

    Raises ParseError where there is no such list, or an empty one.
    """
    value = read_json(text)
    listed = _listed(value, keys)
    if listed is None:
        raise ParseError(f"the answer has no list {keys[0]!r}" if keys else "the answer is no list", reply=text)
    if not listed:
        raise ParseError("the list of the answer is empty", kind="incomplete", reply=text)
    return listed


def _listed(value: object, keys: Sequence[str]) -> Sequence[object] | None:
    fields = as_object(value)
    if fields is not None:
        return next((found for key in keys if (found := as_array(fields.get(key))) is not None), None)
    listed = as_array(value)
    if listed is None:
        return None
    held = [found for item in listed if as_object(item) is not None and (found := _listed(item, keys)) is not None]
    if held:
        return held[-1]
    nested = [item for item in listed if as_array(item) is not None]
    return as_array(nested[-1]) if nested and len(nested) < len(listed) else listed
