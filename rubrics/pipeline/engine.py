"""What runs the stages: the interface of engines, and the one of this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Protocol

from rubricate.rubrics.pipeline.rows import WorkRow

__all__ = ["Engine", "LocalEngine", "Stage"]


class Stage(Protocol):
    """Rows in, outcomes out, one an row, in order. Pickles, so that an engine may run it in other processes.

    An outcome is a JSON-ready record: see `rubricate.rubrics.pipeline.chain`. `group` is how many rows it wants to
    see together at most.
    """

    @property
    def group(self) -> int: ...

    async def __call__(self, rows: Sequence[WorkRow]) -> list[dict[str, object]]: ...

    async def aclose(self) -> None: ...


class Engine(Protocol):
    """Runs a stage over groups of rows."""

    @property
    def name(self) -> str: ...

    def run(
        self, stage: Stage, groups: AsyncIterator[Sequence[WorkRow]], *, at_once: int
    ) -> AsyncGenerator[tuple[Sequence[WorkRow], Sequence[Mapping[str, object]]]]:
        """Each group with its outcomes, as they are done, in any order.

        Groups are taken as there is room for them, `at_once` in work at a time, so that memory does not grow with
        the data. What the stage raises ends the run; groups in work are then cancelled, and likewise when the
        caller closes the generator.
        """
        ...


class LocalEngine:
    """Runs a stage on this process's event loop."""

    name = "local"

    async def run(
        self, stage: Stage, groups: AsyncIterator[Sequence[WorkRow]], *, at_once: int
    ) -> AsyncGenerator[tuple[Sequence[WorkRow], Sequence[Mapping[str, object]]]]:
        """See `Engine.run`."""
        ready: asyncio.Queue[asyncio.Task[list[dict[str, object]]]] = asyncio.Queue()
        working: dict[asyncio.Task[list[dict[str, object]]], Sequence[WorkRow]] = {}
        more = True
        try:
            while more or working:
                while more and len(working) < at_once:
                    group = await anext(groups, None)
                    more = group is not None
                    if group is not None:
                        task = asyncio.create_task(_run(stage, group))
                        working[task] = group
                        task.add_done_callback(ready.put_nowait)
                if working:
                    task = await ready.get()
                    yield working.pop(task), task.result()
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)


async def _run(stage: Stage, group: Sequence[WorkRow]) -> list[dict[str, object]]:
    return await stage(group)
