"""Themes with tips: many criteria put into few that hold for all prompts (Auto-Rubric's last stage, 2510.17314)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_object
from rubricate.prompts import Prompt
from rubricate.prompts.fence import fence, make_nonce
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.generators.asking import read_items
from rubricate.rubrics.generators.base import Generated, Need
from rubricate.rubrics.generators.drafts import CHECKS, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator, evidence_of, list_schema
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.rubric import Group, Rubric, Scope

__all__ = ["ThemesGenerator", "theme_tips_text"]


class ThemesGenerator(ModelGenerator):
    """Puts the criteria of rubrics into themes, each with tips: one rubric for a data set.

    The criteria of the source's rubrics go in, in order, equal ones once. Tips are concrete, themes general; both
    must stand alone.

    Args:
        model: writes the themes.
        themes: themes at most (5).
        tips: tips a theme at most; None for no limit.
        form: `themes` makes one criterion of each theme, with its tips in the text, as Auto-Rubric's judges see it;
            `tips` makes a group of each theme and a criterion of each tip, for judges of single criteria.
        checks: rules of the linter that each theme, tips included, must pass.
        on_bad: what becomes of single themes that break a rule; see `ListRules`.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`.

    Raises ConfigError for options outside their ranges.
    """

    name = "auto-rubric-themes"
    needs = frozenset({Need.RUBRICS})

    def __init__(
        self,
        model: ChatModel,
        *,
        themes: int = 5,
        tips: int | None = None,
        form: Literal["themes", "tips"] = "themes",
        checks: Sequence[str] = CHECKS,
        on_bad: Literal["mend", "drop"] = "mend",
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("max_tokens", 4096)
        super().__init__(model, prompt or "generate_auto_themes", **options)
        if form not in ("themes", "tips"):
            raise ConfigError(f"form is {form!r}", hint="use themes or tips")
        if tips is not None and tips < 1:
            raise ConfigError(f"tips is {tips}", hint="use 1 or more, or None")
        self.form = form
        self.tips = tips
        self.rules = ListRules(1, themes, tuple(checks), None, on_bad)

    def identity(self) -> dict[str, object]:
        """Adds the options of this method."""
        return super().identity() | {"form": self.form, "tips": self.tips, "rules": self.rules.identity()}

    async def write(self, source: Source) -> Generated:
        """Themes of the criteria of the source's rubrics."""
        criteria = [one for rubric in source.rubrics for one in rubric.criteria]
        return await self.structure(criteria, rubric_id=source.id)

    async def structure(self, criteria: Sequence[Criterion], *, rubric_id: str = "") -> Generated:
        """One rubric of scope `dataset` out of the criteria. Raises ConfigError for none."""
        texts = list(dict.fromkeys(map(_shown, criteria)))
        if not texts:
            raise ConfigError("there are no criteria to put into themes")
        listed = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))
        values: dict[str, object] = {
            "criteria": fence("criteria", listed, make_nonce(self.asking.options.run_key, listed)),
            "most": self.rules.most,
            "tips": self.tips,
        }
        answer = await Drafting(self.asking, self.rules).draft(
            self.messages(values),
            lambda text: [self._read(value) for value in read_items(text, "categories", "themes", "criteria")],
            schema=_schema,
        )
        source = Source("all prompts", id=rubric_id)
        made = self.made(answer, source, evidence=evidence_of("criterion", *texts))
        if made.rubric is None:
            return made
        return Generated(self._shaped(made.rubric), None, made.usage, made.notes)

    def _read(self, value: object) -> Item:
        """One theme as a criterion with its tips, or why it is none."""
        fields = as_object(value)
        theme = None if fields is None else fields.get("theme")
        if fields is None or not isinstance(theme, str) or not theme.strip():
            return Refused(str(value)[:200], "it is no object with theme and tips")
        theme = " ".join(theme.split())
        listed = as_array(fields.get("tips"))
        given = [" ".join(tip.split()) for tip in listed or () if isinstance(tip, str) and tip.strip()]
        if listed is None or not given or len(given) < len(listed):
            return Refused(theme, "its tips are no list of texts")
        tips = list(dict.fromkeys(given))
        if self.tips is not None and len(tips) > self.tips:
            return Refused(theme, f"it has {len(tips)} tips, at most {self.tips} are allowed")
        text = "\n".join([theme, *(f"- {tip}" for tip in tips)])
        return Criterion(id="new", text=text, metadata={"theme": theme, "tips": tips})

    def _shaped(self, rubric: Rubric) -> Rubric:
        """The rubric for the data set, in this generator's form."""
        if self.form == "themes":
            return rubric.model_copy(update={"scope": Scope.DATASET})
        groups, criteria = list[Group](), list[Criterion]()
        for one in rubric.criteria:
            group = Group(id=f"theme-{one.id}", text=str(one.metadata["theme"]))
            groups.append(group)
            for tip in as_array(one.metadata["tips"]) or ():
                changes: dict[str, object] = {"text": tip, "path": (group.id,), "metadata": {}}
                criteria.append(one.model_copy(update=changes))
        named = [one.model_copy(update={"id": f"c{n}"}) for n, one in enumerate(criteria, start=1)]
        return Rubric(
            criteria=tuple(named),
            groups=tuple(groups),
            id=rubric.id,
            scope=Scope.DATASET,
            metadata=rubric.metadata,
        )


def theme_tips_text(rubric: Rubric) -> str:
    """The rubric as the text that Auto-Rubric hands to judges: `Theme: ...`, then `- Tip: ...` by line.

    Raises ConfigError for a criterion that is neither a theme of `ThemesGenerator` nor a tip in a group of its.
    """
    themes: dict[str, list[str]] = {group.text: [] for group in rubric.groups}
    texts = {group.id: group.text for group in rubric.groups}
    for one in rubric.criteria:
        theme, tips = one.metadata.get("theme"), as_array(one.metadata.get("tips"))
        if isinstance(theme, str) and tips is not None:
            themes.setdefault(theme, []).extend(map(str, tips))
        elif one.path:
            themes[texts[one.path[-1]]].append(one.text)
        else:
            raise ConfigError(f"{one.id!r} is no theme with tips", hint="make the rubric with ThemesGenerator")
    blocks = ["\n".join([f"Theme: {theme}", *(f"- Tip: {tip}" for tip in tips)]) for theme, tips in themes.items()]
    return "\n\n".join(blocks)


def _shown(one: Criterion) -> str:
    """A criterion's text in one line; a penalty says that it is one, since themes are true of good responses."""
    text = " ".join(one.text.split())
    return f"To avoid: {text}" if one.polarity is Polarity.PENALTY else text


def _schema(least: int, most: int | None) -> dict[str, object]:
    tips: dict[str, object] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    return list_schema("categories", {"theme": {"type": "string"}, "tips": tips}, least, most)
