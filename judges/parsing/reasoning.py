"""Removal of reasoning blocks. It lives in `rubricate.chat.reasoning`."""

from rubricate.chat.reasoning import strip_reasoning

__all__ = ["strip_reasoning"]
