"""What judges that see several responses at once share: their material, and asking until a reply can be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion, Message
from rubricate.data.records import Rollout
from rubricate.errors import AnswerError, ChatError, ConfigError, ContextOverflowError, ParseError
from rubricate.failures import ASK_AGAIN
from rubricate.judges.base import Shown, failure_of
from rubricate.judges.fence import fence, make_nonce
from rubricate.judges.view import get_view, name_of, prompt_text
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import CriterionKind, Polarity, Rubric
from rubricate.types import Failure, Usage, fingerprint

__all__ = ["Asked", "Asker", "GroupModelJudge", "SharedMaterial", "ids_of"]

T = TypeVar("T")
Maker = Callable[[int, "Failure | None"], ChatRequest]
"""The request of an attempt, from 0, given why the one before could not be read."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What came of one question: a value or a failure, the last reply's text, and the cost of all attempts."""

    value: T | None
    failure: Failure | None
    text: str
    usage: Usage


class Asker:
    """Asks a model, reads each reply, and asks again what could not be read, up to `max_attempts` calls."""

    def __init__(self, model: ChatModel, max_attempts: int) -> None:
        if max_attempts < 1:
            raise ConfigError(f"max_attempts is {max_attempts}", hint="use 1 or more")
        self.model = model
        self.max_attempts = max_attempts

    async def ask(self, makers: Sequence[Maker], read: Callable[[str], T]) -> list[Asked[T]]:
        """One result a maker, in order. The first attempts go out together, since they share a prefix.

        `read` raises ParseError for a reply that it cannot read.
        """
        replies = await self.model.complete_many([make(0, None) for make in makers]) if makers else []
        first = [self._read(reply, read) for reply in replies]
        return list(await asyncio.gather(*(self._again(m, a, read) for m, a in zip(makers, first, strict=True))))

    async def _again(self, make: Maker, asked: Asked[T], read: Callable[[str], T]) -> Asked[T]:
        usage = asked.usage
        for attempt in range(1, self.max_attempts):
            if asked.failure is None or asked.failure.kind not in ASK_AGAIN:
                break
            (reply,) = await self.model.complete_many([make(attempt, asked.failure)])
            asked = self._read(reply, read)
            usage += asked.usage
        return Asked(asked.value, asked.failure, asked.text, usage)

    def _read(self, reply: Completion | ChatError, read: Callable[[str], T]) -> Asked[T]:
        if isinstance(reply, ChatError):
            return Asked(None, failure_of(reply), "", Usage())
        try:
            return Asked(read(reply.require_text(self.model.name)), None, reply.text, reply.usage)
        except (AnswerError, ParseError) as error:
            return Asked(None, failure_of(error), reply.text, reply.usage)


@dataclass(frozen=True, slots=True)
class SharedMaterial:
    """The texts of a group of responses to one prompt.

    Attributes:
        task, reference: fenced (or plain, for a judge that was trained without fences).
        plain_task: the task without its fence.
        responses: the views of the rollouts, plain, in the caller's order.
        nonce: of all fences, "" for plain texts.
        overflows: place of a response that is too long, to why.
    """

    task: str
    plain_task: str
    reference: str
    responses: tuple[str, ...]
    nonce: str
    quoted: tuple[str, ...]
    overflows: Mapping[int, Failure]

    def response(self, place: int, label: str) -> str:
        """A response, fenced as `label`."""
        text = self.responses[place]
        return fence(label, text, self.nonce) if self.nonce else text


class GroupModelJudge:
    """Base of the judges that show a chat model several responses to one prompt. They pickle if their model does.

    Args:
        model: the chat model.
        prompt: the template, or the name of one of ours.
        fenced: put untrusted texts between tags that only we can close. False shows them bare, as most published
            judges were trained; a response can then pretend to end.
        shown: what the judge sees and how; see `Shown`.

    Attributes:
        name: for people.
    """

    def __init__(
        self, model: ChatModel, prompt: Prompt | str, *, fenced: bool = True, **shown: Unpack[Shown]
    ) -> None:
        self.model = model
        self.prompt = load_prompt(prompt) if isinstance(prompt, str) else prompt
        self.fenced = fenced
        self.view = get_view(shown.get("view", "final"))
        self.show_reference = shown.get("show_reference", True)
        self.run_key = shown.get("run_key", "rubricate")
        self.max_chars = shown.get("max_chars")
        self.name = f"{type(self).__name__}({model.name})"

    @property
    def fingerprint(self) -> str:
        """Changes with everything that can change what the judge says."""
        return fingerprint(self.identity())

    def identity(self) -> dict[str, object]:
        """What the fingerprint is taken of. Subclasses add their options."""
        return {
            "judge": type(self).__qualname__,
            "fenced": self.fenced,
            "show_reference": self.show_reference,
            "run_key": self.run_key,
            "max_chars": self.max_chars,
            "model": self.model.fingerprint,
            "prompt": self.prompt.fingerprint,
            "view": f"{getattr(self.view, '__module__', '')}.{name_of(self.view)}",
        }

    def material(self, rollouts: Sequence[Rollout]) -> SharedMaterial:
        """The texts of a group. Raises ConfigError when the rollouts answer different prompts."""
        if len({rollout.prompt for rollout in rollouts}) != 1:
            raise ConfigError("the responses answer different prompts", hint="compare responses to one prompt")
        responses = tuple(self.view(rollout) for rollout in rollouts)
        task = prompt_text(rollouts[0])
        reference = (rollouts[0].reference or "") if self.show_reference else ""
        nonce = make_nonce(self.run_key, task, reference, *responses) if self.fenced else ""
        overflows = {
            place: failure_of(
                ContextOverflowError(f"the response has {len(text)} characters, this judge takes {limit}")
            )
            for place, text in enumerate(responses)
            if (limit := self.max_chars) is not None and len(text) > limit
        }
        shown = (fence("task", task, nonce), fence("reference", reference, nonce)) if nonce else (task, reference)
        return SharedMaterial(
            shown[0],
            task,
            shown[1] if reference else "",
            responses,
            nonce,
            (*responses, task, reference),
            overflows,
        )

    def shared_values(self, material: SharedMaterial, rubric: Rubric | None) -> dict[str, object]:
        """Values of the template's system and shared blocks."""
        return {"task": material.task, "reference": material.reference, "criteria": criteria_of(rubric)}

    def request_messages(
        self, shared: Mapping[str, object], item: Mapping[str, object], **more: object
    ) -> tuple[Message, ...]:
        """System message where the template has any text for it, then what is shared, then what differs."""
        system = self.prompt.render("system", {**shared, **more}).strip()
        text = self.prompt.render("shared", {**shared, **more}) + self.prompt.render(
            "item", {**shared, **item, **more}
        )
        user = Message("user", text.rstrip())
        return (Message("system", system), user) if system else (user,)

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()


def criteria_of(rubric: Rubric | None) -> list[dict[str, str]]:
    """A rubric as template values: label, text, importance, tag as OpenRubrics writes it, and condition."""
    if rubric is None:
        return []
    shown = list[dict[str, str]]()
    for n, criterion in enumerate(rubric.criteria, start=1):
        importance = criterion.importance.value if criterion.importance else f"weight {criterion.weight:g}"
        importance += ", veto" if criterion.veto else ""
        penalty = criterion.polarity is Polarity.PENALTY
        shown.append(
            {
                "label": f"C{n}",
                "text": criterion.text,
                "importance": f"{importance}, to avoid" if penalty else importance,
                "penalty": "yes" if penalty else "",
                "tag": "[Hard Rule]" if criterion.kind is CriterionKind.HARD_RULE else "[Principle]",
                "condition": criterion.condition or "",
            }
        )
    return shown


def ids_of(rollouts: Sequence[Rollout]) -> list[str]:
    """The rollouts' ids; their places from 0 where none has one.

    Raises ConfigError when ids repeat, or when only some have one: a score could then not be given back.
    """
    ids = [rollout.id for rollout in rollouts]
    if not any(ids):
        return [str(place) for place in range(len(ids))]
    if not all(ids) or len(set(ids)) < len(ids):
        raise ConfigError("the rollouts of a group need ids that differ", hint="set every id, or none")
    return ids
