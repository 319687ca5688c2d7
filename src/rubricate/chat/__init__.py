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
from rubricate.chat.cache import AnswerCache, CacheStats
from rubricate.chat.cache_contents import CacheContents, cache_contents, clear_cache, default_cache_path
from rubricate.chat.cache_model import Cached
from rubricate.chat.keys import request_key
from rubricate.chat.limited import Limited, innermost
from rubricate.chat.limiter import Limiter, LimiterStats
from rubricate.chat.limits import Limits
from rubricate.chat.mock import FailEvery, FailRate, MockModel, Scripted
from rubricate.chat.recording import Recording, recording_scope
from rubricate.chat.recording_model import Recorder
from rubricate.chat.registry import BackEnd, connect, register_back_end, schemes
from rubricate.chat.replay import ReplayModel
from rubricate.chat.timing import deadline, remaining

__all__ = [
    "AnswerCache",
    "BackEnd",
    "CacheContents",
    "CacheStats",
    "Cached",
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
    "Recorder",
    "Recording",
    "ReplayModel",
    "Scripted",
    "TokenLogprob",
    "attempts_of",
    "cache_contents",
    "clear_cache",
    "connect",
    "deadline",
    "default_cache_path",
    "failure_kind",
    "innermost",
    "recording_scope",
    "register_back_end",
    "remaining",
    "request_key",
    "schemes",
]
