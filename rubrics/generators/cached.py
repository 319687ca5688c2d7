"""Rubrics that are made when they are first needed, once a prompt, and kept."""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from rubricate.chat.timing import deadline
from rubricate.errors import ConfigError
from rubricate.failures import failure
from rubricate.rubrics.generators.base import Generated, Generator, Need
from rubricate.rubrics.generators.source import Source, text_of
from rubricate.types import FailureKind, Usage, fingerprint

__all__ = ["PromptRubrics"]

_Flights = dict[str, "asyncio.Task[Generated]"]


class PromptRubrics:
    """One rubric a prompt, made by a generator when it is first asked for. Pickles without what runs.

    Who asks for a prompt whose rubric is being made waits for that one. Failures are not kept: the next one who
    asks has it tried again. Only the one for whom a rubric is made gets its usage, so that sums count it once.

    Args:
        generator: makes the rubrics.
        size: rubrics that are kept; of more, the ones that were not asked for longest go.
        seconds: time that a rubric may take, None for no limit; then it is a failure of the kind `deadline`.
    """

    def __init__(self, generator: Generator, *, size: int = 4096, seconds: float | None = 120.0) -> None:
        if size < 1:
            raise ConfigError(f"size is {size}", hint="use 1 or more")
        if seconds is not None and not seconds > 0.0:
            raise ConfigError(f"seconds is {seconds}", hint="use a number above 0, or None")
        self.generator = generator
        self.size = size
        self.seconds = seconds
        self._kept: OrderedDict[str, Generated] = OrderedDict()
        self._flights: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Flights] = weakref.WeakKeyDictionary()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_flights": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._flights = weakref.WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._kept)

    def key(self, source: Source) -> str:
        """What sources share a rubric by: the prompt, and whatever else the generator looks at."""
        looks = self.generator.needs | self.generator.uses
        seen: dict[Need, Sequence[str]] = {
            Need.REFERENCE: [source.reference or ""],
            Need.PAIR: [text for pair in source.pairs for text in (pair.chosen, pair.rejected)],
            Need.RANKED: [text_of(response) for response in source.ranked],
            Need.CANDIDATES: [text_of(response) for response in source.candidates],
            Need.LABELS: [repr(label) for label in source.labels],
            Need.RUBRICS: [rubric.fingerprint for rubric in source.rubrics],
        }
        return fingerprint([source.task, [[need, list(seen[need])] for need in Need if need in looks]])

    async def get(self, source: Source) -> Generated:
        """The rubric for a source, or why there is none. Raises what the generator's `check` raises."""
        self.generator.check(source)
        key = self.key(source)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return replace(kept, usage=Usage(), source_id=source.id)
        flights = self._flights.setdefault(asyncio.get_running_loop(), {})
        running = flights.get(key)
        if running is not None:
            return replace(await asyncio.shield(running), usage=Usage(), source_id=source.id)
        task = asyncio.create_task(self._make(source))
        flights[key] = task
        task.add_done_callback(lambda done: self._land(flights, key, done))
        return await asyncio.shield(task)

    def _land(self, flights: _Flights, key: str, task: asyncio.Task[Generated]) -> None:
        flights.pop(key, None)
        if task.cancelled() or task.exception() is not None or task.result().rubric is None:
            return
        self._kept[key] = task.result()
        if len(self._kept) > self.size:
            self._kept.popitem(last=False)

    async def _make(self, source: Source) -> Generated:
        """The rubric within the time; the model's own calls end a little earlier, and say so themselves."""
        seconds = self.seconds
        try:
            with deadline(None if seconds is None else seconds - min(0.25, 0.1 * seconds)):
                async with asyncio.timeout(seconds):
                    return await self.generator.generate(source)
        except TimeoutError:
            why = failure(FailureKind.DEADLINE, f"no rubric within {seconds:g} s", retryable=True)
            return replace(Generated.failed(why), source_id=source.id)

    async def aclose(self) -> None:
        """Close the generator."""
        await self.generator.aclose()
