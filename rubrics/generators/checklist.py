"""Checklists of weighted yes/no questions, directly or from candidate responses (RLCF, 2507.18624)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError, FormatError, ParseError
from rubricate.narrow import as_number, as_object
from rubricate.prompts import Prompt
from rubricate.rubrics.criterion import BinaryScale, Criterion
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.checklist_text import is_checklist_text, read_checklist
from rubricate.rubrics.formats.rlcf import SCALE, UNIVERSAL
from rubricate.rubrics.generators.asking import read_items
from rubricate.rubrics.generators.base import Generated, Need
from rubricate.rubrics.generators.drafts import CHECKS, COPIED, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator, evidence_of, list_schema
from rubricate.rubrics.generators.source import Source, text_of

__all__ = ["UNIVERSAL_TEXT", "ChecklistGenerator"]

UNIVERSAL_TEXT = (
    "Does the response satisfy the following two criteria: 1) it directly addresses the request, without preamble, "
    "commentary on itself or off-topic text, and 2) it fits the context and the tone of the request?"
)
"""The universal requirement, weight 100, that RLCF puts into every checklist against reward hacking (our words)."""

_MODES = ("candidates", "direct")


class ChecklistGenerator(ModelGenerator):
    """A checklist with weights from 0 to 100 for an instruction (RLCF, 2507.18624).

    The questions are answered with yes or no, yes being good; RLCF's judge answers with a number from 0 to 100.

    Args:
        model: writes the checklist.
        mode: `candidates` shows candidate responses (RLCF: of four small models), so that the questions catch how
            responses fail; `direct` shows the instruction alone.
        reference: `optional` shows a reference answer where there is one, `required` needs it, `none` never does.
        most_candidates: candidates that are shown at most, the first ones of the source (4).
        universal: append the universal requirement, weight 100.
        scale: `0-100`, or `binary` for judges that answer with yes or no.
        least, most: numbers of questions (1 and 7), the universal one not counted.
        checks: rules of the linter that each question must pass.
        on_bad: what becomes of single questions that break a rule; see `ListRules`.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`. RLCF: temperature 0, top-p .9, 1024 tokens.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        mode: Literal["candidates", "direct"] = "candidates",
        reference: Literal["optional", "required", "none"] = "optional",
        most_candidates: int = 4,
        universal: bool = True,
        scale: Literal["0-100", "binary"] = "0-100",
        least: int = 1,
        most: int = 7,
        checks: Sequence[str] = (*CHECKS, COPIED),
        on_bad: Literal["mend", "drop"] = "mend",
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("top_p", 0.9)
        options.setdefault("max_tokens", 1024)
        super().__init__(model, prompt or "generate_checklist", **options)
        if mode not in _MODES or reference not in ("optional", "required", "none"):
            hint = "modes: candidates, direct; references: optional, required, none"
            raise ConfigError(f"there is no mode {mode!r} with reference {reference!r}", hint=hint)
        if scale not in ("0-100", "binary"):
            raise ConfigError(f"scale is {scale!r}", hint="use 0-100 or binary")
        if most_candidates < 1:
            raise ConfigError(f"most_candidates is {most_candidates}", hint="use 1 or more, or mode='direct'")
        self.mode = mode
        self.reference = reference
        self.most_candidates = most_candidates
        self.universal = universal
        self.scale = scale
        self.rules = ListRules(least, most, tuple(checks), _worthless, on_bad)
        self.name = "checklist" if mode == "candidates" else "checklist-direct"
        needs = {Need.CANDIDATES: mode == "candidates", Need.REFERENCE: reference == "required"}
        self.needs = frozenset(need for need, wanted in needs.items() if wanted)
        self.uses = frozenset({Need.REFERENCE} if reference == "optional" else ())

    def identity(self) -> dict[str, object]:
        """Adds the options of this method."""
        own: dict[str, object] = {
            name: getattr(self, name) for name in ("mode", "reference", "most_candidates", "universal", "scale")
        }
        return super().identity() | own | {"rules": self.rules.identity()}

    async def write(self, source: Source) -> Generated:
        """Ask for the checklist, and again for what breaks its rules."""
        reference = "" if self.reference == "none" else source.reference or ""
        shown = source.candidates[: self.most_candidates] if self.mode == "candidates" else ()
        candidates = [text_of(candidate) for candidate in shown]
        values = self.fenced(source.task, reference=reference, candidates=candidates)
        values |= {"least": self.rules.least, "most": self.rules.most}
        answer = await Drafting(self.asking, self.rules).draft(
            self.messages(values), self._read, schema=_schema, reference=reference
        )
        evidence = (*evidence_of("reference", reference), *evidence_of("candidate", *candidates))
        return self.made(answer, source, evidence=evidence, more=[self._universal()] if self.universal else [])

    def _universal(self) -> Criterion:
        return self._criterion(UNIVERSAL_TEXT, 100.0, (UNIVERSAL,))

    def _criterion(self, text: str, weight: float, tags: tuple[str, ...] = ()) -> Criterion:
        scale = SCALE if self.scale == "0-100" else BinaryScale()
        return Criterion(id="new", text=text, weight=weight, scale=scale, tags=tags)

    def _read(self, text: str) -> list[Item]:
        """The questions of an answer: JSON, or the published text of bullets with weights."""
        if is_checklist_text(text):
            try:
                return [self._item(one.text, one.weight) for one in read_checklist(text, Place())]
            except FormatError as error:
                raise ParseError(error.detail, reply=text) from None
        found: list[Item] = []
        for value in read_items(text, "questions", "requirements", "checklist"):
            fields = as_object(value)
            question = None if fields is None else fields.get("question", fields.get("text"))
            if fields is None or not isinstance(question, str) or not question.strip():
                found.append(Refused(str(value)[:200], "it is no object with question and weight"))
                continue
            found.append(self._item(" ".join(question.split()), fields.get("weight")))
        return found

    def _item(self, question: str, given: object) -> Item:
        weight = as_number(given)
        if weight is None or not 0.0 <= weight <= 100.0:
            shown = "missing" if given is None else repr(given)[:20]
            return Refused(question, f"its weight is {shown}; it must be a whole number from 0 to 100")
        if not question.rstrip("\"'”").endswith("?"):
            return Refused(question, "it is no question that is answered with yes or no")
        return self._criterion(question, weight)


def _worthless(criteria: Sequence[Criterion]) -> str:
    return "" if any(one.weight > 0 for one in criteria) else "all weights are 0"


def _schema(least: int, most: int | None) -> dict[str, object]:
    weight = {"type": "integer", "minimum": 0, "maximum": 100}
    return list_schema("questions", {"question": {"type": "string"}, "weight": weight}, least, most)
