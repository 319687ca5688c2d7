"""A chat model in front of which an answer cache stands."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.chat.cache import AnswerCache
from rubricate.chat.cache_flights import Flight
from rubricate.chat.cache_store import ModelRow
from rubricate.chat.keys import request_key
from rubricate.chat.limited import Layer
from rubricate.chat.recording_lines import as_line, model_record
from rubricate.chat.timing import deadline, remaining
from rubricate.errors import ChatError, DeadlineError

__all__ = ["Cached", "fingerprint_of"]


async def fingerprint_of(model: ChatModel) -> str:
    """A model's fingerprint, read anew each time, because options of a model may change.

    A server may have to be asked for its model's name. That is left to another thread, because this loop has calls
    in flight. Raises ChatError when it cannot be had.
    """
    try:
        with deadline(0.0):
            return model.fingerprint
    except ChatError:
        return await asyncio.to_thread(lambda: model.fingerprint)


class Cached(Layer):
    """A model whose answers are looked up in a cache, and kept there.

    It stands above the limiter: an answer that is found takes no permit, counts against no budget, and has an empty
    `usage`, since it was paid for by whoever asked first. Of requests that share a prefix, those with an answer are
    taken out and the rest go to the model together. A request that is being asked in this process, on whatever
    thread or loop, is not asked a second time: its answer is shared, and so is its error, but for a deadline of the
    other's. Errors and empty answers are not kept.

    Attributes:
        model: the model behind it.
        cache: the cache.
    """

    def __init__(self, model: ChatModel, cache: AnswerCache) -> None:
        super().__init__(model)
        self.cache = cache
        self._row: tuple[Capabilities, ModelRow] | None = None

    def __repr__(self) -> str:
        return f"Cached({self.model!r}, {self.cache!r})"

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        """As in ChatModel. Raises ConfigError for a cache that is damaged or cannot be written."""
        if not requests:
            return []
        try:
            fingerprint = await fingerprint_of(self.model)
        except ChatError as error:
            return [error] * len(requests)
        keys = [request_key(fingerprint, request) for request in requests]
        self.cache.open()
        flights = {key: self.cache.flights.claim(key) for key in dict.fromkeys(keys)}
        mine = [key for key, flight in flights.items() if flight is None]
        results: dict[str, Completion | ChatError] = {}
        try:
            if mine:
                results = await self._lead(fingerprint, mine, dict(zip(keys, requests, strict=True)))
        finally:
            for key in mine:
                self.cache.flights.land(key, _for_others(results.get(key)))
        waiting = {key: flight for key, flight in flights.items() if flight is not None}
        if waiting:
            by_key = dict(zip(keys, requests, strict=True))
            brought = await asyncio.gather(*(self._follow(by_key[key], flight) for key, flight in waiting.items()))
            results.update(zip(waiting, brought, strict=True))
        return [
            self._shared(results[key]) if key in keys[:at] else results[key]  # asked once, whoever wants it
            for at, key in enumerate(keys)
        ]

    def _shared(self, result: Completion | ChatError) -> Completion | ChatError:
        return self.cache.share(result) if isinstance(result, Completion) else result

    async def _lead(
        self, fingerprint: str, keys: Sequence[str], requests: dict[str, ChatRequest]
    ) -> dict[str, Completion | ChatError]:
        """Answers to the requests that nobody else is asking: from the file, or from the model and then kept."""
        found = self.cache.look_up(keys)
        asked = [key for key in keys if key not in found]
        self.cache.count(hits=len(found), misses=len(asked))
        results: dict[str, Completion | ChatError] = {**found}
        if asked:
            await self.cache.require_room()
            answers = await self.model.complete_many([requests[key] for key in asked])
            results.update(zip(asked, answers, strict=True))
            paid = [
                (key, answer) for key, answer in zip(asked, answers, strict=True) if isinstance(answer, Completion)
            ]
            await self.cache.keep(self._described(fingerprint), paid)
        return results

    async def _follow(self, request: ChatRequest, flight: Flight) -> Completion | ChatError:
        """The answer that another call brings; where it brings none, one of our own."""
        left = remaining()
        try:
            outcome = await asyncio.wait_for(flight.wait(), left)
        except TimeoutError:
            message = "the deadline passed while another call was waiting for the same answer"
            return DeadlineError(message, provider=self.name)
        if isinstance(outcome, Completion):
            return self.cache.share(outcome)
        return outcome if outcome is not None else await self._settled(request)

    def _described(self, fingerprint: str) -> ModelRow:
        able = self.capabilities
        if self._row is None or self._row[0] != able or self._row[1].fingerprint != fingerprint:
            record = as_line(model_record(self.model, fingerprint)).decode().rstrip("\n")
            self._row = able, ModelRow(fingerprint, self.name, record)
        return self._row[1]

    async def aclose(self) -> None:
        """Close the model. The cache's file stays open for the other models that use it, until nobody does."""
        await self.model.aclose()
        await asyncio.to_thread(self.cache.flush)


def _for_others(result: Completion | ChatError | None) -> Completion | ChatError | None:
    """What those who wait for the same answer get: not another's deadline."""
    return None if isinstance(result, DeadlineError) else result
