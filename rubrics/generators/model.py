"""The base of the generators that ask a chat model, and what they put into the rubrics they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from rubricate.chat.base import ChatModel, Message
from rubricate.failures import failure
from rubricate.prompts import Prompt, load_prompt
from rubricate.prompts.fence import fence, make_nonce
from rubricate.rubrics.criterion import Criterion, Provenance
from rubricate.rubrics.formats.common import assign_ids
from rubricate.rubrics.generators.asking import Answered, Asking, AskOptions
from rubricate.rubrics.generators.base import Generated, Generator
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.rubric import Rubric, Scope
from rubricate.types import FailureKind, fingerprint

__all__ = ["GENERATED", "Asks", "ModelGenerator", "evidence_of", "finished", "list_schema"]

GENERATED = "generated"
"""Key of a rubric's metadata under which its origin is kept: generator, model, prompt fingerprint, evidence."""


class Asks(TypedDict, total=False):
    """Options of every generator that asks a model; `AskOptions` says what they mean."""

    max_attempts: int
    max_tokens: int
    temperature: float
    retry_temperature: float | None
    top_p: float
    seed: int | None
    sample: int
    structured: bool
    run_key: str


class ModelGenerator(Generator):
    """Base of the generators that ask a chat model. Its template has the blocks `system`, `shared` and `item`.

    Args:
        model: the chat model.
        prompt: the template, or the name of one of ours.
        options: as in `AskOptions`.
    """

    def __init__(self, model: ChatModel, prompt: Prompt | str, **options: Unpack[Asks]) -> None:
        self.model = model
        self.prompt = load_prompt(prompt) if isinstance(prompt, str) else prompt
        self.asking = Asking(model, AskOptions(**options))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.name!r})"

    def identity(self) -> dict[str, object]:
        """Model, prompt and options. Subclasses add their own."""
        return {
            "model": self.model.fingerprint,
            "prompt": self.prompt.fingerprint,
            "again": load_prompt("generate_again").fingerprint,
            "asking": self.asking.options.identity(),
        }

    def messages(self, values: Mapping[str, object], prompt: Prompt | None = None) -> list[Message]:
        """System message, then one user message: what questions on one source share first, what differs last."""
        template = prompt or self.prompt
        system = template.render("system", values).strip()
        user = template.render("shared", values) + template.render("item", values)
        messages = [Message("system", system)] if system else []
        return [*messages, Message("user", user.strip())]

    def fenced(self, task: str, **texts: str | Sequence[str]) -> dict[str, object]:
        """The task and other untrusted texts as template values, each in a fence of its name.

        Empty texts become "". The texts of a list become a list, numbered from 1 in their fences' names.
        """
        lists = {name: [text] if isinstance(text, str) else list(text) for name, text in texts.items()}
        nonce = make_nonce(
            self.asking.options.run_key, task, *(text for listed in lists.values() for text in listed)
        )
        values: dict[str, object] = {"task": fence("task", task, nonce)}
        for name, text in texts.items():
            if isinstance(text, str):
                values[name] = fence(name, text, nonce) if text.strip() else ""
            else:
                values[name] = [fence(f"{name}_{place}", one, nonce) for place, one in enumerate(text, start=1)]
        return values

    def finish(
        self,
        criteria: Sequence[Criterion],
        source: Source,
        *,
        evidence: Sequence[str] = (),
        scope: Scope = Scope.INSTANCE,
        prompt: Prompt | None = None,
    ) -> Rubric:
        """The rubric of accepted criteria, with ids and provenance; see `finished`."""
        made = Provenance(
            generator=self.name,
            model=self.model.name,
            prompt_fingerprint=(prompt or self.prompt).fingerprint,
            evidence=tuple(evidence),
        )
        return finished(criteria, made, rubric_id=source.id, scope=scope)

    def made(
        self,
        answer: Answered[tuple[Criterion, ...]],
        source: Source,
        *,
        evidence: Sequence[str] = (),
        more: Sequence[Criterion] = (),
    ) -> Generated:
        """The result of an answer: its criteria and `more` as a rubric, or its failure, with cost and notes."""
        if answer.value is None:
            why = answer.failure or failure(FailureKind.INCOMPLETE, "there are no criteria")
            return Generated.failed(why, usage=answer.usage, notes=answer.notes)
        rubric = self.finish([*answer.value, *more], source, evidence=evidence)
        return Generated(rubric, None, answer.usage, answer.notes)

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()


def finished(
    criteria: Sequence[Criterion], made: Provenance, *, rubric_id: str = "", scope: Scope = Scope.INSTANCE
) -> Rubric:
    """A rubric of criteria whose ids are made of their titles (metadata `title`), or else `c1`, `c2`, ...

    Every criterion gets the provenance; evidence that it has already comes first.
    """
    titles = [title if isinstance(title := one.metadata.get("title"), str) else None for one in criteria]
    ids = assign_ids([None] * len(criteria), titles)
    named: list[Criterion] = []
    for name, one in zip(ids, criteria, strict=True):
        own = one.provenance.evidence if one.provenance is not None else ()
        evidence = tuple(dict.fromkeys((*own, *made.evidence)))
        provenance = made.model_copy(update={"evidence": evidence})
        named.append(one.model_copy(update={"id": name, "provenance": provenance}))
    origin = made.model_dump(mode="json", exclude={"step"})
    return Rubric(criteria=tuple(named), id=rubric_id, scope=scope, metadata={GENERATED: origin})


def evidence_of(kind: str, *texts: str) -> tuple[str, ...]:
    """What a criterion rests on: kind and fingerprint of each text, since the text itself may leak an answer."""
    return tuple(f"{kind}:{fingerprint(text)}" for text in texts if text.strip())


def list_schema(key: str, item: Mapping[str, object], least: int, most: int | None) -> dict[str, object]:
    """JSON schema of an object with one list of objects, whose fields are all required."""
    entry = {"type": "object", "properties": item, "required": list(item), "additionalProperties": False}
    listed: dict[str, object] = {"type": "array", "items": entry, "minItems": least}
    if most is not None:
        listed["maxItems"] = most
    return {"type": "object", "properties": {key: listed}, "required": [key], "additionalProperties": False}
