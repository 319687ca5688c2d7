"""A chat model behind a limiter: the form in which every model is used."""

from __future__ import annotations

from collections.abc import Sequence

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.chat.limiter import Limiter
from rubricate.errors import ChatError

__all__ = ["Limited"]


class Limited(ChatModel):
    """A model whose calls keep a limiter's bounds, are tried again, and end by the deadline.

    Attributes:
        model: the model behind it.
        limiter: shared by all models that were given it.
    """

    def __init__(self, model: ChatModel, limiter: Limiter | None = None) -> None:
        self.name = model.name
        self.model = model
        self.limiter = limiter or Limiter()

    def __repr__(self) -> str:
        return f"Limited({self.model!r})"

    @property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    @property
    def capabilities(self) -> Capabilities:
        return self.model.capabilities

    async def complete(self, request: ChatRequest) -> Completion:
        return await self.limiter.call(self.model, request)

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        # A back end with a way of its own, such as computing a shared prefix once, must see the requests together.
        if requests and type(self.model).complete_many is not ChatModel.complete_many:
            return await self.limiter.call_many(self.model, requests)
        return await super().complete_many(requests)

    async def aclose(self) -> None:
        await self.model.aclose()
