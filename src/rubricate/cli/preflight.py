"""What is done before the first response is scored."""

from __future__ import annotations

from rubricate.chat import ChatModel, ChatRequest, Message

__all__ = ["load_in_process"]


async def load_in_process(model: ChatModel | None) -> None:
    """Load a model that runs in this process, so that weights that cannot be loaded end the command at once.

    Models behind a server are not asked: that would cost a call. Raises what loading raises: ConfigError,
    MissingExtraError.
    """
    if model is not None and model.name.startswith("local:"):
        await model.complete(ChatRequest((Message("user", "Hello."),), max_tokens=1))
