"""Chat models behind one interface: hosted, self-hosted, in this process, or scripted."""

from __future__ import annotations

from rubricate.chat.attempts import attempts_of, failure_kind
from rubricate.chat.base import (
    Capabilities,
    ChatModel,
    ChatRequest,
    Completion,
    Finish,
    Message,
    Outcome,
    TokenLogprob,
)
from rubricate.chat.limited import Limited
from rubricate.chat.limiter import Limiter, LimiterStats
from rubricate.chat.limits import Limits
from rubricate.chat.mock import FailEvery, FailRate, MockModel, Scripted
from rubricate.chat.registry import BackEnd, connect, register_back_end, schemes
from rubricate.chat.timing import deadline, remaining

__all__ = [
    "BackEnd",
    "Capabilities",
    "ChatModel",
    "ChatRequest",
    "Completion",
    "FailEvery",
    "FailRate",
    "Finish",
    "Limited",
    "Limiter",
    "LimiterStats",
    "Limits",
    "Message",
    "MockModel",
    "Outcome",
    "Scripted",
    "TokenLogprob",
    "attempts_of",
    "connect",
    "deadline",
    "failure_kind",
    "register_back_end",
    "remaining",
    "schemes",
]
