"""Servers that answer typed questions about a text with probabilities, without generating text: `/v1/decisions`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rubricate.chat.base import Capabilities, ChatRequest, Completion, Message
from rubricate.chat.decisions_wire import (
    DIALECTS,
    DecisionQuestion,
    parse_reply,
    read_questions,
    write_answers,
    write_questions,
)
from rubricate.chat.server import KEY_VARIABLE, ServerModel
from rubricate.errors import ChatError, ConfigError, RequestError, ServerError
from rubricate.types import fingerprint

__all__ = ["DecisionsModel", "decision_request", "load_decisions"]

_FOREIGN = (400, 404, 422)
"""What a server says to a body in the other dialect, or to an address that it does not have."""


def decision_request(text: str, questions: Sequence[DecisionQuestion], *, sample: int = 0) -> ChatRequest:
    """The request that asks a DecisionsModel these questions about a text."""
    extra = {"questions": write_questions(questions)}
    return ChatRequest((Message("user", text),), max_tokens=1, sample=sample, extra=extra)


class DecisionsModel(ServerModel):
    """A model behind a server's decisions API. One call answers many questions on one text, each independently.

    It stands where a chat model does, behind limiter, cache and recording, and takes requests made by
    `decision_request`. The completion's text holds the answers as JSON (`read_answers`).

    Args:
        url, model, api_key, key_variable, timeout: as in ServerModel.
        dialect: `openai` (OpenAI, vLLM 0.33), `sglang` (SGLang 0.5.23), `systemone` (the third form, at
            `/v1/systemone` of both servers), or `auto`: OpenAI's is tried first, and SGLang's once where the server
            answers 400, 404 or 422. What was understood is kept.
        with_mass: in OpenAI's dialect, ask yes/no questions as a choice of true and false. Predicates say nothing
            of the probability outside the answers; a choice has a confidence, and from it follows vLLM's mass.
        extra: further fields of every body, such as `temperature` (SGLang) or `cache_salt` (vLLM).

    Raises ConfigError for an unknown dialect.
    """

    def __init__(
        self,
        url: str,
        model: str = "",
        *,
        dialect: str = "auto",
        with_mass: bool = False,
        extra: Mapping[str, object] | None = None,
        api_key: str | None = None,
        key_variable: str = KEY_VARIABLE,
        timeout: float | None = 600.0,
    ) -> None:
        super().__init__(url, model, api_key=api_key, key_variable=key_variable, warm_tokens=None, timeout=timeout)
        if dialect not in ("auto", *DIALECTS):
            hint = f"use auto, {', '.join(DIALECTS)}"
            raise ConfigError(f"there is no dialect {dialect!r} of decisions", hint=hint)
        self.name = f"decisions:{self.name}"
        self.decisions = dialect
        self.with_mass = with_mass
        self.extra = dict(extra or {})
        self._understood = ""

    def __repr__(self) -> str:
        return f"DecisionsModel({self.name!r})"

    @property
    def fingerprint(self) -> str:
        """Of the server's own and of the form in which it is asked."""
        own = {"dialect": self.decisions, "with_mass": self.with_mass, "extra": self.extra}
        return fingerprint({"back end": "decisions", "server": super().fingerprint, **own})

    @property
    def capabilities(self) -> Capabilities:
        """None: it does not chat."""
        return Capabilities()

    async def complete(self, request: ChatRequest) -> Completion:
        """Answer the questions of a request; one HTTP call, or two while the dialect is looked for.

        Raises RequestError for a request without questions, and where no dialect is understood; ServerError for a
        reply that does not answer every question, and, not to be tried again, for a model that cannot (501).
        """
        questions = read_questions(request.extra.get("questions"), self.name)
        first = self.decisions if self.decisions != "auto" else self._understood or "openai"
        try:
            answer = await self._ask(request, questions, first)
        except RequestError as refused:
            if self.decisions != "auto" or self._understood or refused.status not in _FOREIGN:
                raise
            answer = await self._ask_in_the_other(request, questions, refused)
            first = "sglang"
        self._understood = first
        return answer

    async def _ask_in_the_other(
        self, request: ChatRequest, questions: Sequence[DecisionQuestion], refused: RequestError
    ) -> Completion:
        try:
            return await self._ask(request, questions, "sglang")
        except RequestError as error:
            missing = error.status == refused.status == 404
            raise RequestError(
                f"the server takes decisions in neither dialect. OpenAI's: {refused.message}. "
                f"SGLang's: {error.message}",
                provider=self.name,
                status=error.status,
                hint="it needs vLLM 0.33 or SGLang 0.5.23; other servers: LogprobJudge" if missing else "",
            ) from error

    async def _ask(self, request: ChatRequest, questions: Sequence[DecisionQuestion], name: str) -> Completion:
        dialect = DIALECTS[name]
        if len(questions) > dialect.most:
            message = f"{len(questions)} questions in one call; this API takes {dialect.most}"
            raise RequestError(message, provider=self.name, hint="lower questions_per_call")
        body = dialect.body(request.text(), questions, self.with_mass)
        if dialect.named:
            body["model"] = self.model or await self.resolve()
        body.update(self.extra)
        try:
            record = await self._exchange(dialect.path, json.dumps(body).encode())
        except ServerError as error:
            raise _explained(error) from None
        answers, usage = parse_reply(record, questions, dialect, self.name)
        return Completion(write_answers(answers), usage=usage)


def _explained(error: ServerError) -> ChatError:
    if error.status == 501 and not error.hint:
        error.hint = "the server cannot read decisions from this model: use LogprobJudge, or another model"
    return error


def load_decisions(
    spec: str,
    *,
    api_key: str | None = None,
    key_variable: str = KEY_VARIABLE,
    dialect: str = "auto",
    with_mass: bool = False,
    extra: Mapping[str, object] | None = None,
    timeout: float | None = 600.0,
) -> DecisionsModel:
    """The model behind `decisions:http://HOST:PORT/v1#MODEL`.

    Args:
        spec: the server's address, as for a chat model of that server.
        api_key, key_variable, dialect, with_mass, extra, timeout: see DecisionsModel.
    """
    url, _, model = spec.partition("#")
    return DecisionsModel(
        url,
        model,
        dialect=dialect,
        with_mass=with_mass,
        extra=extra,
        api_key=api_key,
        key_variable=key_variable,
        timeout=timeout,
    )
