"""A draft: a response to a topic's request, with everything that is known of it because it was put together so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rubricate.training.checks.banks import Point, Topic
from rubricate.training.checks.measured import Measured

__all__ = ["Draft", "Instruction"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """An explicit demand in the prompt.

    Attributes:
        group: `length`, `format`, `wording`, `language` or `content`.
        text: as it stands in the prompt.
        followed: whether the response does it.
        detail: the language that is demanded.
    """

    group: str
    text: str
    followed: bool
    detail: str = ""


@dataclass(frozen=True)
class Draft:
    """A prompt and a response, and what is known of them.

    Attributes:
        topic: what was asked.
        prompt, response, reference: the texts.
        language: of the response, apart from `foreign` parts.
        layout: name of the layout.
        stated: ids of the points that the response states, in order of first statement.
        unknown: ids of points of which nothing is known.
        missed: ids of points that only a near miss of is in.
        first: origin and key of the first sentence, where the text begins with it.
        aside: whether a sentence has nothing to do with the request; None where that is open to doubt.
        on_topic: whether the response is to this request, not to another.
        far: whether it is to a request that has nothing in common with this one.
        traits: kinds of which a phrase is in: True for one that fulfils it, False for a near miss.
        muted: kinds about which nothing is known.
        marks: what was done by construction: `salutation`, `sign_off`, `subject_line`, `title`, `repeated`, `cut`,
            `mixed`, `other_language`.
        reference_points: ids of the points that the reference states.
        instructions: what the prompt demands besides.
        matter: all sentences that are no trait's phrases.
        measured: the response's form.
    """

    topic: Topic
    prompt: str
    response: str
    language: str
    layout: str
    measured: Measured
    matter: str = ""
    reference: str | None = None
    stated: tuple[str, ...] = ()
    unknown: frozenset[str] = frozenset()
    missed: frozenset[str] = frozenset()
    first: tuple[str, str] | None = None
    aside: bool | None = None
    on_topic: bool = True
    far: bool = False
    traits: Mapping[str, bool] = field(default_factory=dict[str, bool])
    muted: frozenset[str] = frozenset()
    marks: frozenset[str] = frozenset()
    reference_points: tuple[str, ...] = ()
    instructions: tuple[Instruction, ...] = ()

    def states(self, point: Point) -> bool | None:
        """Whether the response states a point of the topic; None where that is not known."""
        if self.far:
            return False
        if not self.on_topic or point.id in self.unknown:
            return None
        return point.id in self.stated
