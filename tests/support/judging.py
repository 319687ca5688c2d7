"""What tests of judges share: the shapes of our judges' replies. Imported as `judging`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping

from rubricate.chat import ChatRequest, Completion, TokenLogprob
from rubricate.types import Usage

__all__ = ["all_met", "labels", "one_token", "reply"]


def labels(request: ChatRequest) -> dict[str, str]:
    """Label to criterion text, as the prompt's item part lists them."""
    return dict(re.findall(r"^(C\d+): (.*)$", request.messages[-1].content, flags=re.M))


def reply(verdicts: Mapping[str, object]) -> str:
    """A well-formed reply."""
    entries = [{"id": label, "reason": f"because of {label}", "verdict": v} for label, v in verdicts.items()]
    return json.dumps({"verdicts": entries, "final": dict(verdicts)})


def all_met(request: ChatRequest) -> str:
    """A well-formed reply that finds everything met."""
    return reply(dict.fromkeys(labels(request), "met"))


def one_token(*top: tuple[str, float]) -> Completion:
    """A one-token answer with these alternatives, most likely first, as (token, probability)."""
    alternatives = tuple((token, math.log(p)) for token, p in top)
    token, logprob = alternatives[0]
    return Completion(token, usage=Usage(1, 10, 1), logprobs=(TokenLogprob(token, logprob, alternatives),))
