"""Auto-Rubric's first stage (2510.17314): propose, evaluate and revise until the rubric predicts the label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError
from rubricate.failures import failure
from rubricate.narrow import as_object
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.generators.asking import Answered, read_items
from rubricate.rubrics.generators.auto_rubric_predict import Labelled, Prediction, Predictor
from rubricate.rubrics.generators.base import Generated, GeneratorNote, NoteKind
from rubricate.rubrics.generators.contrastive_pairs import response_fault
from rubricate.rubrics.generators.drafts import CHECKS, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator, evidence_of
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.rubric import Rubric
from rubricate.types import FailureKind, Usage

__all__ = ["AUTO_RUBRIC", "AutoRubricGenerator"]

AUTO_RUBRIC = "auto_rubric"
"""Key of the rubric's metadata, and of `Generated.extra`, with epoch and accuracy."""


class AutoRubricGenerator(ModelGenerator):
    """A rubric for one labelled source that leads a judge to the label (stage 1 of Auto-Rubric, 2510.17314).

    The model proposes a rubric from the responses and their labels; the judge, who does not see the labels,
    predicts them by it; where it is wrong, the model revises the rubric with what the judge said. Only a rubric
    that predicts every label is given back. A judge that fails has predicted nothing, and there is no rubric.

    Args:
        model: proposes and revises.
        predictor: has a judge predict the label: `PairPredictor`, `RankPredictor` or `ScorePredictor`.
        max_epochs: rubrics that are evaluated at most, the proposal included (3).
        judge_attempts: evaluations of one rubric at most, where a judgement failed in a way that may pass.
        least, most: numbers of criteria (1 and 3).
        quote_words: words in a row of one response that are a copy; None looks for none.
        checks: rules of the linter that each criterion must pass.
        on_bad: what becomes of single criteria that break a rule; see `ListRules`.
        propose, revise: templates of one's own, or their names.
        options: how the model is asked; see `AskOptions`. Auto-Rubric: 5 attempts.

    Raises ConfigError for options outside their ranges.
    """

    name = "auto-rubric"

    def __init__(
        self,
        model: ChatModel,
        predictor: Predictor,
        *,
        max_epochs: int = 3,
        judge_attempts: int = 2,
        least: int = 1,
        most: int = 3,
        quote_words: int | None = 6,
        checks: Sequence[str] = CHECKS,
        on_bad: Literal["mend", "drop"] = "mend",
        propose: Prompt | str | None = None,
        revise: Prompt | str | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("max_attempts", 5)
        super().__init__(model, propose or "generate_auto_propose", **options)
        if max_epochs < 1 or judge_attempts < 1 or (quote_words is not None and quote_words < 1):
            raise ConfigError(
                f"max_epochs is {max_epochs}, judge_attempts {judge_attempts}, quote_words {quote_words}",
                hint="use 1 or more",
            )
        self.predictor = predictor
        self.max_epochs = max_epochs
        self.judge_attempts = judge_attempts
        self.quote_words = quote_words
        self.rules = ListRules(least, most, tuple(checks), None, on_bad)
        self.revise = revise if isinstance(revise, Prompt) else load_prompt(revise or "generate_auto_revise")
        self.needs = predictor.needs
        self.uses = predictor.uses

    def identity(self) -> dict[str, object]:
        """Adds the predictor and the options of this method."""
        names = ("max_epochs", "judge_attempts", "quote_words")
        own = {name: getattr(self, name) for name in names} | {"rules": self.rules.identity()}
        return (
            super().identity() | own | {"predictor": self.predictor.fingerprint, "revise": self.revise.fingerprint}
        )

    def check(self, source: Source) -> None:
        """Also raises ConfigError for a source without a label that the predictor can predict."""
        super().check(source)
        self.predictor.labelled(source)

    async def write(self, source: Source) -> Generated:
        """Propose, then evaluate and revise, epoch by epoch."""
        shown = self.predictor.labelled(source)
        evidence = evidence_of("labelled", *(one.text for one in shown))
        usage, notes = Usage(), list[GeneratorNote]()
        rubric, last = None, Prediction(False)
        for epoch in range(1, self.max_epochs + 1):
            answer = await self._draft(source, shown, rubric, last.said, epoch)
            usage += answer.usage
            notes += answer.notes
            if answer.value is None:
                why = answer.failure or failure(FailureKind.INCOMPLETE, "there are no criteria")
                return Generated.failed(why, usage=usage, notes=notes)
            prompt = self.prompt if rubric is None else self.revise
            rubric = self.finish(answer.value, source, evidence=evidence, prompt=prompt)
            last, cost = await self._evaluate(source, rubric)
            usage += cost
            if last.failure is not None:
                return Generated.failed(last.failure, usage=usage, notes=notes)
            if last.right:
                told = {"epoch": epoch, "accuracy": last.accuracy, "predictor": self.predictor.name}
                marked = rubric.model_copy(update={"metadata": {**rubric.metadata, AUTO_RUBRIC: told}})
                return Generated(marked, None, usage, tuple(notes), extra={AUTO_RUBRIC: told})
            share = f"{last.accuracy:.0%} of the labels" if last.accuracy is not None else "not the label"
            notes.append(GeneratorNote(NoteKind.REASKED, f"epoch {epoch}: the rubric predicts {share}"))
        why = failure(FailureKind.OUT_OF_RANGE, f"none of {self.max_epochs} rubrics predicts the label")
        return Generated.failed(why, usage=usage, notes=notes)

    async def _draft(
        self, source: Source, shown: Sequence[Labelled], rubric: Rubric | None, said: str, epoch: int
    ) -> Answered[tuple[Criterion, ...]]:
        """The proposal, or the revision of a rubric."""
        before = "" if rubric is None else _listed(rubric)
        values = self.fenced(source.task, response=[one.text for one in shown], before=before, said=said) | {
            "labels": [one.label for one in shown],
            "least": self.rules.least,
            "most": self.rules.most,
        }
        texts = list(dict.fromkeys(one.text for one in shown))
        return await Drafting(self.asking, self.rules).draft(
            self.messages(values, None if rubric is None else self.revise),
            lambda text: [self._read(value, texts, source.task) for value in read_items(text, *_KEYS)],
            schema=_schema,
            sample=epoch - 1,
        )

    async def _evaluate(self, source: Source, rubric: Rubric) -> tuple[Prediction, Usage]:
        """The judge's prediction, asked for again while it failed and another attempt may help; and its cost."""
        usage = Usage()
        prediction = Prediction(False)
        for _ in range(self.judge_attempts):
            prediction = await self.predictor.predict(source, rubric)
            usage += prediction.usage
            if prediction.failure is None or not prediction.failure.retryable:
                break
        return prediction, usage

    def _read(self, value: object, responses: Sequence[str], task: str) -> Item:
        """One element of the model's list as a criterion, or why it is none."""
        text = criterion_text(value)
        if not text:
            return Refused(str(value)[:200], "it is no text")
        fault = response_fault(text, responses, task, self.quote_words)
        return Refused(text, fault) if fault else Criterion(id="new", text=text)


_KEYS = ("rubrics", "criteria", "rubric")


def criterion_text(value: object) -> str:
    """The text of a list's element: a string, or an object that has one; "" for neither."""
    fields = as_object(value)
    names = ("text", "criterion", "description", "rubric")
    text = value if fields is None else next((fields[name] for name in names if name in fields), None)
    return " ".join(text.split()) if isinstance(text, str) else ""


def _listed(rubric: Rubric) -> str:
    return "\n".join(f"{number}. {one.text}" for number, one in enumerate(rubric.criteria, start=1))


def _schema(least: int, most: int | None) -> dict[str, object]:
    listed: dict[str, object] = {"type": "array", "items": {"type": "string"}, "minItems": least}
    if most is not None:
        listed["maxItems"] = most
    properties = {"rubrics": listed, "reason": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
