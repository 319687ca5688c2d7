"""What is done before the first response is scored."""

from __future__ import annotations

from rubricate.chat import ChatModel, ChatRequest, Message, innermost
from rubricate.chat.limited import Final

__all__ = ["load_in_process"]


async def load_in_process(model: ChatModel | None) -> None:
    """Load a model that runs in this process, so that weights that cannot be loaded end the command at once.

    Models behind a server are not asked: that would cost a call. Nor is a cache, a recording or a replay. Raises
    what loading raises: ConfigError, MissingExtraError.
    """
    inner = None if model is None else innermost(model)
    if inner is not None and inner.name.startswith(("local:", "vllm:")) and not isinstance(inner, Final):
        await inner.complete(ChatRequest((Message("user", "Hello."),), max_tokens=1))
