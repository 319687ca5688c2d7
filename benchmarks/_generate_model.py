"""A model for `generate.py`: it logs every call to a file, waits, and answers with a rubric of seven criteria."""

from __future__ import annotations

import asyncio
import json
import os
import re

from rubricate.chat import ChatModel, ChatRequest, Completion
from rubricate.chat.base import Capabilities
from rubricate.chat.limits import Limits
from rubricate.chat.registry import BackEnd, register_back_end
from rubricate.types import Usage, fingerprint

WAIT = 0.02
"""Seconds that an answer takes."""

_CATEGORIES = ("Essential", "Important", "Important", "Optional", "Optional", "Essential")
_CRITERIA = [
    {"title": f"Aspect {n}", "description": f"{name} Criteria: The response explains aspect {n} of the question."}
    for n, name in enumerate(_CATEGORIES)
]
_PITFALL = {"title": "Wrong cause", "description": "Pitfall Criteria: Claims that the sea paints the sky."}
_REPLY = json.dumps({"criteria": [*_CRITERIA, _PITFALL]})


class LoggedModel(ChatModel):
    """Appends the number in each prompt to the log when it is asked."""

    def __init__(self, spec: str) -> None:
        self.name = f"bench:{spec}"
        self._log = os.open(spec, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    @property
    def fingerprint(self) -> str:
        """The same for every log."""
        return fingerprint("bench")

    @property
    def capabilities(self) -> Capabilities:
        """It takes a schema."""
        return Capabilities(json_schema=True)

    async def complete(self, request: ChatRequest) -> Completion:
        """The rubric, after a while."""
        found = re.search(r"item (\d+)", request.messages[-1].content)
        os.write(self._log, f"{found[1] if found else '?'}\n".encode())
        await asyncio.sleep(WAIT)
        return Completion(_REPLY, usage=Usage(1, 500, 250))


register_back_end(BackEnd("bench", lambda: LoggedModel, "bench:/LOG", Limits(concurrency=None)))
