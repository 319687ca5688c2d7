"""Rubrics from a prompt and its reference answer (Rubrics as Rewards, 2507.17746), without one, and predefined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_number, as_object
from rubricate.prompts import Prompt
from rubricate.rubrics.criterion import Criterion, Importance, Polarity, Provenance
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.rar import CATEGORY_WEIGHTS
from rubricate.rubrics.formats.rar import FORMAT as RAR
from rubricate.rubrics.generators.asking import read_items
from rubricate.rubrics.generators.base import Generated, Generator, Need
from rubricate.rubrics.generators.drafts import CHECKS, COPIED, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator, evidence_of, finished, list_schema
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.rubric import Rubric, Scope

__all__ = ["ANCHORS", "PredefinedGenerator", "ReferenceGenerator", "generic_rubric"]

ANCHORS: Mapping[Importance, tuple[int, int]] = {
    Importance.ESSENTIAL: (5, 5),
    Importance.IMPORTANT: (3, 4),
    Importance.OPTIONAL: (1, 2),
    Importance.PITFALL: (-2, -1),
}
"""Lowest and highest numeric weight of each category, as in RaR's medical prompt."""

_LOOSE: Mapping[Importance, tuple[int, int]] = dict.fromkeys(Importance, (1, 5)) | {Importance.PITFALL: (-2, -1)}
_WEIGHTS = ("paper", "v1", "anchored", "numeric")
_KEYS = ("criteria", "rubric", "rubrics")


class ReferenceGenerator(ModelGenerator):
    """An instance rubric from a prompt and its reference answer (RaR, 2507.17746).

    Criteria have a category (essential, important, optional, pitfall) and stand alone. Pitfalls are penalties that
    state the error; one that is worded as the avoidance of an error is asked for again, and turned round where that
    does not help, so that no sign contradicts its text. Criteria keep title and category for `convert` to RaR.

    Args:
        model: writes the rubric.
        reference: `required`; `optional` uses the answer where there is one; `none` never shows it.
        weights: of the categories as in the paper (`paper`: 1, .7, .3 and .9 for pitfalls) or its first version
            (`v1`: .8 for pitfalls), or numbers by the model: `anchored` to the categories (5, 3-4, 1-2, -1 or -2)
            or only bounded (`numeric`: 1 to 5, -1 or -2).
        least, most: numbers of criteria (7 and 20).
        checks: rules of the linter that each criterion must pass.
        on_bad: what becomes of single criteria that break a rule; see `ListRules`.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`.
    """

    name = "reference"

    def __init__(
        self,
        model: ChatModel,
        *,
        reference: Literal["required", "optional", "none"] = "required",
        weights: Literal["paper", "v1", "anchored", "numeric"] = "paper",
        least: int = 7,
        most: int = 20,
        checks: Sequence[str] = (*CHECKS, COPIED),
        on_bad: Literal["mend", "drop"] = "mend",
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("max_tokens", 4096)
        super().__init__(model, prompt or "generate_reference", **options)
        if reference not in ("required", "optional", "none"):
            raise ConfigError(f"reference is {reference!r}", hint="use required, optional or none")
        if weights not in _WEIGHTS:
            raise ConfigError(f"weights is {weights!r}", hint=f"use {', '.join(_WEIGHTS)}")
        self.reference = reference
        self.weights = weights
        self.rules = ListRules(least, most, tuple(checks), _no_reward, on_bad)
        self.needs = frozenset({Need.REFERENCE} if reference == "required" else ())
        self.uses = frozenset({Need.REFERENCE} if reference == "optional" else ())
        if reference == "none":
            self.name = "reference-free"

    def identity(self) -> dict[str, object]:
        """Adds the options of this method."""
        own = {"reference": self.reference, "weights": self.weights, "rules": self.rules.identity()}
        return super().identity() | own

    async def write(self, source: Source) -> Generated:
        """Ask for the rubric, and again for what breaks its rules."""
        reference = "" if self.reference == "none" else source.reference or ""
        numeric = self.weights in ("anchored", "numeric")
        values = self.fenced(source.task, reference=reference) | {
            "numeric": numeric,
            "anchored": self.weights == "anchored",
            "least": self.rules.least,
            "most": self.rules.most,
        }
        answer = await Drafting(self.asking, self.rules).draft(
            self.messages(values),
            lambda text: [self.read(item) for item in read_items(text, *_KEYS)],
            schema=lambda least, most: _schema(least, most, numeric=numeric),
            reference=reference,
        )
        return self.made(answer, source, evidence=evidence_of("reference", reference))

    def read(self, value: object) -> Item:
        """One element of the model's list as a criterion, or why it is none."""
        fields = as_object(value)
        if fields is None:
            return Refused(str(value)[:200], "it is no object with title and description")
        text = str(fields.get("description", fields))[:200]
        title = fields.get("title")
        if not isinstance(title, str) or not title.strip():
            return Refused(text, "it has no title")
        said = {"description": fields["description"]} if "description" in fields else {}
        record = {"title": title.strip(), "weight": 1} | said
        try:
            found = RAR.parse([record], Place(), {}).criteria[0]
        except FormatError as error:
            return Refused(text, f"{error.field.rpartition('.')[2] or 'it'}: {error.detail}")
        if found.importance is None:
            return Refused(text, 'its description does not begin with a category, such as "Essential Criteria:"')
        return self._weighed(found, found.importance, fields.get("weight"))

    def _weighed(self, found: Criterion, category: Importance, given: object) -> Item:
        if self.weights in CATEGORY_WEIGHTS:
            weight = CATEGORY_WEIGHTS[self.weights][category]
        else:
            number = as_number(given)
            low, high = (ANCHORS if self.weights == "anchored" else _LOOSE)[category]
            if number is None or not number.is_integer() or not low <= number <= high:
                span = f"{low}" if low == high else f"{low} to {high}"
                shown = "missing" if given is None else repr(given)[:20]
                return Refused(found.text, f"its weight is {shown}; for {category.value} it must be {span}")
            weight = abs(number)
        # The category says what a pitfall is, whatever sign or wording it comes with.
        polarity = Polarity.PENALTY if category is Importance.PITFALL else Polarity.REWARD
        return found.model_copy(update={"weight": weight, "polarity": polarity})


def _schema(least: int, most: int | None, *, numeric: bool) -> dict[str, object]:
    text: dict[str, object] = {"type": "string"}
    fields: dict[str, object] = {"title": text, "description": text}
    return list_schema("criteria", fields | ({"weight": {"type": "integer"}} if numeric else {}), least, most)


def _no_reward(criteria: Sequence[Criterion]) -> str:
    return "" if any(one.polarity is Polarity.REWARD for one in criteria) else "all criteria are pitfalls"


_GENERIC = (
    ("correct", "The response is correct: its statements, steps and results are true."),
    ("essentials", "The response answers the essential points of the question."),
    ("concise", "The response is concise and has nothing that the question does not call for."),
    ("useful", "The response meets the practical need behind the question."),
)


def generic_rubric() -> Rubric:
    """The predefined rubric: four criteria of equal weight that fit any prompt, RaR's baseline (in our words)."""
    criteria = [Criterion(id=name, text=text, metadata={"title": name}) for name, text in _GENERIC]
    return finished(criteria, Provenance(generator="predefined"), rubric_id="generic", scope=Scope.DATASET)


class PredefinedGenerator(Generator):
    """The same rubric for every prompt, without a model: the baseline of every generated one.

    Args:
        rubric: the rubric; the generic one unless given.
    """

    name = "predefined"

    def __init__(self, rubric: Rubric | None = None) -> None:
        self.rubric = rubric or generic_rubric()

    def identity(self) -> dict[str, object]:
        """The rubric."""
        return {"rubric": self.rubric.fingerprint}

    async def write(self, source: Source) -> Generated:
        """The rubric."""
        return Generated(self.rubric)
