"""The back end that plays a recording: the answers and errors of a run, without the model that gave them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from rubricate.chat.base import Capabilities, ChatRequest, Completion
from rubricate.chat.keys import request_key
from rubricate.chat.limited import Final
from rubricate.chat.recording import Index, Turns, read_outcome
from rubricate.chat.recording_lines import read_capabilities
from rubricate.chat.timing import remaining
from rubricate.errors import ChatError, ConfigError, DeadlineError, RequestError

__all__ = ["ReplayModel", "load_replay"]

_LATE = 1.0
"""A call that was cut off waits so many seconds past its deadline for whoever cuts it off again."""


class ReplayModel(Final):
    """A model of a recording, with the name, the fingerprint and the capabilities that it had.

    A request gets what it got when it was recorded: by its scope (see `recording_scope`) and turn, else by its
    content alone. Nothing is loaded, asked or paid. It stands behind no limiter: the recorded errors are final.

    Args:
        path: the recording.
        model: the model's name or fingerprint, where the recording holds several.

    Attributes:
        lacking: the first request that the recording has no outcome for, as an error; None so far.

    Raises FormatError for a file that is no recording, ConfigError where the model is not in it, or not alone.
    """

    def __init__(self, path: str | Path, model: str = "") -> None:
        self.path = Path(path).expanduser().absolute()
        self._index = Index(self.path)
        self._record = _chosen(self._index, model)
        self.name = str(self._record.get("name", ""))
        self.lacking: RequestError | None = None
        self._turns = Turns(f"replay:{self.path}")

    def __repr__(self) -> str:
        return f"ReplayModel({str(self.path)!r}, {self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.fingerprint)

    @property
    def fingerprint(self) -> str:
        return str(self._record["model"])

    @property
    def capabilities(self) -> Capabilities:
        return read_capabilities(self._record.get("capabilities"))

    def lacks(self, request: ChatRequest) -> bool:
        """Whether the recording has no outcome for the request, in any scope."""
        return request_key(self.fingerprint, request) not in self._index

    async def complete(self, request: ChatRequest) -> Completion:
        """The recorded answer. Raises the recorded error, RequestError for a request that was not recorded."""
        place = self._turns.take(request_key(self.fingerprint, request))
        record = self._index.find(place, elsewhere=True)
        if record is None:
            error = self._missing(request)
            self.lacking = self.lacking or error
            raise error
        outcome = read_outcome(record, self.path)
        if outcome is None:
            raise await self._cut()
        if isinstance(outcome, Completion):
            return outcome
        raise outcome

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        """The recorded outcomes, turns in the order of the requests."""
        return [await self._settled(request) for request in requests]

    async def _cut(self) -> ChatError:
        """Wait as the recorded call did, for the caller to stop waiting."""
        left = remaining()
        await asyncio.sleep(0.0 if left is None else left + _LATE)
        return DeadlineError("the recorded call was cut off before an answer came", provider=self.name)

    def _missing(self, request: ChatRequest) -> RequestError:
        text = request.messages[-1].content if request.messages else ""
        sample = f", sample {request.sample}" if request.sample else ""
        return RequestError(
            f"the recording {self.path} holds no answer to this request of {self.name}{sample}: "
            f"…{' '.join(text[-160:].split())!r}",
            provider=self.name,
            hint="replay it with the data, rubric, prompts and options that it was made with, or record it anew",
        )


def _chosen(index: Index, model: str) -> Mapping[str, object]:
    found = [
        record
        for fingerprint, record in index.models.items()
        if not model or model in (fingerprint, record.get("name"))
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{record.get('name')} ({fingerprint})" for fingerprint, record in index.models.items())
    if not index.models:
        raise ConfigError(f"the recording {index.path} is empty", hint="record a run with --record")
    if not found:
        raise ConfigError(f"the recording {index.path} has no model {model!r}", hint=f"it has {names}")
    raise ConfigError(
        f"the recording {index.path} is of {len(found)} models",
        hint=f"name one by its fingerprint, as in replay:FILE#FINGERPRINT: {names}",
    )


def load_replay(spec: str) -> ReplayModel:
    """The model behind `replay:FILE`, or `replay:FILE#MODEL` where the recording holds several."""
    path, mark, model = spec.rpartition("#")
    if not mark or Path(spec).expanduser().is_file():
        path, model = spec, ""
    if not path:
        raise ConfigError("the recording's file is missing", hint="write replay:FILE.jsonl")
    return ReplayModel(path, model)
