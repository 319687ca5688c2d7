"""A chat model whose answers and errors are written to a recording."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rubricate.chat.base import ChatModel, ChatRequest, Completion
from rubricate.chat.cache_model import fingerprint_of
from rubricate.chat.keys import request_key
from rubricate.chat.limited import Layer
from rubricate.chat.recording import CUT, Place, Recording
from rubricate.chat.recording_lines import answer_record, error_record, model_record
from rubricate.errors import ChatError, RubricateError

__all__ = ["Recorder"]


class Recorder(Layer):
    """A model that writes down what becomes of every request, before it is returned.

    It stands above the cache and the limiter: what it writes is final, and the recorded usage is what the call
    cost, retries included. An answer that the recording holds already is given again without asking.

    Attributes:
        model: the model behind it.
        recording: where the outcomes go.
    """

    def __init__(self, model: ChatModel, recording: Recording) -> None:
        super().__init__(model)
        self.recording = recording

    def __repr__(self) -> str:
        return f"Recorder({self.model!r}, {self.recording!r})"

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        """As in ChatModel. Raises ConfigError when the outcomes cannot be written."""
        try:
            fingerprint = await fingerprint_of(self.model)
        except ChatError as error:
            return [error] * len(requests)
        places = [self.recording.turns.take(request_key(fingerprint, request)) for request in requests]
        known = {
            at: answer for at, place in enumerate(places) if (answer := self.recording.find(place)) is not None
        }
        asked = [at for at in range(len(requests)) if at not in known]
        if not asked:
            return [known[at] for at in range(len(requests))]
        wanted = [places[at] for at in asked]
        try:
            answers = await self.model.complete_many([requests[at] for at in asked])
        except RubricateError as error:
            self._write(fingerprint, wanted, [error] * len(wanted))
            raise
        except asyncio.CancelledError:
            self._write(fingerprint, wanted, [None] * len(wanted))
            raise
        self._write(fingerprint, wanted, answers)
        results: dict[int, Completion | ChatError] = {**known, **dict(zip(asked, answers, strict=True))}
        return [results[at] for at in range(len(requests))]

    def _write(
        self, fingerprint: str, places: Sequence[Place], outcomes: Sequence[Completion | RubricateError | None]
    ) -> None:
        self.recording.write(
            model_record(self.model, fingerprint),
            [(place, _outcome(outcome)) for place, outcome in zip(places, outcomes, strict=True)],
        )

    async def aclose(self) -> None:
        """Close the model, and bring the recording to disk; both open again when they are needed."""
        await self.model.aclose()
        await asyncio.to_thread(self.recording.close)


def _outcome(outcome: Completion | RubricateError | None) -> dict[str, object]:
    if outcome is None:
        return {CUT: True}
    if isinstance(outcome, Completion):
        return {"answer": answer_record(outcome)}
    return {"error": error_record(outcome)}
