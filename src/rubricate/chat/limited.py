"""Chat models around others: the base of such layers, and the limiter, behind which every model is used."""

from __future__ import annotations

from collections.abc import Sequence

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.chat.limiter import Limiter
from rubricate.errors import ChatError

__all__ = ["Final", "Layer", "Limited", "innermost"]


class Final(ChatModel):
    """Base of models whose answers and errors are final, so that no limiter goes in front of them."""


class Layer(ChatModel):
    """Base of what stands in front of a model and goes by its name.

    Attributes:
        model: the model behind it.
    """

    def __init__(self, model: ChatModel) -> None:
        self.name = model.name
        self.model = model

    @property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    @property
    def capabilities(self) -> Capabilities:
        return self.model.capabilities

    async def complete(self, request: ChatRequest) -> Completion:
        (result,) = await self.complete_many([request])
        if isinstance(result, ChatError):
            raise result
        return result

    async def aclose(self) -> None:
        await self.model.aclose()


def innermost(model: ChatModel) -> ChatModel:
    """The model behind all layers."""
    while isinstance(model, Layer):
        model = model.model
    return model


class Limited(Layer):
    """A model whose calls keep a limiter's bounds, are tried again, and end by the deadline.

    Attributes:
        model: the model behind it.
        limiter: shared by all models that were given it.
    """

    def __init__(self, model: ChatModel, limiter: Limiter | None = None) -> None:
        super().__init__(model)
        self.limiter = limiter or Limiter()

    def __repr__(self) -> str:
        return f"Limited({self.model!r})"

    async def complete(self, request: ChatRequest) -> Completion:
        return await self.limiter.call(self.model, request)

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        # A back end with a way of its own, such as computing a shared prefix once, must see the requests together.
        if requests and type(self.model).complete_many is not ChatModel.complete_many:
            return await self.limiter.call_many(self.model, requests)
        return await super().complete_many(requests)
