"""Several criteria in one prefill: answer slots in the prompt, read from the prompt's own log-probabilities."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion, TokenLogprob
from rubricate.data.records import Rollout
from rubricate.errors import ChatError, ConfigError, RubricateError
from rubricate.judges.base import ModelJudge, Shown, failure, failure_of, sound_tokens
from rubricate.judges.mass import label_mass, plain_tokens, shortfall
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import BinaryScale, Criterion
from rubricate.types import Failure, FailureKind, Judgement, Usage, Verdict

__all__ = ["SlotsJudge", "slots_in"]

_ANSWERS: Mapping[str, str] = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class _Question:
    """What a slot answers: a criterion, or its condition."""

    id: str
    text: str
    condition: bool = False


class SlotsJudge(ModelJudge):
    """Asks k yes/no questions in one prompt and reads P(yes) of each where its answer is left open. Opt-in.

    After each question the prompt itself holds an answer, a fixed neutral sign (`filler`), the same for all. The
    server computes the whole prompt in one pass and says, for each of its tokens, how likely that token and others
    were: where a sign stands, P(yes) is the model's answer (position-by-position teacher forcing; ours). Nothing is
    generated but one token that is thrown away.

    A question sees the questions before it and their open answers, so that criteria influence each other, which
    separate calls avoid: verdicts depend on the rubric's other criteria and on their order. How far is the model's
    matter, and must be tried: `benchmarks/prompt_logprobs.py` on SmolLM2-135M, untuned, three criteria a response,
    found P(yes) moved by 0.16 in the mean and 54% of the verdicts turned over against a call each (0.26 and 67%
    with "?" for the sign).

    vLLM computes a prompt whose log-probabilities are asked for without its prefix cache, so that this saves
    requests, not computation: with a prefix cache, `LogprobJudge` is the better choice, and so is it on the local
    back end, which computes all criteria behind one prefix, each unseen by the others.

    It needs a back end with `prompt_logprobs`: vLLM's server. Others give `no_logprobs`. Verdicts are as
    `LogprobJudge`'s: P(yes) is the score, a condition is a question of its own, other scales fail.

    Args:
        shown: what the judge sees and how; see `Shown`.
        questions_per_call: k; longer rubrics are split, each part on the same prefix. 1 asks each alone.
        filler: the sign in place of an answer. One that tokenizers keep apart from the blank line behind it.
        max_outside: largest share of probability outside yes and no, in [0, 1].
        top_logprobs: alternatives to ask for at each token of the prompt; vLLM allows 20.

    Raises ConfigError for a filler that is an answer, or blank.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        questions_per_call: int = 16,
        filler: str = "-",
        max_outside: float = 0.5,
        top_logprobs: int = 20,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or load_prompt("slots_judge"), **shown)
        if questions_per_call < 1:
            raise ConfigError(f"questions_per_call is {questions_per_call}", hint="use 1 or more")
        if not filler.strip() or filler.strip().casefold() in _ANSWERS:
            raise ConfigError(f"the filler {filler!r} is no neutral sign", hint="use -")
        self.questions_per_call = questions_per_call
        self.filler = filler
        self.max_outside = max_outside
        self.top_logprobs = top_logprobs

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("questions_per_call", "filler", "max_outside", "top_logprobs")
        return super().identity() | {name: getattr(self, name) for name in names}

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        try:
            shared = self.prompt.render("shared", self.material(rollout).values())
            questions = [
                question
                for criterion in criteria
                if isinstance(criterion.scale, BinaryScale)
                for question in _questions(criterion)
            ]
            pieces = [self._piece(question) for question in questions]
        except RubricateError as error:
            return self.fail_all(criteria, failure_of(error))
        size = self.questions_per_call
        parts = [pieces[at : at + size] for at in range(0, len(pieces), size)]
        requests = [
            ChatRequest(self.messages(shared, "".join(part)), max_tokens=1, prompt_logprobs=self.top_logprobs)
            for part in parts
        ]
        replies = await self.model.complete_many(requests) if requests else []
        found = [value for part, reply in zip(parts, replies, strict=True) for value in self._read(reply, part)]
        read = {(q.id, q.condition): value for q, value in zip(questions, found, strict=True)}
        usage = sum((reply.usage for reply in replies if isinstance(reply, Completion)), Usage())
        return Judgement(tuple(self._verdict(criterion, read) for criterion in criteria), usage=usage)

    def _piece(self, question: _Question) -> str:
        """A question with its slot at the end."""
        piece = self.prompt.render("item", {"questions": [question], "filler": self.filler})
        if not piece.rstrip().endswith(self.filler):
            hint = "end the block `item`, for each question, in {{ filler }}"
            raise ConfigError(f"the prompt {self.prompt.name!r} has no slot for the answer", hint=hint)
        return piece

    def _read(self, reply: Completion | ChatError, pieces: Sequence[str]) -> Sequence[float | Failure]:
        """P(yes) of each slot, or why there is none."""
        why: Failure | None = None
        slots: Sequence[TokenLogprob] = ()
        if isinstance(reply, ChatError):
            why = failure_of(reply)
        elif reply.prompt_logprobs is None:
            missing = f"{self.model.name} returned no log-probabilities of the prompt"
            why = failure(FailureKind.NO_LOGPROBS, missing)
        else:
            slots = slots_in(reply.prompt_logprobs, pieces, self.filler)
            if len(slots) != len(pieces):
                lost = "the tokens of the prompt do not spell its questions"
                why = failure(FailureKind.NO_LOGPROBS, lost)
        if why is not None:
            return [why] * len(pieces)
        return [self._probability(token) for token in slots]

    def _probability(self, token: TokenLogprob) -> float | Failure:
        sound = sound_tokens((token,), self.model.name)
        if isinstance(sound, Failure):
            return sound
        mass = label_mass(sound, _ANSWERS).merged(_ANSWERS)
        if short := shortfall(mass.shares, mass.unknown, self.max_outside, "yes and no"):
            return failure(FailureKind.LOW_MASS, short)
        return mass.shares["yes"] / (mass.shares["yes"] + mass.shares["no"])

    def _verdict(self, criterion: Criterion, read: Mapping[tuple[str, bool], float | Failure]) -> Verdict:
        missing = failure(FailureKind.REQUEST, "only binary criteria can be judged by log-probability")
        holds = read.get((criterion.id, True), 1.0)
        met = read.get((criterion.id, False), missing)
        for value in (holds, met):
            if isinstance(value, Failure):
                return Verdict.failed(criterion.id, value, judge=self.name)
        assert not isinstance(holds, Failure) and not isinstance(met, Failure)
        if holds < 0.5:
            return Verdict.not_applicable(criterion.id, judge=self.name, reason=f"P(condition) = {holds:.3f}")
        return Verdict(criterion.id, met, probability=met, raw="yes" if met >= 0.5 else "no", judge=self.name)


def _questions(criterion: Criterion) -> list[_Question]:
    asked = [_Question(criterion.id, criterion.text)]
    return asked + ([_Question(criterion.id, criterion.condition, True)] if criterion.condition else [])


def slots_in(tokens: Sequence[TokenLogprob], pieces: Sequence[str], filler: str) -> list[TokenLogprob]:
    """The tokens of a prompt at which the answers stand; none where the tokens do not spell all of them.

    The pieces' last line, without spaces, is looked for in the joined tokens, from the end, so that neither what
    stands in the response nor characters that are split between tokens matter; what a question's own text has of
    that line is counted and left aside.

    Args:
        tokens: of the prompt.
        pieces: the questions that the prompt ends in, each of which ends in the filler.
        filler: the sign in place of an answer.
    """
    line = _compact(pieces[0].rstrip().rpartition("\n")[2])
    text, owners = "", list[int]()
    for at, token in enumerate(plain_tokens(tokens, "".join(pieces))):
        piece = _compact(token.token)
        text += piece
        owners += [at] * len(piece)
    counts = [_compact(piece).count(line) for piece in pieces]
    places = [match.start() for match in re.finditer(re.escape(line), text)][-sum(counts) :]
    if len(places) < sum(counts):
        return []
    last = [place - 1 for place in accumulate(counts)]
    return [tokens[owners[places[at] + len(line) - len(_compact(filler))]] for at in last]


def _compact(text: str) -> str:
    return _SPACE.sub("", text)
