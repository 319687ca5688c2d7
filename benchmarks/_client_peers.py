"""Other packages on the same job, each by its own documented interface, in an environment of their own.

Usage: _client_peers.py CONTESTANT URL CASES. Nothing of rubricate is imported here.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from _measure import Meter
from _workload import CRITERIA, Case, load_cases

Grade = Callable[[Case], Awaitable[tuple[float | None, str]]]
WEIGHTS = [{"weight": c.weight, "requirement": c.text} for c in CRITERIA]


def rubric_package(one_shot: bool) -> Callable[[str], Grade]:
    """`rubric`: the README's OpenAI function, with one client for the whole run instead of one a call."""
    openai = importlib.import_module("openai")
    package = importlib.import_module("rubric")
    graders = importlib.import_module("rubric.autograders")
    schemas = importlib.import_module("rubric.autograders.schemas")
    output = schemas.OneShotOutput if one_shot else schemas.PerCriterionOutput
    grader_class = graders.PerCriterionOneShotGrader if one_shot else graders.PerCriterionGrader

    def prepare(url: str) -> Grade:
        client = openai.AsyncOpenAI(base_url=url, api_key="none")
        schema = {"name": "criterion_output", "schema": output.model_json_schema()}

        async def generate(system_prompt: str, user_prompt: str, **_: object) -> object:
            response = await client.chat.completions.create(
                model="judge",
                messages=[
                    {"role": "system", "content": system_prompt},
                    {"role": "user", "content": user_prompt},
                ],
                response_format={"type": "json_schema", "json_schema": schema},
                max_tokens=1600 if one_shot else 400,
                temperature=0.0,
            )
            return output.model_validate_json(response.choices[0].message.content or "{}")

        rubric = package.Rubric.from_dict(WEIGHTS)
        grader = grader_class(generate_fn=generate)

        async def grade(case: Case) -> tuple[float | None, str]:
            report = await rubric.grade(query=case.prompt, to_grade=case.response, autograder=grader)
            return report.score, ""

        return grade

    return prepare


def autorubric_package(**options: object) -> Callable[[str], Grade]:
    """`autorubric` through litellm; retries wait 0.05 to 0.2 s, so that a run with faults takes seconds."""
    package = importlib.import_module("autorubric")
    graders = importlib.import_module("autorubric.graders")
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True  # it prints a banner a call for models without a price
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    parallel = options.pop("max_parallel_requests", None)

    def prepare(url: str) -> Grade:
        config = package.LLMConfig(
            model="openai/judge",
            api_base=url,
            api_key="none",
            temperature=0.0,
            max_parallel_requests=parallel,
            retry_min_wait=0.05,
            retry_max_wait=0.2,
        )
        rubric = package.Rubric.from_dict(WEIGHTS)
        grader: Any = graders.CriterionGrader(judge_model_config=config, **options)

        async def grade(case: Case) -> tuple[float | None, str]:
            report = await rubric.grade(to_grade=case.response, grader=grader, query=case.prompt)
            return report.score, "error reported" if report.error else ""

        return grade

    return prepare


CONTESTANTS: dict[str, Callable[[], Callable[[str], Grade]]] = {
    "rubric": lambda: rubric_package(one_shot=False),
    "rubric-one-shot": lambda: rubric_package(one_shot=True),
    "autorubric": lambda: autorubric_package(),
    "autorubric-32": lambda: autorubric_package(max_parallel_requests=32),
    "autorubric-per-item": lambda: autorubric_package(llm_calls="per_item"),
}


async def run(grade: Grade, cases: list[Case]) -> list[tuple[float | None, str]]:
    """All cases at once. A case that raises has no score, and the error as its flag."""

    async def one(case: Case) -> tuple[float | None, str]:
        try:
            return await grade(case)
        except Exception as error:
            return None, type(error).__name__

    return list(await asyncio.gather(*(one(case) for case in cases)))


if __name__ == "__main__":
    contestant, address, path = sys.argv[1:]
    prepare = CONTESTANTS[contestant]()
    meter = Meter()
    results = asyncio.run(run(prepare(address), load_cases(Path(path))))
    meter.finish([score for score, _ in results], [flag for _, flag in results])
