"""What a log-probability judge asks of labelled criteria, as tokens: training sees what judging will see."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rubricate.bridge import run_sync
from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion, TokenLogprob
from rubricate.chat.local_text import Codec
from rubricate.chat.local_tree import common_length
from rubricate.data.records import Rollout
from rubricate.errors import ChatError, ConfigError, ContextOverflowError
from rubricate.judges.calibrated import Labelled
from rubricate.judges.logprob import LogprobJudge, answer_mass
from rubricate.rubrics import BinaryScale, Criterion

__all__ = ["AnswerTokens", "Listener", "Sheet", "find_answer_tokens", "group_sheets", "make_sheet", "requests_of"]

_SPELLINGS = ((" yes", " no"), ("yes", "no"), (" Yes", " No"), ("Yes", "No"))


class Listener(ChatModel):
    """A model that answers nothing and keeps what it was asked: the requests of a judge, to train on."""

    name = "listener"

    def __init__(self) -> None:
        self.heard: list[ChatRequest] = []

    @property
    def fingerprint(self) -> str:
        """Of nothing: its answers are errors."""
        return self.name

    @property
    def capabilities(self) -> Capabilities:
        """Those of the local back end."""
        return Capabilities(logprobs=True, prefill=True)

    async def complete(self, request: ChatRequest) -> Completion:
        """Keep the request. Raises ChatError."""
        self.heard.append(request)
        raise ChatError("this model only listens", provider=self.name)


def requests_of(judge: LogprobJudge, rollout: Rollout, criteria: Sequence[Criterion]) -> list[ChatRequest]:
    """The requests that a judge whose model is a `Listener` makes: one a criterion, in order.

    Conditions of criteria are left out: a label says whether the criterion is met.

    Raises ConfigError for a criterion that is not binary, ContextOverflowError for a response that is longer than
    the judge takes.
    """
    listener = judge.model
    if not isinstance(listener, Listener):
        raise ConfigError(f"{judge.name} asks a real model", hint="give the judge a Listener")
    for criterion in criteria:
        if not isinstance(criterion.scale, BinaryScale):
            raise ConfigError(
                f"the criterion {criterion.text[:60]!r} is not binary",
                hint="a log-probability judge answers yes or no; leave out criteria with levels or numbers",
            )
    judge.material(rollout)  # raises what the judge would record as a failure
    listener.heard.clear()
    bare = [criterion.model_copy(update={"condition": None}) for criterion in criteria]
    run_sync(judge.judge_criteria(rollout, bare))
    heard = list(listener.heard)
    if len(heard) != len(criteria):
        raise ConfigError(f"{judge.name} asked {len(heard)} questions about {len(criteria)} criteria")
    return heard


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """The tokens that mean yes and no.

    Attributes:
        yes, no: the one to train on, as it follows the prompt.
        yes_all, no_all: every token that a judge reads so, whatever its spelling.
    """

    yes: int
    no: int
    yes_all: tuple[int, ...]
    no_all: tuple[int, ...]


def find_answer_tokens(codec: Codec, request: ChatRequest, *, vocabulary: int) -> AnswerTokens:
    """The answers' tokens after a prompt, checked: they must leave the prompt's own tokens as they are, and the
    judge must read them as yes and no.

    Args:
        codec: of the model.
        request: any request of the judge.
        vocabulary: number of tokens.

    Raises ConfigError for a tokenizer without such tokens.
    """
    before = codec.encode(request)
    # after a word an answer begins with a blank, at the beginning of a turn without
    for pair in _SPELLINGS if request.prefill.rstrip() else (*_SPELLINGS[1::2], *_SPELLINGS[::2]):
        found = [_next(codec, request, before, word) for word in pair]
        yes, no = (None if token is None else _reads(codec, token) for token in found)
        if yes == "yes" and no == "no":
            kinds = [_reads(codec, token) for token in range(vocabulary)]
            every = {kind: tuple(n for n, k in enumerate(kinds) if k == kind) for kind in ("yes", "no")}
            return AnswerTokens(found[0] or 0, found[1] or 0, every["yes"], every["no"])
    raise ConfigError(
        f"{codec.name}: neither yes nor no is one token after {request.prefill!r}",
        hint="a log-probability judge reads the first token of the answer; take another model",
    )


def _next(codec: Codec, request: ChatRequest, before: Sequence[int], word: str) -> int | None:
    after = codec.encode(replace(request, prefill=request.prefill + word))
    return after[len(before)] if len(after) > len(before) and after[: len(before)] == list(before) else None


def _reads(codec: Codec, token: int) -> str:
    mass = answer_mass(TokenLogprob(codec.piece(token), 0.0))
    return "yes" if mass.yes else "no" if mass.no else ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One prompt and response with the labelled criteria that are asked of it.

    Attributes:
        shared: tokens that all questions begin with.
        branches: what follows in each, at least one token.
        items: the labelled criteria, in the order of the branches.
    """

    shared: array[int]
    branches: tuple[array[int], ...]
    items: tuple[Labelled, ...]

    @property
    def prompts(self) -> list[list[int]]:
        """The questions as whole prompts."""
        shared = self.shared.tolist()
        return [shared + branch.tolist() for branch in self.branches]

    @property
    def size(self) -> int:
        """Tokens of the shared part and all branches."""
        return len(self.shared) + sum(len(branch) for branch in self.branches)

    @property
    def separate(self) -> int:
        """Tokens of the questions as separate prompts."""
        return self.size + len(self.shared) * (len(self.branches) - 1)


def group_sheets(labelled: Sequence[Labelled]) -> list[tuple[Labelled, ...]]:
    """Labelled criteria of one prompt, response and reference together, in the order of first appearance."""
    groups: dict[tuple[object, object, str | None], list[Labelled]] = {}
    for item in labelled:
        groups.setdefault((item.rollout.prompt, item.rollout.response, item.rollout.reference), []).append(item)
    return [tuple(items) for items in groups.values()]


def make_sheet(judge: LogprobJudge, codec: Codec, items: Sequence[Labelled], *, limit: int | None = None) -> Sheet:
    """The questions about one response, as tokens.

    Args:
        judge: with a `Listener` as its model.
        codec: of the model to train.
        items: labelled criteria of one rollout.
        limit: most tokens of one question.

    Raises what `requests_of` and `Codec.encode` do; ContextOverflowError, too, above the limit.
    """
    requests = requests_of(judge, items[0].rollout, [item.criterion for item in items])
    prompts = [codec.encode(request) for request in requests]
    longest = max(map(len, prompts))
    if limit is not None and longest > limit:
        raise ContextOverflowError(f"a question of {longest} tokens exceeds {limit}", provider=codec.name)
    cut = min(len(prompt) - 1 for prompt in prompts)
    for prompt in prompts[1:]:
        cut = min(cut, common_length(prompts[0], prompt))
    branches = tuple(array("i", prompt[cut:]) for prompt in prompts)
    return Sheet(array("i", prompts[0][:cut]), branches, tuple(items))
