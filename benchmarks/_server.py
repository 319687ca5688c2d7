"""The scripted judge server of the benchmarks, with faults that depend on what is asked and not on when.

Run as a script it serves in a process of its own, so that it costs the client nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from _damage import damage
from _workload import SHAPES, say, subject

from rubricate.chat.testserver import Faults, FaultyServer, Reply, prompt_text
from rubricate.narrow import as_number, as_object

__all__ = ["ContentFaultServer", "ServerProcess", "Stats", "answerer"]

MODEL = "judge"


def answerer(shape: str) -> Callable[[dict[str, object]], Reply | Mapping[str, object]]:
    """What answers a request's body rightly: in words, or with a certain yes or no where log-probabilities are
    asked for."""

    def answer(body: dict[str, object]) -> Reply | Mapping[str, object]:
        prompt = prompt_text(body)
        if not body.get("logprobs"):
            return say(shape, prompt)
        met = say("one", prompt)["criterion_status"] == "MET"
        return Reply(top={"yes" if met else "no": 1.0})

    return answer


class ContentFaultServer(FaultyServer):
    """A FaultyServer whose faults follow from the seed, from what is asked and how often that was asked before.

    So neither the order in which requests arrive, which is the operating system's affair, nor a prompt's wording
    changes anything.

    Args:
        shape: shape of the replies, one of `SHAPES`.
        contradict: damage replies of the kind `off_vocabulary` by contradiction: never, always, or half the time.
    """

    def __init__(
        self,
        shape: str,
        faults: Faults | None = None,
        *,
        seed: int = 0,
        latency: float = 0.0,
        contradict: float = 0.0,
    ) -> None:
        def mutate(kind: str, text: str, rng: random.Random) -> str:
            kind = "contradiction" if kind == "off_vocabulary" and rng.random() < contradict else kind
            return damage(kind, text, rng)

        super().__init__(answerer(shape), faults, seed=seed, latency=latency, model=MODEL, mutate=mutate)

    def reset(self) -> None:
        """Forget what was asked, too."""
        super().reset()
        self._asked = Counter[str]()

    async def _handle(self, body: dict[str, object], index: int) -> Any:
        key = subject(prompt_text(body))
        self._asked[key] += 1
        return await super()._handle(body, zlib.crc32(key.encode()) * 1000 + self._asked[key])


class Stats:
    """The server's counts (`rubricate.chat.testserver.Counts`) as numbers by name."""

    def __init__(self, record: Mapping[str, object]) -> None:
        self.record = record

    def __getitem__(self, name: str) -> int:
        return int(as_number(self.record.get(name)) or 0)


class ServerProcess:
    """A ContentFaultServer in a process of its own, as a context manager. `url` ends in `/v1`."""

    def __init__(
        self,
        shape: str,
        faults: Faults | None = None,
        *,
        seed: int = 0,
        latency: float = 0.0,
        contradict: float = 0.0,
    ) -> None:
        options: dict[str, object] = {"shape": shape, "seed": seed, "latency": latency, "contradict": contradict}
        options["faults"] = asdict(faults or Faults())
        self._command = [sys.executable, str(Path(__file__).resolve()), json.dumps(options)]
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> ServerProcess:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line.startswith("http"):
            raise RuntimeError("the benchmark server did not start")
        self.url = line.strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.communicate(timeout=30)  # closes its stdin, which ends it

    def stats(self) -> Stats:
        """What the server has counted so far."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError("the benchmark server does not run")
        process.stdin.write("stats\n")
        process.stdin.flush()
        return Stats(as_object(json.loads(process.stdout.readline())) or {})


async def _serve(options: Mapping[str, Any]) -> None:
    faults = Faults(**options["faults"])
    more = {name: options[name] for name in ("seed", "latency", "contradict")}
    async with ContentFaultServer(options["shape"], faults, **more) as server:
        print(server.url, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):  # until it is closed
            counts = server.counts
            print(json.dumps({**asdict(counts), "faults": dict(counts.faults)}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("options", help=f"JSON: shape ({', '.join(SHAPES)}), faults, seed, latency, contradict")
    asyncio.run(_serve(json.loads(parser.parse_args().options)))
