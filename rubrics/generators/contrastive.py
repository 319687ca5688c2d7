"""Contrastive rubrics: hard rules and principles from what sets preferred responses apart (2510.07743)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError, FormatError, ParseError
from rubricate.narrow import as_object
from rubricate.prompts import Prompt
from rubricate.rubrics.criterion import Criterion, CriterionKind
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.openrubrics import FORMAT as OPENRUBRICS
from rubricate.rubrics.formats.openrubrics import KIND_WEIGHTS
from rubricate.rubrics.formats.tagged_text import TAGS, is_tagged_list
from rubricate.rubrics.generators.asking import read_items
from rubricate.rubrics.generators.base import Generated, Need
from rubricate.rubrics.generators.contrastive_pairs import ranking_of, response_fault
from rubricate.rubrics.generators.drafts import CHECKS, UNASKED, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator, evidence_of, list_schema
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.trained import WEIGHTS

__all__ = ["ContrastiveGenerator"]

_MODES = ("pairwise", "listwise")
_FORMS = ("json", "list")
_OPENING = re.compile(r"the response\b", re.I)
_NAME = re.compile(r"(?<=[^\W_][^\S\n])[A-Z][\w+#.-]*\w|(?<=[,;:(][^\S\n])[A-Z][\w+#.-]*\w")


class ContrastiveGenerator(ModelGenerator):
    """Hard rules that a request states, and principles by which its preferred responses win (CRG of 2510.07743).

    The text of every item opens with "The response". Hard rules come of the request: a length, format or language
    that it does not ask for is refused. Principles carry over to other requests: one with a number, or with a name
    that the request has, is refused. So is an item that points at a response or copies its words, since the judge
    of other responses does not see it. What is refused is asked for again with the reason; see `ListRules`.

    A rubric written from a pair can carry the pair's label. Filter with `filters.LabelConsistency` (the paper keeps
    rubrics whose mean accuracy is at least .5), and hold pairs out with `hold_out_pairs`.

    Args:
        model: writes the rubric. OpenRubrics: GPT-4.1-mini.
        mode: `pairwise` shows the source's first pairs, `listwise` its ranked responses, best first; labelled
            candidates are ranked by their labels.
        most_pairs: pairs that are shown at most (1).
        most_ranked: ranked responses that are shown at most, the worst ones left out; None for all.
        form: `json` asks for objects, by schema where the model can; `list` for the published numbered list whose
            items close with [Hard Rule] or [Principle]. Either answer is read in both.
        weights: `equal`, or `arrow`: 3 for hard rules, 1 for principles (RUBRIC-ARROW, 2605.29156).
        abstract: refuse numbers and names in principles, as above.
        quote_words: words in a row that are a copy; None looks for none.
        least, most: numbers of items.
        checks: rules of the linter that each item must pass.
        on_bad: what becomes of single items that break a rule; see `ListRules`.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`. OpenRubrics: temperature 0, 768 tokens.

    Raises ConfigError for options outside their ranges.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        mode: Literal["pairwise", "listwise"] = "pairwise",
        most_pairs: int = 1,
        most_ranked: int | None = None,
        form: Literal["json", "list"] = "json",
        weights: Literal["equal", "arrow"] = "equal",
        abstract: bool = True,
        quote_words: int | None = 6,
        least: int = 1,
        most: int | None = None,
        checks: Sequence[str] = (*CHECKS, UNASKED),
        on_bad: Literal["mend", "drop"] = "mend",
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("max_tokens", 768)
        super().__init__(model, prompt or "generate_contrastive", **options)
        for option, value, known in (("mode", mode, _MODES), ("form", form, _FORMS), ("weights", weights, WEIGHTS)):
            if value not in known:
                raise ConfigError(f"{option} is {value!r}", hint=f"use {' or '.join(known)}")
        if most_pairs < 1 or (most_ranked is not None and most_ranked < 2):
            hint = "show 1 pair or more, 2 ranked responses or more"
            raise ConfigError(f"most_pairs is {most_pairs}, most_ranked {most_ranked}", hint=hint)
        if quote_words is not None and quote_words < 1:
            raise ConfigError(f"quote_words is {quote_words}", hint="use 1 or more, or None")
        self.mode = mode
        self.most_pairs = most_pairs
        self.most_ranked = most_ranked
        self.form = form
        self.weights = weights
        self.abstract = abstract
        self.quote_words = quote_words
        self.rules = ListRules(least, most, tuple(checks), None, on_bad)
        self.name = "contrastive" if mode == "pairwise" else "contrastive-listwise"
        self.needs = frozenset({Need.PAIR} if mode == "pairwise" else ())
        listwise = {Need.RANKED, Need.CANDIDATES, Need.LABELS}
        self.uses = frozenset(listwise if mode == "listwise" else ())

    def identity(self) -> dict[str, object]:
        """Adds the options of this method."""
        names = ("mode", "most_pairs", "most_ranked", "form", "weights", "abstract", "quote_words")
        return super().identity() | {name: getattr(self, name) for name in names} | {"rules": self.rules.identity()}

    def check(self, source: Source) -> None:
        """Also raises ConfigError for a ranking that sets no response above another."""
        super().check(source)
        if self.mode == "listwise" and len({one.rank for one in ranking_of(source)}) < 2:
            row = f" (row {source.id})" if source.id else ""
            hint = "column ranked, or candidates and labels that differ"
            raise ConfigError(
                f"{self.name} needs responses ranked best first, and this source has none{row}", hint=hint
            )

    async def write(self, source: Source) -> Generated:
        """Ask for the rubric, and again for what breaks its rules."""
        pairs = source.pairs[: self.most_pairs] if self.mode == "pairwise" else ()
        ranked = ranking_of(source)[: self.most_ranked] if self.mode == "listwise" else ()
        chosen, rejected = [pair.chosen for pair in pairs], [pair.rejected for pair in pairs]
        texts = [one.text for one in ranked]
        values = self.fenced(source.task, preferred=chosen, other=rejected, ranked=texts) | {
            "form": self.form,
            "ranks": [one.rank for one in ranked],
            "least": self.rules.least,
            "most": self.rules.most,
        }
        seen = list(dict.fromkeys([*chosen, *rejected, *texts]))
        answer = await Drafting(self.asking, self.rules).draft(
            self.messages(values),
            lambda text: [self._accepted(item, seen, source.task) for item in self._read(text)],
            schema=_schema if self.form == "json" else None,
            task=source.task,
        )
        evidence = (
            *evidence_of("chosen", *chosen),
            *evidence_of("rejected", *rejected),
            *evidence_of("ranked", *texts),
        )
        return self.made(answer, source, evidence=evidence)

    # Reading

    def _read(self, text: str) -> list[Item]:
        """The items of an answer: JSON, or a numbered list with tags."""
        looks_json = text.lstrip().startswith(("{", "[", "```"))
        if is_tagged_list(text) or (self.form == "list" and not looks_json):
            try:
                found = OPENRUBRICS.parse(text, Place(), {})
            except FormatError as error:
                raise ParseError(error.detail, reply=text) from None
            return [self._item(one.text, one.kind) for one in found.criteria]
        return [self._object(value) for value in read_items(text, "criteria", "rubric", "rubrics", "items")]

    def _object(self, value: object) -> Item:
        fields = as_object(value)
        text = value if fields is None else fields.get("text", fields.get("criterion", fields.get("description")))
        if not isinstance(text, str) or not text.strip():
            return Refused(str(value)[:200], "it is no object with text and kind")
        text = " ".join(text.split())
        kind = None if fields is None else _kind(fields.get("kind", fields.get("tag")))
        for tagged, tag in TAGS.items():
            if text.casefold().endswith(tag.casefold()):
                text = text[: -len(tag)].rstrip()
                if kind not in (None, tagged):
                    return Refused(text, f"its kind is {kind.value if kind else ''}, its tag {tag}")
                kind = tagged
        return self._item(text, kind)

    def _item(self, text: str, kind: CriterionKind | None) -> Item:
        if not _OPENING.match(text):
            return Refused(text, 'it does not open with "The response"')
        if kind is None:
            return Refused(text, "nothing says whether it is a hard rule or a principle")
        weight = KIND_WEIGHTS[kind] if self.weights == "arrow" else 1.0
        return Criterion(id="new", text=text, kind=kind, weight=weight)

    def _accepted(self, item: Item, responses: Sequence[str], task: str) -> Item:
        """The item, unless it takes from the responses or the request what it may not."""
        if isinstance(item, Refused):
            return item
        fault = response_fault(item.text, responses, task, self.quote_words)
        if not fault and self.abstract and item.kind is CriterionKind.PRINCIPLE:
            fault = _concrete(item.text, task)
        return Refused(item.text, fault) if fault else item


def _kind(value: object) -> CriterionKind | None:
    said = re.sub(r"[\s_-]+", "_", value.strip(" []*").casefold()) if isinstance(value, str) else ""
    return {"hard_rule": CriterionKind.HARD_RULE, "principle": CriterionKind.PRINCIPLE}.get(said)


def _concrete(text: str, task: str) -> str:
    """Why a principle does not carry over to other requests: it has a number, or a name that the request has."""
    number = re.search(r"\d[\d.,]*", text)
    if number:
        return f"it is a principle and names a number ({number[0].rstrip('.,')})"
    known = set(re.findall(r"[A-Z][\w+#.-]*\w", task))
    name = next((found[0] for found in _NAME.finditer(text) if found[0] in known), "")
    return f"it is a principle and names something of this request ({name})" if name else ""


def _schema(least: int, most: int | None) -> dict[str, object]:
    kinds = [kind.value for kind in TAGS]
    item: dict[str, object] = {"text": {"type": "string"}, "kind": {"type": "string", "enum": kinds}}
    return list_schema("criteria", item, least, most)
