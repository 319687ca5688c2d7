"""The banks of texts that checks are made of: topics, traits and forms, validated and split by hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from os import PathLike
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from rubricate.data.jsontext import parse_json
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_object
from rubricate.types import fingerprint

__all__ = ["Bank", "Banks", "Form", "Point", "Topic", "Trait", "load_banks"]

Text = Annotated[str, StringConstraints(strip_whitespace=False, min_length=1, pattern=r"\S")]
Texts = Annotated[tuple[Text, ...], Field(min_length=1)]
Slot = Literal["opening", "closing", "between", "any"]
HELD_OUT = 0.2
"""Share of the topics, and of the phrases of each trait, that training never sees."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Point(_Entry):
    """One thing that a response to a topic may say.

    Attributes:
        id: unique in its topic.
        about: verb phrases that complete "The response ...".
        denied: the same, denied.
        says: sentences that do what `about` says.
        misses: sentences that share words with them and do not.
        about_en, denied_en: the phrases in English, where the topic is in another language.
    """

    id: Text
    about: Texts
    denied: Texts
    says: Texts
    misses: tuple[Text, ...] = ()
    about_en: tuple[Text, ...] = ()
    denied_en: tuple[Text, ...] = ()

    def phrases(self, language: str, *, own: str) -> tuple[Sequence[str], Sequence[str]]:
        """The wordings in a language, plain and denied; empty where there are none."""
        if language == own:
            return self.about, self.denied
        return (self.about_en, self.denied_en) if language == "en" else ((), ())


class Topic(_Entry):
    """A request, and what a response to it may say. Points are independent of each other."""

    id: Text
    language: Text
    task: Text
    prompts: Texts
    points: Annotated[tuple[Point, ...], Field(min_length=3)]
    asides: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _unique(self) -> Topic:
        ids = [point.id for point in self.points]
        if len(set(ids)) != len(ids):
            raise ValueError("the ids of the points must differ")
        return self


class Form(_Entry):
    """How a kind of criterion that code decides is asked about in one language, and phrases that bring it about.

    Attributes:
        kind, family: names.
        plain, negated: wordings of the criterion; `{n}`, `{low}`, `{high}`, `{word}`, `{a}`, `{b}`, ... stand for
            what is asked.
        instruction: wordings of a request for it, in a prompt.
        slot, present, near, mutes: as a trait's.
    """

    kind: Text
    family: Text
    language: Text
    plain: Texts
    negated: tuple[Text, ...] = ()
    instruction: tuple[Text, ...] = ()
    slot: Slot = "any"
    present: tuple[Text, ...] = ()
    near: tuple[Text, ...] = ()
    mutes: tuple[Text, ...] = ()


class Trait(_Entry):
    """A way of speaking that a phrase brings into a response, whatever the topic.

    Attributes:
        kind, family: names.
        slot: where in a response its phrases fit.
        plain, negated: wordings of the criterion.
        plain_en, negated_en: the same in English, where the trait is in another language.
        present: phrases that fulfil it.
        near: phrases that share words or shape with them and do not fulfil it.
        mutes: kinds that nothing may be asked about where a phrase of this one is in.
    """

    kind: Text
    family: Text
    language: Text
    slot: Slot
    plain: Texts
    negated: Texts
    plain_en: tuple[Text, ...] = ()
    negated_en: tuple[Text, ...] = ()
    present: Texts
    near: tuple[Text, ...] = ()
    mutes: tuple[Text, ...] = ()

    def worded(self, language: str) -> Trait | None:
        """The trait with its wordings in a language, its own or English; None where there are none."""
        if language == self.language:
            return self
        if language != "en" or not self.plain_en or not self.negated_en:
            return None
        return self.model_copy(update={"plain": self.plain_en, "negated": self.negated_en, "language": language})


@dataclass(frozen=True, slots=True)
class Bank:
    """The content of one file."""

    source: str
    topics: tuple[Topic, ...] = ()
    traits: tuple[Trait, ...] = ()
    forms: tuple[Form, ...] = ()


ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class Banks:
    """All texts, or those of one split.

    Attributes:
        topics: in order of their files.
        traits: by language and kind.
        forms: by language and kind.
    """

    topics: tuple[Topic, ...]
    traits: dict[tuple[str, str], Trait]
    forms: dict[tuple[str, str], Form]

    @property
    def fingerprint(self) -> str:
        """Of every text: 16 hex digits."""
        groups = (self.topics, self.traits.values(), self.forms.values())
        return fingerprint([[item.model_dump(mode="json") for item in group] for group in groups])

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that there are topics in, English first."""
        found = {topic.language for topic in self.topics}
        return tuple(sorted(found, key=lambda language: (language != "en", language)))

    def part(self, held_out: bool) -> Banks:
        """The topics and phrases of one side of the split; the wordings of criteria are on both.

        Held out is the fifth with the lowest hashes: of the topics of each language, and of the phrases of each
        kind, at least one where there are two.
        """
        by_language: dict[str, list[Topic]] = {}
        for topic in self.topics:
            by_language.setdefault(topic.language, []).append(topic)
        kept = {
            topic.id
            for topics in by_language.values()
            for topic in _side(topics, [topic.id for topic in topics], held_out)
        }
        return Banks(
            tuple(topic for topic in self.topics if topic.id in kept),
            {key: _cut(trait, held_out) for key, trait in self.traits.items()},
            {key: _cut(form, held_out) for key, form in self.forms.items()},
        )


PhrasedT = TypeVar("PhrasedT", Trait, Form)


def _cut(entry: PhrasedT, held_out: bool) -> PhrasedT:
    return entry.model_copy(
        update={
            "present": _side(entry.present, entry.present, held_out),
            "near": _side(entry.near, entry.near, held_out),
        }
    )


def _side(items: Sequence[ItemT], keys: Sequence[str], held_out: bool) -> tuple[ItemT, ...]:
    """The items of one side of the split. One item alone is on both."""
    if len(items) < 2:
        return tuple(items)
    count = max(1, round(HELD_OUT * len(items)))
    ranked = sorted(range(len(items)), key=lambda index: hashlib.sha256(keys[index].encode()).hexdigest())
    out = set(ranked[:count])
    return tuple(item for index, item in enumerate(items) if (index in out) == held_out)


EntryT = TypeVar("EntryT", Topic, Trait, Form)


def _entries(document: object, name: str, model: type[EntryT], source: str) -> tuple[EntryT, ...]:
    listed = as_array((as_object(document) or {}).get(name, ()))
    if listed is None:
        raise FormatError("expected a list", source=source, field=name)
    return tuple(_entry(item, f"{name}[{index}]", model, source) for index, item in enumerate(listed))


def _entry(value: object, place: str, model: type[EntryT], source: str) -> EntryT:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        fields = as_object(value) or {}
        name = fields.get("id") or fields.get("kind") or "?"
        message = f"{name}: {first['msg'].removeprefix('Value error, ')}"
        raise FormatError(message, source=source, field=f"{place}{path}") from None


def read_bank(source: str, text: str) -> Bank:
    """The bank in a JSON text. Raises FormatError that names the file, the entry and the field."""
    document = parse_json(text, source=source)
    fields = as_object(document)
    if fields is None or not fields or not set(fields) <= {"topics", "traits", "forms"}:
        raise FormatError('expected an object with "topics", "traits" or "forms"', source=source)
    return Bank(
        source,
        _entries(document, "topics", Topic, source),
        _entries(document, "traits", Trait, source),
        _entries(document, "forms", Form, source),
    )


def gather(banks: Iterable[Bank]) -> Banks:
    """All banks as one; a kind has the family that it has in English.

    Raises FormatError where two entries have the same name.
    """
    topics: dict[str, Topic] = {}
    traits: dict[tuple[str, str], Trait] = {}
    forms: dict[tuple[str, str], Form] = {}
    for bank in banks:
        for topic in bank.topics:
            if topics.setdefault(topic.id, topic) is not topic:
                raise FormatError(f"a second topic {topic.id!r}", source=bank.source, hint="rename one of them")
        for trait in bank.traits:
            if traits.setdefault((trait.language, trait.kind), trait) is not trait:
                raise FormatError(f"a second trait {trait.kind!r} in {trait.language}", source=bank.source)
        for form in bank.forms:
            if forms.setdefault((form.language, form.kind), form) is not form:
                raise FormatError(f"a second form {form.kind!r} in {form.language}", source=bank.source)
    for key, trait in traits.items():
        english = traits.get(("en", trait.kind))
        if english is not None and english.family != trait.family:
            traits[key] = trait.model_copy(update={"family": english.family})
    return Banks(tuple(topics.values()), traits, forms)


def _files(folder: Traversable) -> list[Traversable]:
    return sorted((item for item in folder.iterdir() if item.name.endswith(".json")), key=lambda item: item.name)


@lru_cache(maxsize=1)
def _built_in() -> Banks:
    folder = resources.files("rubricate.training.checks") / "banks"
    return gather(read_bank(item.name, item.read_text(encoding="utf-8")) for item in _files(folder))


def load_banks(*folders: str | PathLike[str]) -> Banks:
    """The banks in the JSON files of some folders; without a folder, those that the package ships.

    Raises FormatError for a file that is none, and ConfigError where there are no topics.
    """
    if not folders:
        return _built_in()
    paths = [path for folder in folders for path in sorted(Path(folder).glob("*.json"))]
    banks = gather(read_bank(str(path), path.read_text(encoding="utf-8")) for path in paths)
    if not banks.topics:
        raise ConfigError(
            f"there are no topics in {', '.join(map(str, folders))}",
            hint='a bank is a JSON file such as {"topics": [...]}',
        )
    return banks
