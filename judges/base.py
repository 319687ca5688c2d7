"""What all judges have in common: the material they show a model, failures as data, and the base class."""

from __future__ import annotations

import abc
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from rubricate.chat.base import ChatModel, Completion, Finish, Message, TokenLogprob
from rubricate.data.records import Rollout
from rubricate.errors import (
    ContextOverflowError,
)
from rubricate.failures import failure, failure_of
from rubricate.judges.fence import fence, make_nonce
from rubricate.judges.mass import fault_of
from rubricate.judges.spelling import spells
from rubricate.judges.view import View, get_view, name_of, prompt_text
from rubricate.prompts import Prompt
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import Failure, FailureKind, Judgement, Verdict, fingerprint

__all__ = ["CriteriaJudge", "Material", "ModelJudge", "Shown", "failure", "failure_of"]

log = logging.getLogger(__name__)


def answer_tokens(answer: Completion, model: str) -> tuple[TokenLogprob, ...] | Failure:
    """The tokens of an answer with their log-probabilities, at least one; or why they must not be read.

    They must spell the answer. Why generation ended does not matter, refusals and filters apart: a probability was
    settled before.
    """
    if answer.refusal:
        return failure(FailureKind.REFUSAL, f"the model refused: {answer.refusal[:200]}")
    if answer.finish is Finish.CONTENT_FILTER:
        return failure(FailureKind.CONTENT_FILTER, "the server's content filter withheld the answer")
    tokens = sound_tokens(answer.logprobs or (), model)
    if isinstance(tokens, Failure) or spells(tokens, answer.text):
        return tokens
    begun = "".join(token.token for token in tokens[:8])
    return failure(
        FailureKind.NO_LOGPROBS,
        f"the tokens that {model} returned do not spell its answer: {begun[:40]!r} for {answer.text[:40]!r}; "
        "a model that reasons first must be told not to",
    )


def sound_tokens(tokens: tuple[TokenLogprob, ...], model: str) -> tuple[TokenLogprob, ...] | Failure:
    """The tokens, at least one, when all their log-probabilities can be some; or why they must not be read."""
    if not tokens:
        return failure(FailureKind.NO_LOGPROBS, f"{model} returned no log-probabilities")
    fault = next((fault for token in tokens if (fault := fault_of(token))), "")
    return failure(FailureKind.NO_LOGPROBS, f"{model} returned log-probabilities that {fault}") if fault else tokens


class CriteriaJudge(abc.ABC):
    """A judge that gives one verdict a criterion. Combinators hand it parts of a rubric.

    Attributes:
        name: for people.
        view: what it sees of a rollout.
    """

    name: str
    view: View

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Changes with everything that can change a verdict."""

    @abc.abstractmethod
    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict for each of `criteria`, in that order. A failed judgement is a failed verdict."""

    async def judge(self, rollout: Rollout, rubric: Rubric) -> Judgement:
        """Verdicts for every criterion of `rubric`, in rubric order."""
        return await self.judge_criteria(rollout, rubric.criteria)

    def check(self, rubric: Rubric) -> None:
        """Raises a RubricateError for a rubric that this judge can never judge, before anything is paid for."""
        return None

    async def aclose(self) -> None:
        """Release clients and models."""
        return None

    def fail_all(self, criteria: Sequence[Criterion], why: Failure) -> Judgement:
        """The judgement when nothing could be judged."""
        return Judgement(tuple(Verdict.failed(criterion.id, why, judge=self.name) for criterion in criteria))


@dataclass(frozen=True, slots=True)
class Material:
    """The texts a judge's prompt is filled with, untrusted ones fenced.

    Attributes:
        task, reference, response: fenced; the reference is empty where there is none or it is not shown.
        quoted: the same texts without their fences. What a reply copies from them is no verdict of the judge's.
    """

    task: str
    reference: str
    response: str
    quoted: tuple[str, ...] = ()

    def values(self) -> dict[str, str]:
        """As template values."""
        return {"task": self.task, "reference": self.reference, "response": self.response}


class Shown(TypedDict, total=False):
    """Options of every judge that asks a model: what it sees, and how. `ModelJudge` says what they mean."""

    view: str | View
    show_reference: bool
    run_key: str
    max_chars: int | None


class ModelJudge(CriteriaJudge):
    """Base of the judges that ask a chat model.

    Args:
        model: the chat model.
        prompt: the template.
        view: what it sees of a rollout, by name or function.
        show_reference: show the reference answer where there is one.
        run_key: key of the hash that fences untrusted text; the same for a whole run, so that prefixes are shared.
        max_chars: longest view in characters; a longer one is a typed overflow, never cut. None leaves it to the
            model's context.
    """

    layout = "response_first"

    def __init__(
        self,
        model: ChatModel,
        prompt: Prompt,
        *,
        view: str | View = "final",
        show_reference: bool = True,
        run_key: str = "rubricate",
        max_chars: int | None = None,
    ) -> None:
        self.model = model
        self.prompt = prompt
        self.view = get_view(view)
        self.show_reference = show_reference
        self.run_key = run_key
        self.max_chars = max_chars
        self.name = f"{type(self).__name__}({model.name})"
        self._system: Message | None = None

    @property
    def fingerprint(self) -> str:
        """Of model, prompt, view and options."""
        return fingerprint(self.identity())

    def identity(self) -> dict[str, object]:
        """What the fingerprint is taken of. Subclasses add their options."""
        view = self.view
        return {
            "judge": type(self).__qualname__,
            "model": self.model.fingerprint,
            "prompt": self.prompt.fingerprint,
            "view": f"{getattr(view, '__module__', '')}.{name_of(view)}",
            "show_reference": self.show_reference,
            "max_chars": self.max_chars,
            "run_key": self.run_key,
        }

    def material(self, rollout: Rollout) -> Material:
        """The fenced texts of a rollout. Raises ContextOverflowError when the view is longer than allowed."""
        response = self.view(rollout)
        if self.max_chars is not None and len(response) > self.max_chars:
            raise ContextOverflowError(
                f"the response has {len(response)} characters, this judge takes {self.max_chars}",
                provider=self.name,
                hint="raise max_chars or use a narrower view",
            )
        task = prompt_text(rollout)
        reference = (rollout.reference or "") if self.show_reference else ""
        # Keyed by run and prompt alone, so a group shares its prefix; a text that holds the nonce gets another.
        nonce = make_nonce(self.run_key, task, reference, response)
        return Material(
            fence("task", task, nonce),
            fence("reference", reference, nonce) if reference else "",
            fence("response", response, nonce),
            (response, task, reference),
        )

    def messages(self, shared: str, item: str) -> tuple[Message, ...]:
        """System message, then one user message: what is shared first, what differs last."""
        if self._system is None:
            self._system = Message("system", self.prompt.render("system", self.system_values()).strip())
        return self._system, Message("user", shared + item.rstrip())

    def system_values(self) -> dict[str, object]:
        """Values of the template's system block."""
        return {}

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()
