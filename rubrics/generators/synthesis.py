"""Rubrics with score tiers at three scopes, written before the data (Rubicon, 2508.12790)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.prompts import Prompt
from rubricate.rubrics.criterion import Criterion, Level, OrdinalScale
from rubricate.rubrics.generators.asking import Answered, read_items
from rubricate.rubrics.generators.base import DatasetGenerator, Generated
from rubricate.rubrics.generators.drafts import CHECKS, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator, list_schema
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.synthesis_asking import text_field
from rubricate.rubrics.rubric import Scope

__all__ = ["RubiconGenerator"]

_WEIGHTS = (1, 5)


class RubiconGenerator(ModelGenerator, DatasetGenerator):
    """A rubric of dimensions with ordered score tiers and weights, for a prompt, a task or a data set (Rubicon).

    `generate` writes for one source: its prompt at scope `instance`, and at the wider scopes the description of a
    task that its prompt is, before there is any data. `generate_from` writes one rubric for many prompts, of which
    it sees `examples`. Dimensions that are marked critical are vetoes: a response that fails one gets the floor.
    Rubicon's prompts are not published; numbers of dimensions and tiers are ours.

    Args:
        model: writes the rubric.
        scope: `instance`, `task` or `dataset`.
        least, most: numbers of dimensions.
        least_tiers, most_tiers: numbers of tiers.
        vetoes: critical dimensions are vetoes; otherwise the mark is only a tag.
        examples: prompts that `generate_from` shows at most.
        checks: rules of the linter that each criterion must pass.
        on_bad: what becomes of single dimensions that break a rule; see `ListRules`.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`.
    """

    name = "rubicon"

    def __init__(
        self,
        model: ChatModel,
        *,
        scope: Literal["instance", "task", "dataset"] = "instance",
        least: int = 3,
        most: int = 8,
        least_tiers: int = 3,
        most_tiers: int = 5,
        vetoes: bool = True,
        examples: int = 8,
        checks: Sequence[str] = CHECKS,
        on_bad: Literal["mend", "drop"] = "mend",
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("max_tokens", 4096)
        super().__init__(model, prompt or "generate_synthesis", **options)
        if scope not in ("instance", "task", "dataset"):
            raise ConfigError(f"scope is {scope!r}", hint="use instance, task or dataset")
        if not 2 <= least_tiers <= most_tiers or examples < 1:
            raise ConfigError(
                f"{least_tiers} to {most_tiers} tiers, {examples} examples", hint="use 2 or more, and 1"
            )
        self.scope = Scope(scope)
        self.rules = ListRules(least, most, tuple(checks), _all_vetoes, on_bad)
        self.least_tiers, self.most_tiers = least_tiers, most_tiers
        self.vetoes = vetoes
        self.examples = examples

    def identity(self) -> dict[str, object]:
        """Adds the options of this method."""
        names = ("least_tiers", "most_tiers", "vetoes", "examples")
        own: dict[str, object] = {name: getattr(self, name) for name in names}
        return super().identity() | own | {"scope": self.scope.value, "rules": self.rules.identity()}

    async def write(self, source: Source) -> Generated:
        """The rubric for a prompt, or for the task that the prompt describes."""
        return self._made(await self._ask(source.task, ()), source)

    async def write_from(self, sources: Sequence[Source]) -> Generated:
        """One rubric for all the sources, evenly spread ones of which are shown."""
        if self.scope is Scope.INSTANCE:
            raise ConfigError("one rubric for many prompts has a wider scope", hint="use scope=task or dataset")
        step = max(len(sources) / self.examples, 1.0)
        shown = [sources[int(at * step)].task for at in range(min(self.examples, len(sources)))]
        return self._made(await self._ask("", shown), Source("any", id=self.scope.value))

    async def _ask(self, task: str, examples: Sequence[str]) -> Answered[tuple[Criterion, ...]]:
        values = self.fenced(task, examples=examples) | {
            "scope": self.scope.value,
            "least": self.rules.least,
            "most": self.rules.most,
            "least_tiers": self.least_tiers,
            "most_tiers": self.most_tiers,
        }
        values |= {} if task else {"task": ""}
        drafting = Drafting(self.asking, self.rules)
        return await drafting.draft(self.messages(values), self._read, schema=self._schema)

    def _made(self, answer: Answered[tuple[Criterion, ...]], source: Source) -> Generated:
        made = self.made(answer, source)
        if made.rubric is None:
            return made
        rubric = made.rubric.model_copy(update={"scope": self.scope})
        return Generated(rubric, None, made.usage, made.notes)

    def _read(self, text: str) -> list[Item]:
        return [self._item(one) for one in read_items(text, "dimensions", "criteria", "rubric")]

    def _item(self, value: object) -> Item:
        fields = as_object(value) or {}
        said, name = text_field(fields, "description"), text_field(fields, "name")
        if not said or not name:
            return Refused(said or str(value)[:200], "it is no object with name and description")
        weight = as_number(fields.get("weight"))
        low, high = _WEIGHTS
        if weight is None or not weight.is_integer() or not low <= weight <= high:
            shown = repr(fields.get("weight"))[:20]
            return Refused(said, f"its weight is {shown}; it must be a whole number from {low} to {high}")
        tiers = [_tier(one) for one in as_array(fields.get("tiers")) or ()]
        levels = [one for one in tiers if one is not None]
        if len(levels) < len(tiers) or not self.least_tiers <= len(levels) <= self.most_tiers:
            span = f"{self.least_tiers} to {self.most_tiers}"
            return Refused(said, f"it needs {span} tiers, each with a score and a description")
        if any(first.value >= second.value for first, second in zip(levels, levels[1:], strict=False)):
            return Refused(said, "the scores of its tiers do not rise")
        critical = fields.get("critical") is True
        return Criterion(
            id="new",
            text=said,
            weight=weight,
            scale=OrdinalScale(levels=tuple(levels)),
            veto=critical and self.vetoes,
            tags=("critical",) if critical else (),
            metadata={"title": name},
        )

    def _schema(self, least: int, most: int | None) -> Mapping[str, object]:
        text: Mapping[str, object] = {"type": "string"}
        tiers = list_schema(
            "tiers", {"score": {"type": "number"}, "description": text}, self.least_tiers, self.most_tiers
        )
        inner = as_object(tiers["properties"]) or {}
        fields: dict[str, object] = {"name": text, "description": text, "weight": {"type": "integer"}}
        fields |= {"critical": {"type": "boolean"}, "tiers": inner["tiers"]}
        return list_schema("dimensions", fields, least, most)


def _tier(value: object) -> Level | None:
    fields = as_object(value) or {}
    score, said = as_number(fields.get("score")), text_field(fields, "description")
    return None if score is None or not said else Level(label=f"{score:g}", value=score, description=said)


def _all_vetoes(criteria: Sequence[Criterion]) -> str:
    critical = all("critical" in one.tags for one in criteria)
    return "all dimensions are critical; mark only those without which a response is worthless" if critical else ""
