"""Prompts written to match a rubric (rubric-first synthesis, Rubicon, 2508.12790)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Unpack

from rubricate.bridge import run_sync
from rubricate.chat.base import ChatModel
from rubricate.embed import Embedder, cosine
from rubricate.errors import ConfigError
from rubricate.failures import failure
from rubricate.narrow import as_array, as_number, as_object
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics.criterion import Provenance
from rubricate.rubrics.generators.asking import Asking, AskOptions, read_items
from rubricate.rubrics.generators.base import GeneratorNote, NoteKind
from rubricate.rubrics.generators.model import Asks, list_schema
from rubricate.rubrics.generators.recursive_checks import numbered
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.synthesis_asking import again, question
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Usage, fingerprint

__all__ = ["PromptSynthesis", "Synthesised"]


@dataclass(frozen=True, slots=True)
class Synthesised:
    """Prompts that were written to match a rubric.

    Attributes:
        sources: a source a prompt, with the rubric, and in its metadata the ids of the criteria it calls for and
            where it is from.
        failure: why there are fewer than were asked for; None where there are as many.
        unused: ids of the criteria that no prompt calls for.
        usage: what it cost.
        notes: what was refused, and why.
    """

    sources: tuple[Source, ...]
    failure: Failure | None
    unused: tuple[str, ...]
    usage: Usage
    notes: tuple[GeneratorNote, ...]


@dataclass(slots=True)
class _Round:
    """What is there so far."""

    taken: list[tuple[str, tuple[str, ...]]] = field(default_factory=list[tuple[str, tuple[str, ...]]])
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notes: list[GeneratorNote] = field(default_factory=list[GeneratorNote])
    usage: Usage = Usage()
    failed: Failure | None = None


class PromptSynthesis:
    """Writes prompts that a rubric can be applied to: the rubric comes first, the data after it.

    A prompt is refused where it is there already (letters and digits compared), is nearly one that is (with an
    embedder), names no criterion, or quotes one: `copied` words of a criterion in a row would teach a policy the
    rubric. Refused ones are asked for again with the reason. Criteria that no prompt calls for are asked for by
    number, and listed where they stay unused. All thresholds are ours.

    Args:
        model: writes the prompts.
        batch: prompts in one question.
        copied: words in a row that a prompt may not share with a criterion.
        embedder: for near copies; None compares letters alone.
        near: cosine from which two prompts are near copies.
        patience: questions in a row that may bring nothing before it ends.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`. The temperature is 1 unless given.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        batch: int = 8,
        copied: int = 6,
        embedder: Embedder | None = None,
        near: float = 0.9,
        patience: int = 3,
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("temperature", 1.0)
        options.setdefault("max_tokens", 4096)
        if min(batch, copied, patience) < 1 or not -1.0 <= near <= 1.0:
            raise ConfigError("batch, copied and patience are 1 or more, near is in [-1, 1]")
        self.model = model
        self.prompt = prompt or load_prompt("generate_synthesis_prompts")
        self.asking = Asking(model, AskOptions(**options))
        self.batch, self.copied, self.embedder, self.near, self.patience = batch, copied, embedder, near, patience

    @property
    def fingerprint(self) -> str:
        """Of model, prompt and options."""
        embedder = None if self.embedder is None else self.embedder.fingerprint
        options = [self.batch, self.copied, embedder, self.near, self.patience, self.asking.options.identity()]
        return fingerprint(["prompt synthesis", self.model.fingerprint, self.prompt.fingerprint, options])

    async def synthesise(
        self, rubric: Rubric, count: int, *, task: str = "", existing: Sequence[str] = (), examples: int = 3
    ) -> Synthesised:
        """`count` prompts for a rubric, different from one another and from the `existing` ones.

        Args:
            rubric: what the prompts must be judged by.
            count: prompts that are wanted.
            task: what kind of task they are for.
            existing: prompts that are there; `examples` of them are shown.
            examples: existing prompts that are shown at most.

        Raises ConfigError for a count below 1. What a model or server does becomes `failure`.
        """
        if count < 1:
            raise ConfigError(f"count is {count}", hint="ask for 1 prompt or more")
        state, idle, asked = _Round(), 0, 0
        while len(state.taken) < count and idle < self.patience:
            before = len(state.taken)
            await self._ask(state, rubric, min(self.batch, count - before), task, existing, examples, asked)
            asked += 1
            if state.failed is not None and state.failed.cause is FailureCause.INFRASTRUCTURE:
                break
            idle = 0 if len(state.taken) > before else idle + 1
        return self._done(state, rubric, count)

    def synthesise_sync(
        self, rubric: Rubric, count: int, *, task: str = "", existing: Sequence[str] = (), examples: int = 3
    ) -> Synthesised:
        """`synthesise` for sync callers."""
        return run_sync(self.synthesise(rubric, count, task=task, existing=existing, examples=examples))

    async def _ask(
        self,
        state: _Round,
        rubric: Rubric,
        count: int,
        task: str,
        existing: Sequence[str],
        examples: int,
        sample: int,
    ) -> None:
        used = {name for _, names in state.taken for name in names}
        unused = [str(at) for at, one in enumerate(rubric.criteria, start=1) if one.id not in used]
        refused = "\n".join(
            f"- {' '.join(text.split())[:200]} ({why})" for text, why in state.refused[-self.batch :]
        )
        texts: dict[str, str | list[str]] = {
            "task": task,
            "criteria": numbered([one.text for one in rubric.criteria]),
            "examples": list(existing[:examples]),
            "there": "\n".join(f"- {' '.join(text.split())[:200]}" for text, _ in state.taken),
            "refused": refused,
        }
        more: dict[str, object] = {"count": count, "unused": ", ".join(unused) if state.taken else ""}
        messages = question(self.prompt, self.asking.options.run_key, texts, more)
        answer = await self.asking.ask(
            again(messages),
            lambda text: read_items(text, "prompts"),
            schema=_schema(count, len(rubric)),
            sample=sample,
        )
        state.usage += answer.usage
        state.notes += answer.notes
        state.failed, state.refused = answer.failure, []
        for value in answer.value or ():
            await self._take(state, value, rubric, existing)

    async def _take(self, state: _Round, value: object, rubric: Rubric, existing: Sequence[str]) -> None:
        fields = as_object(value) or {}
        said = fields.get("prompt")
        text = said.strip() if isinstance(said, str) else ""
        listed = [as_number(one) for one in as_array(fields.get("criteria")) or ()]
        places = [int(one) for one in listed if one is not None and one.is_integer() and 1 <= one <= len(rubric)]
        why = self._wrong(text, places, rubric)
        there = [*existing, *(one for one, _ in state.taken)]
        if not why and _folded(text) in {_folded(one) for one in there}:
            why = "it is there already"
        if not why and there and self.embedder is not None:
            rows = await self.embedder.embed([text, *there])
            closest = float(cosine(rows[:1], rows[1:]).max())
            why = f"it is nearly one that is there (cosine {closest:.2f})" if closest >= self.near else ""
        if why:
            state.refused.append((text, why))
            state.notes.append(GeneratorNote(NoteKind.DROPPED, why, text))
        else:
            names = tuple(dict.fromkeys(rubric.criteria[at - 1].id for at in sorted(places)))
            state.taken.append((text, names))

    def _wrong(self, text: str, places: Sequence[int], rubric: Rubric) -> str:
        if not text:
            return "it has no text"
        if not places:
            return "it names no criterion of the rubric"
        words = _folded(text).split()
        runs = {tuple(words[at : at + self.copied]) for at in range(len(words) - self.copied + 1)}
        for number, one in enumerate(rubric.criteria, start=1):
            own = _folded(one.text).split()
            if any(tuple(own[at : at + self.copied]) in runs for at in range(len(own) - self.copied + 1)):
                return f"it quotes criterion {number}"
        return ""

    def _done(self, state: _Round, rubric: Rubric, count: int) -> Synthesised:
        taken = state.taken[:count]
        used = {name for _, names in taken for name in names}
        made = Provenance(
            generator="prompt-synthesis",
            model=self.model.name,
            prompt_fingerprint=self.prompt.fingerprint,
            evidence=(f"rubric:{rubric.fingerprint}",),
        )
        origin = made.model_dump(mode="json", exclude={"step"})
        sources = tuple(
            Source(
                text,
                rubrics=(rubric,),
                id=f"{rubric.id or 'prompt'}-{number}",
                metadata={"criteria": list(names), "generated": origin},
            )
            for number, (text, names) in enumerate(taken, start=1)
        )
        why = state.failed
        if len(taken) < count and why is None:
            why = failure(FailureKind.INCOMPLETE, f"{len(taken)} of {count} prompts could be had")
        unused = tuple(name for name in rubric.ids if name not in used)
        failed = why if len(taken) < count else None
        return Synthesised(sources, failed, unused, state.usage, tuple(state.notes))

    async def aclose(self) -> None:
        """Close the model and the embedder."""
        await self.model.aclose()
        if self.embedder is not None:
            await self.embedder.aclose()


def _folded(text: str) -> str:
    """Words in lower case, without anything but letters and digits."""
    return " ".join("".join(char if char.isalnum() else " " for char in text.casefold()).split())


def _schema(count: int, criteria: int) -> dict[str, object]:
    place = {"type": "integer", "minimum": 1, "maximum": criteria}
    fields = {"prompt": {"type": "string"}, "criteria": {"type": "array", "items": place, "minItems": 1}}
    return list_schema("prompts", fields, count, count)
