"""Runners for the schemas of `judge_outputs` that read a reply, build a prompt block or screen a response."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rubricate.chat.base import Completion, Finish
from rubricate.errors import AnswerError
from rubricate.judges.fence import fence, make_nonce, unfence
from rubricate.judges.parsing import (
    parse_criterion_verdicts,
    parse_preference,
    parse_score,
    parse_scores,
    parse_verdict,
)
from rubricate.judges.screen import screen_response

Case = Mapping[str, Any]


def raw(case: Case) -> str:
    """The reply, put together from its parts where it is stored so."""
    return case["raw"] if "raw" in case else "".join(text * times for text, times in case["raw_parts"])


def verdict(case: Case) -> dict[str, object]:
    key = case.get("keys", {}).get("verdict", "verdict")
    return {"verdict": parse_verdict(raw(case), case["choices"], key=key)}


def criterion_verdicts(case: Case) -> dict[str, object]:
    result = parse_criterion_verdicts(
        raw(case), case["criteria"], case["verdict_set"], index_base=case.get("index_base")
    )
    return {
        "verdicts": dict(result.verdicts),
        "missing": result.missing,
        "ambiguous": result.ambiguous,
        "extra": result.extra,
    }


def score(case: Case) -> dict[str, object]:
    low, high = case["scale"]
    return {"score": parse_score(raw(case), low, high)}


def scores(case: Case) -> dict[str, object]:
    low, high = case["scale"]
    return {"scores": parse_scores(raw(case), case["names"], low, high)}


def pairwise(case: Case) -> dict[str, object]:
    winner = parse_preference(raw(case), case["labels"], ties=case["ties"], tie_label=case.get("tie_label"))
    return {"winner": winner}


def judge_reply(case: Case) -> dict[str, object]:
    """The first attempt that was answered, read as `then` says."""
    attempts: Sequence[Case] = case["attempts"]
    answered = next((one for one in attempts if one.get("status") == 200 and "error" not in one), None)
    if answered is None:
        raise AnswerError("every attempt failed", outcome="empty")
    finish = answered.get("finish_reason", "stop")
    completion = Completion(
        answered.get("content") or "",
        Finish(finish) if finish in set(Finish) else Finish.OTHER,
        reasoning=answered.get("reasoning_content", ""),
    )
    then: dict[str, Any] = dict(case["then"])
    return RUNNERS[then["schema"]](then | {"raw": completion.require_text()})


def prompt_block(case: Case) -> dict[str, object]:
    """Fence the response in a prompt, look for blocks as a reader of the prompt would, and take it out again."""
    response: str = case["response"]
    nonce = make_nonce("run key", "the task", response)
    prompt = f"Judge the response.\n{fence('response', response, nonce)}\nCriterion: it names a source."
    blocks = re.findall(rf"^<response-{nonce}>$(.*?)^</response-{nonce}>$", prompt, re.M | re.S)
    outside = prompt.partition(f"<response-{nonce}>")[0] + prompt.rpartition(f"</response-{nonce}>")[2]
    leaked = "<response>" in outside or "<|im_" in prompt or outside.count("Criterion:") != 1
    return {"blocks": len(blocks) + leaked, "intact": unfence(prompt, "response", nonce) == response}


def response_screen(case: Case) -> dict[str, object]:
    return {"flag": bool(screen_response(case["response"], case.get("task", "")))}


RUNNERS: dict[str, Callable[[Case], dict[str, object]]] = {
    "criterion_verdicts": criterion_verdicts,
    "judge_reply": judge_reply,
    "pairwise": pairwise,
    "prompt_block": prompt_block,
    "response_screen": response_screen,
    "score": score,
    "scores": scores,
    "verdict": verdict,
}
