"""rubricate on the benchmark's job.

Usage: _client_ours.py {reasoned|one-call|logprob|openai} URL CASES
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from _judging import make_reward
from _measure import Meter
from _texts import rollouts, rubric
from _workload import Case, load_cases

from rubricate.types import Reward


async def run(contestant: str, url: str, cases: Sequence[Case]) -> list[Reward]:
    """Rewards of all cases."""
    name = f"{url}#judge"
    if contestant == "openai":  # the reasoned judge through the SDK
        os.environ["OPENAI_BASE_URL"] = url
        name, contestant = "openai:judge", "reasoned"
    reward = make_reward(name, contestant, rubric())
    try:
        return await reward.ascore_batch(rollouts(cases))
    finally:
        await reward.aclose()


if __name__ == "__main__":
    which, address, path = sys.argv[1:]
    # rubricate imports these when it first needs them; the other contestants do so at once.
    for module in ("aiohttp", "jinja2", *(["openai"] if which == "openai" else [])):
        importlib.import_module(module)
    meter = Meter()
    rewards = asyncio.run(run(which, address, load_cases(Path(path))))
    meter.finish(
        [reward.value for reward in rewards],
        ["" if reward.failure is None else reward.failure.kind.value for reward in rewards],
    )
