"""Rubrics grounded in what a search finds (DR Tulu's initial rubrics, 2511.19399), the evidence kept with each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.errors import ChatError, ConfigError, ParseError
from rubricate.failures import failure, failure_of
from rubricate.narrow import as_array, as_object
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics.criterion import BinaryScale, Criterion, Importance, Provenance
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.drtulu import FORMAT as DRTULU
from rubricate.rubrics.formats.rar import CATEGORY_WEIGHTS
from rubricate.rubrics.generators.asking import Answered, read_items, read_json
from rubricate.rubrics.generators.base import Generated, GeneratorNote, NoteKind
from rubricate.rubrics.generators.drafts import CHECKS, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator
from rubricate.rubrics.generators.search_quotes import find_quote
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.synthesis_asking import again, text_field
from rubricate.rubrics.rubric import Rubric
from rubricate.search import Passage, Retriever, connect_retriever
from rubricate.types import Failure, FailureCause, FailureKind

__all__ = ["SECTIONS", "SearchGenerator"]

SECTIONS = ("Answer Critical", "Valuable", "Context")
"""The three lists of DR Tulu's persistent rubrics, most important first."""

_IMPORTANCE = (Importance.ESSENTIAL, Importance.IMPORTANT, Importance.OPTIONAL)

_QUERIES: Mapping[str, object] = {
    "type": "object",
    "properties": {"queries": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
    "required": ["queries"],
    "additionalProperties": False,
}


class SearchGenerator(ModelGenerator):
    """An instance rubric from passages that a search finds for the prompt (DR Tulu, 2511.19399).

    The model writes search queries; the passages found go to it, and it lists what a good answer contains under
    "Answer Critical", "Valuable" and "Context", each ingredient with quotations and the passages they are from. A
    quotation that does not stand in its passage, letter by letter but for blanks and the shapes of quotation marks,
    is dropped; an ingredient without any left is asked for again. Every criterion keeps its evidence in its
    metadata: source, line, the passage, and the quotation in the passage's own letters. `extra["record"]` is
    DR Tulu's record, `{"Question", "Answer Critical": [{"Ingredient", "Handle", "Specifics"}], ...}`.

    Args:
        model: writes queries and rubric.
        retriever: searches.
        search: in its place, a name for `rubricate.search.connect_retriever`, such as `bm25:/data/notes`.
        queries: search queries that the model writes at most; 0 searches for the prompt itself.
        k: passages of each search.
        most_passages: passages that are shown at most, the best of each query in turn.
        least_critical: answer-critical ingredients, at least (5).
        most: ingredients in all, at most.
        uncited: ingredients without evidence are refused (`refuse`), or kept with the tag `uncited` where the
            answer gives no quotation at all (`keep`, as DR Tulu's prompt allows).
        context_citations: quotations that an ingredient of "Context" needs (2, as in DR Tulu's prompt).
        nothing_found: `fail`, or ask all the same (`ask`): every ingredient is then uncited.
        weights: `drtulu` (1 for the critical ones, 0 for the others, which its reward does not read) or `graded`
            (1, .7 and .3, RaR's categories).
        scale: `ternary`, as DR Tulu's judge answers, or `binary`.
        quote_words: words that a quotation has at least.
        checks: rules of the linter that each criterion must pass.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`.
    """

    name = "search"

    def __init__(
        self,
        model: ChatModel,
        retriever: Retriever | None = None,
        *,
        search: str = "",
        queries: int = 3,
        k: int = 5,
        most_passages: int = 10,
        least_critical: int = 5,
        most: int = 25,
        uncited: Literal["refuse", "keep"] = "refuse",
        context_citations: int = 2,
        nothing_found: Literal["fail", "ask"] = "fail",
        weights: Literal["drtulu", "graded"] = "drtulu",
        scale: Literal["ternary", "binary"] = "ternary",
        quote_words: int = 3,
        checks: Sequence[str] = CHECKS,
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("max_tokens", 4096)
        super().__init__(model, prompt or "generate_search", **options)
        for name, value, allowed in (
            ("uncited", uncited, ("refuse", "keep")),
            ("nothing_found", nothing_found, ("fail", "ask")),
            ("weights", weights, ("drtulu", "graded")),
            ("scale", scale, ("ternary", "binary")),
        ):
            if value not in allowed:
                raise ConfigError(f"{name} is {value!r}", hint=f"use {' or '.join(allowed)}")
        if min(k, most_passages, least_critical, quote_words) < 1 or min(queries, context_citations) < 0:
            raise ConfigError("k, most_passages, least_critical and quote_words are 1 or more, queries 0 or more")
        if (retriever is None) == (not search):
            raise ConfigError(
                "give a retriever, or search= the name of one", hint="such as search='bm25:/data/notes'"
            )
        self.retriever = retriever or connect_retriever(search)
        self.queries, self.k, self.most_passages = queries, k, most_passages
        self.least_critical, self.most = least_critical, most
        self.uncited, self.nothing_found = uncited, nothing_found
        self.context_citations, self.quote_words = context_citations, quote_words
        self.weights, self.scale = weights, scale
        self.rules = ListRules(least_critical, most, tuple(checks), self._enough)

    def identity(self) -> dict[str, object]:
        """Adds retriever, query prompt and the options of this method."""
        names = ("queries", "k", "most_passages", "least_critical", "most", "uncited", "nothing_found")
        more = ("context_citations", "quote_words", "weights", "scale")
        own: dict[str, object] = {name: getattr(self, name) for name in (*names, *more)}
        own |= {"retriever": self.retriever.fingerprint, "checks": list(self.rules.checks)}
        return super().identity() | own | {"queries prompt": load_prompt("generate_search_queries").fingerprint}

    async def write(self, source: Source) -> Generated:
        """Search, then ask for the ingredients, and again for what breaks the rules."""
        asked = await self._queries(source)
        usage, notes = asked.usage, list(asked.notes)
        if asked.value is None:
            return Generated.failed(asked.failure or _nothing(), usage=usage, notes=notes)
        try:
            passages = await self._passages(asked.value)
        except ChatError as error:
            return Generated.failed(failure_of(error), usage=usage, notes=notes)
        extra: dict[str, object] = {"queries": list(asked.value), "passages": [one.place for one in passages]}
        if not passages and self.nothing_found == "fail":
            return replace(Generated.failed(_nothing(), usage=usage, notes=notes), extra=extra)
        answer, dropped = await self._ask(source, passages)
        notes += [*answer.notes, *dropped]
        usage += answer.usage
        if answer.value is None:
            failed = Generated.failed(answer.failure or _nothing(), usage=usage, notes=notes)
            return replace(failed, extra=extra)
        rubric = self.finish(answer.value, source)
        bare = [_without(one, "title") for one in rubric.criteria]
        changes = {"criteria": tuple(bare), "metadata": rubric.metadata | {"search": dict(extra)}}
        extra["record"] = _record(source.task, bare)
        return Generated(rubric.model_copy(update=changes), None, usage, tuple(notes), extra=extra)

    async def _queries(self, source: Source) -> Answered[tuple[str, ...]]:
        """What to search for; the prompt itself where no queries are wanted, or none could be read."""
        task = " ".join(source.task.split())
        if not self.queries:
            return Answered((task,))
        template = load_prompt("generate_search_queries")
        messages = self.messages(self.fenced(source.task) | {"most": self.queries}, template)
        answer = await self.asking.ask(again(messages), self._read_queries, schema=_QUERIES)
        if answer.failure is None or answer.failure.cause is FailureCause.INFRASTRUCTURE:
            return answer
        reason = f"no search queries could be had, and the prompt itself is searched for: {answer.failure.message}"
        return Answered((task,), None, "", answer.usage, (*answer.notes, GeneratorNote(NoteKind.CHANGED, reason)))

    def _read_queries(self, text: str) -> tuple[str, ...]:
        said = [" ".join(one.split()) for one in read_items(text, "queries") if isinstance(one, str)]
        found = tuple(dict.fromkeys(one for one in said if one))
        if not found:
            raise ParseError("the list of queries holds no text", kind="incomplete", reply=text)
        return found[: self.queries]

    async def _passages(self, queries: Sequence[str]) -> list[Passage]:
        """The passages found: the best of each query, then the second of each, and so on; each once."""
        found = await asyncio.gather(*(self.retriever.search(query, self.k) for query in queries))
        first: dict[tuple[str, str], Passage] = {}
        for one in (one for turn in zip_longest(*found) for one in turn):
            if one is not None:
                first.setdefault((one.source, one.text), one)
        return list(first.values())[: self.most_passages]

    async def _ask(
        self, source: Source, passages: Sequence[Passage]
    ) -> tuple[Answered[tuple[Criterion, ...]], list[GeneratorNote]]:
        dropped: list[GeneratorNote] = []
        titles = [" ".join(one.title.split())[:100] for one in passages]
        values = self.fenced(source.task, passages=[one.text for one in passages], titles=titles) | {
            "labels": [f" ({title})" if title else "" for title in titles],
            "least": self.least_critical,
            "quote_words": self.quote_words,
            "uncited": self.uncited == "keep",
        }

        def read(text: str) -> list[Item]:
            return self._read(text, source, passages, dropped)

        drafting = Drafting(self.asking, self.rules)
        answer = await drafting.draft(self.messages(values), read, schema=None)
        used = {one.text for one in answer.value or ()}
        return answer, [note for note in dict.fromkeys(dropped) if note.text in used]

    def _enough(self, criteria: Sequence[Criterion]) -> str:
        count = sum(one.importance is Importance.ESSENTIAL for one in criteria)
        if count >= self.least_critical:
            return ""
        return f"{count} ingredients are answer-critical, at least {self.least_critical} are needed"

    def _read(
        self, text: str, source: Source, passages: Sequence[Passage], dropped: list[GeneratorNote]
    ) -> list[Item]:
        fields = as_object(read_json(text)) or {}
        sections = [(name, as_array(fields.get(name))) for name in SECTIONS]
        if all(listed is None for _, listed in sections):
            raise ParseError(f"the answer has none of the lists {', '.join(SECTIONS)}", reply=text)
        items = [
            self._item(value, name, source, passages, dropped)
            for name, listed in sections
            for value in listed or ()
        ]
        if not items:
            raise ParseError("the lists of the answer are empty", kind="incomplete", reply=text)
        return items

    def _item(
        self,
        value: object,
        section: str,
        source: Source,
        passages: Sequence[Passage],
        dropped: list[GeneratorNote],
    ) -> Item:
        """One ingredient with its evidence, or why it is none."""
        fields = as_object(value) or {}
        said, handle = text_field(fields, "Ingredient"), text_field(fields, "Handle")
        if not said or not handle:
            return Refused(said or str(value)[:200], "it is no object with Ingredient and Handle")
        specifics = as_array(fields.get("Specifics")) or ()
        checked = [self._evidence(one, passages) for one in specifics]
        evidence = [one for one in checked if isinstance(one, dict)]
        wrong = [one for one in checked if isinstance(one, str)]
        needed = self.context_citations if section == "Context" else 1
        if len(evidence) < needed and (specifics or self.uncited == "refuse") and passages:
            counted = f"{len(evidence)} of {len(specifics)} quotations can be used, {section} needs {needed}"
            return Refused(said, f"{counted}{': ' if wrong else ''}{'; '.join(wrong)}")
        dropped += [GeneratorNote(NoteKind.DROPPED, f"a quotation: {one}", said) for one in wrong]
        cited = [{"Text": one["quote"], "Citation": one["source"]} for one in evidence]
        entry = {"Ingredient": said, "Handle": handle, "Specifics": cited}
        found = _parsed(section, entry, source.task).criteria[0]
        weights = CATEGORY_WEIGHTS["paper"]
        graded = (
            {} if found.importance is None or self.weights == "drtulu" else {"weight": weights[found.importance]}
        )
        places = tuple(dict.fromkeys(f"passage:{one['place']}" for one in evidence))
        return found.model_copy(
            update=graded
            | ({"scale": BinaryScale()} if self.scale == "binary" else {})
            | {
                "metadata": found.metadata | {"title": handle, "evidence": evidence},
                "provenance": Provenance(evidence=places),
                "tags": found.tags if evidence else (*found.tags, "uncited"),
            }
        )

    def _evidence(self, value: object, passages: Sequence[Passage]) -> dict[str, object] | str:
        """A quotation that stands in the passage it names, with that passage; else what is wrong."""
        fields = as_object(value) or {}
        quote, label = text_field(fields, "Text"), str(fields.get("Citation", "")).strip(" []()")
        number = label.removeprefix("P").removeprefix("p")
        at = int(number) - 1 if number.isdecimal() else -1
        if not 0 <= at < len(passages):
            return f"{label[:20]!r} is no passage"
        span = find_quote(quote, passages[at].text, least_words=self.quote_words)
        if span is None:
            return f"it does not stand in passage P{at + 1}, or is too short: {quote[:60]!r}"
        one = passages[at]
        return {
            "source": one.source,
            "place": one.place,
            "title": one.title,
            "passage": one.text,
            "quote": span.text,
        }

    async def aclose(self) -> None:
        """Close the model and the retriever."""
        await super().aclose()
        await self.retriever.aclose()


def _nothing() -> Failure:
    return failure(FailureKind.INCOMPLETE, "the search found no passage")


def _parsed(section: str, entry: Mapping[str, object], question: str) -> Rubric:
    lists = {name: [entry] if name == section else [] for name in SECTIONS}
    return DRTULU.parse({"Question": question, **lists}, Place(), {})


def _record(question: str, criteria: Sequence[Criterion]) -> dict[str, object]:
    """The record of DR Tulu's persistent generator; citations are the passages' sources."""
    record: dict[str, object] = {"Question": question}
    for name, importance in zip(SECTIONS, _IMPORTANCE, strict=True):
        record[name] = [
            {"Ingredient": one.text, "Handle": one.metadata["Handle"], "Specifics": one.metadata["Specifics"]}
            for one in criteria
            if one.importance is importance
        ]
    return record


def _without(one: Criterion, name: str) -> Criterion:
    return one.model_copy(update={"metadata": {key: part for key, part in one.metadata.items() if key != name}})
