"""Chat messages to tokens and back: the model's chat template, special tokens in messages, the context length."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rubricate.chat.base import ChatRequest, Message
from rubricate.chat.local_torch import ChatTokenizer
from rubricate.errors import ConfigError, ContextOverflowError, RequestError
from rubricate.narrow import as_object

__all__ = ["Codec"]


class Codec:
    """Turns requests into tokens and tokens into text.

    Args:
        tokenizer: with a chat template.
        name: the model's name, for errors.
        context: context length in tokens, None where there is no limit.
        stops: tokens that end an answer.

    Raises ConfigError when the tokenizer has no chat template.
    """

    def __init__(self, tokenizer: ChatTokenizer, *, name: str, context: int | None, stops: frozenset[int]) -> None:
        if not tokenizer.chat_template:
            raise ConfigError(
                f"{name}: the tokenizer has no chat template", hint="take an instruction-tuned (chat) model"
            )
        self.name = name
        self.context = context
        self.stops = stops
        self._tokenizer = tokenizer
        self._pieces: dict[int, str] = {}
        special = sorted(_special(tokenizer), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, special))) if special else None

    def encode(self, request: ChatRequest) -> list[int]:
        """The whole prompt as tokens, the beginning of the assistant's turn included.

        Halves of surrogate pairs, which models cut off in mid-character produce, are read as U+FFFD.

        Raises RequestError for messages that the template cannot take, ContextOverflowError when prompt and answer
        do not fit the context.
        """
        text = _whole_characters(self._render(request) + request.prefill)
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        if not ids:
            raise RequestError("the prompt is empty", provider=self.name)
        needed = len(ids) + request.max_tokens
        if self.context is not None and needed > self.context:
            raise ContextOverflowError(
                f"a prompt of {len(ids)} tokens and {request.max_tokens} for the answer exceed the context of "
                f"{self.context} tokens",
                provider=self.name,
                hint="shorten the prompt, lower max_tokens, or take a model with a longer context",
            )
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """The visible text of an answer, special tokens left out."""
        return self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def piece(self, token: int) -> str:
        """One token as text, special tokens by name."""
        known = self._pieces.get(token)
        if known is None:
            known = self._tokenizer.decode([token], skip_special_tokens=False, clean_up_tokenization_spaces=False)
            self._pieces[token] = known
        return known

    def _render(self, request: ChatRequest) -> str:
        from jinja2 import TemplateError

        messages = [Message(message.role, self.as_data(message.content)) for message in request.messages]
        options = self._template_options(request)
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        try:
            text = self._template(messages, options)
            if not system or messages[0].content.strip() in text:
                return text
        except TemplateError as error:
            if not system:
                raise RequestError(
                    f"the model's chat template refuses these messages: {error}", provider=self.name
                ) from None
        # the template refuses system messages, or leaves them out
        try:
            return self._template(_merge_system(messages, system), options)
        except TemplateError as error:
            raise RequestError(
                f"the model's chat template refuses these messages: {error}", provider=self.name
            ) from None

    def _template(self, messages: Sequence[Message], options: Mapping[str, object]) -> str:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        return self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **options)

    def _template_options(self, request: ChatRequest) -> Mapping[str, object]:
        unknown = sorted(set(request.extra) - {"chat_template_kwargs"})
        options = as_object(request.extra.get("chat_template_kwargs", {}))
        if unknown or options is None:
            named = ", ".join(unknown) or "chat_template_kwargs"
            raise RequestError(
                f"the local back end cannot use the extra field {named}",
                provider=self.name,
                hint="it knows only chat_template_kwargs, a mapping",
            )
        return options

    def as_data(self, content: str) -> str:
        """The content with its special tokens broken by a space, so that it cannot end a turn or begin one."""
        while self._special is not None:
            broken = self._special.sub(_broken, content)
            if broken == content:
                break
            content = broken
        return content


def _broken(match: re.Match[str]) -> str:
    """A special token with a space behind its first visible character: before that, it could be whole again."""
    text = match[0]
    cut = len(text) - len(text.lstrip()) + 1
    return f"{text[:cut]} {text[cut:]}"


def _special(tokenizer: ChatTokenizer) -> set[str]:
    """Every control token that text could hold: those with a role, and those that were added as special.

    Blank ones are left alone: no text does without them. `all_special_tokens` alone leaves most out: of SmolLM2's
    17, `<repo_name>` and 13 others.
    """
    added = (token for token in tokenizer.added_tokens_decoder.values() if token.special)
    return {
        text
        for text in (*tokenizer.all_special_tokens, *(token.content for token in added))
        if len(text.strip()) > 1
    }


def _whole_characters(text: str) -> str:
    """The text as tokenizers take it: surrogate pairs joined, halves of them replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _merge_system(messages: Sequence[Message], system: str) -> list[Message]:
    """The messages without system turns, their text ahead of the first user turn."""
    rest = [message for message in messages if message.role != "system"]
    for place, message in enumerate(rest):
        if message.role == "user":
            rest[place] = Message("user", f"{system}\n\n{message.content}")
            return rest
    return [Message("user", system), *rest]
