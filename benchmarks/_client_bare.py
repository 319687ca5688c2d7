"""The floor: an aiohttp loop that sends ready-made texts, in one of two orders, and reads the verdicts.

Usage: _client_bare.py URL TEXTS {response|criterion} (what comes first), with TEXTS from `_client_ours.py texts`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import aiohttp
from _measure import Meter
from _workload import CRITERIA, exact_score

PARALLEL = 64


async def run(url: str, texts: list[list[list[str]]], first: str) -> list[float | None]:
    """Scores of all cases. Each case is a list of (system message, shared part, criterion's part)."""
    gate = asyncio.Semaphore(PARALLEL)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=PARALLEL)) as session:

        async def ask(system: str, shared: str, item: str) -> bool:
            user = f"{shared}{item}" if first == "response" else f"{item}\n\n{shared}"
            messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            body = {"model": "judge", "messages": messages, "max_tokens": 400, "temperature": 0.0}
            async with gate, session.post(f"{url}/chat/completions", json=body) as response:
                answer = json.loads(await response.read())
            reply = json.loads(answer["choices"][0]["message"]["content"])
            return reply["verdicts"][0]["verdict"] == "met"

        async def score(case: list[list[str]]) -> float | None:
            met = await asyncio.gather(*(ask(*parts) for parts in case))
            return exact_score([c.id for c, is_met in zip(CRITERIA, met, strict=True) if is_met])

        return list(await asyncio.gather(*(score(case) for case in texts)))


if __name__ == "__main__":
    address, path, order = sys.argv[1:]
    meter = Meter()
    meter.finish(asyncio.run(run(address, json.loads(Path(path).read_text("utf-8")), order)))
