"""Generators that were trained for it: a request in, a numbered list with [Hard Rule] and [Principle] tags out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError, FormatError, ParseError
from rubricate.prompts import Prompt
from rubricate.rubrics.criterion import Criterion, CriterionKind
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.openrubrics import FORMAT as OPENRUBRICS
from rubricate.rubrics.formats.openrubrics import KIND_WEIGHTS
from rubricate.rubrics.generators.base import Generated
from rubricate.rubrics.generators.drafts import Drafting, Item, ListRules
from rubricate.rubrics.generators.model import Asks, ModelGenerator
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.rubric import Rubric

__all__ = ["TrainedGenerator", "read_rubric_text"]

WEIGHTS = ("equal", "arrow")


def read_rubric_text(text: str, *, least: int = 1, most: int | None = None, tagged: bool = True) -> Rubric:
    """The rubric in a generator's text, read as the format `openrubrics`.

    Args:
        text: a numbered list; text around it is left out.
        least, most: numbers of items.
        tagged: every item must have a tag.

    Raises ParseError with the reason, for a text that breaks the form.
    """
    try:
        rubric = OPENRUBRICS.parse(text, Place(), {})
    except FormatError as error:
        raise ParseError(error.detail, reply=text, hint=error.hint) from None
    untagged = [one.id for one in rubric.criteria if one.kind is None]
    if tagged and untagged:
        raise ParseError(f"items without a tag: {', '.join(untagged)}", kind="incomplete", reply=text)
    if len(rubric) < least or (most is not None and len(rubric) > most):
        span = f"at least {least}" if most is None else f"{least} to {most}"
        raise ParseError(f"there are {len(rubric)} items, {span} are wanted", kind="out_of_range", reply=text)
    return rubric


class TrainedGenerator(ModelGenerator):
    """A model that was trained to write rubrics, such as Rubric-RM (2510.07743) and Rubric-ARM (2602.01511).

    It sees the request and nothing else, and answers with a numbered list with tags. It was not trained to read
    complaints: an answer that breaks the form is asked for again in the same words, at `retry_temperature`.

    Args:
        model: the trained generator.
        weights: `equal` (Rubric-RM weighs nothing), or `arrow`: 3 for hard rules, 1 for principles (RUBRIC-ARROW,
            2605.29156).
        least, most: numbers of items.
        fenced: show the request between tags that only we can close. Off by default, as these models were trained.
        checks: rules of the linter that each item must pass, else it is dropped; none unless given.
        prompt: a template of one's own: the model's own words, where it wants them to the letter.
        options: how the model is asked; see `AskOptions`. Their inference: temperature 0, 1024 tokens.
    """

    name = "trained"

    def __init__(
        self,
        model: ChatModel,
        *,
        weights: Literal["equal", "arrow"] = "equal",
        least: int = 1,
        most: int | None = None,
        fenced: bool = False,
        checks: Sequence[str] = (),
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("max_tokens", 1024)
        options.setdefault("retry_temperature", 0.7)
        options["structured"] = False
        super().__init__(model, prompt or "generate_rubric_rm", **options)
        if weights not in WEIGHTS:
            raise ConfigError(f"weights is {weights!r}", hint=f"use {' or '.join(WEIGHTS)}")
        self.weights = weights
        self.show_fences = fenced
        self.rules = ListRules(least, most, tuple(checks), None, "drop")

    def identity(self) -> dict[str, object]:
        """Adds the options of this method."""
        own = {"weights": self.weights, "fenced": self.show_fences, "rules": self.rules.identity()}
        return super().identity() | own

    async def write(self, source: Source) -> Generated:
        """Ask for the list until it can be read."""
        values = self.fenced(source.task) if self.show_fences else {"task": source.task}
        answer = await Drafting(self.asking, self.rules, complain=False).draft(self.messages(values), self._read)
        return self.made(answer, source)

    def _read(self, text: str) -> list[Item]:
        found = read_rubric_text(text, least=self.rules.least, most=self.rules.most)
        return [self._weighed(one) for one in found.criteria]

    def _weighed(self, one: Criterion) -> Criterion:
        kind = one.kind or CriterionKind.PRINCIPLE
        return one.model_copy(update={"weight": KIND_WEIGHTS[kind]}) if self.weights == "arrow" else one
