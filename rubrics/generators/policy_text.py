"""Written policies (constitutions, specifications) as clauses with ids: Markdown, plain text, YAML and JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rubricate.data.io import Value, file_kind, read_values
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.types import fingerprint

__all__ = ["Clause", "Policy", "parse_policy", "policy_from_value", "read_policy"]

_LISTS = ("clauses", "principles", "rules", "constitution", "policies", "policy")
_TEXTS = ("text", "clause", "principle", "rule", "prompt", "description", "content")
_NAMES = ("id", "name", "label", "number")

_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_UNDERLINE = re.compile(r"\s{0,3}(=+|-{3,})\s*$")
_ITEM = re.compile(r"(\s*)(?:[-*+•]|\(?(?:\d+(?:\.\d+)*|[a-zA-Z]|[ivx]+)[.)])\s+(?=\S)")
_FENCE = re.compile(r"\s*(```|~~~)")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULER = re.compile(r"[\s|:+=*_-]+$")
_ANCHOR = re.compile(r"\s*\{#([\w.-]+)\}\s*$")
_LABEL = re.compile(
    r"\s*(?:[-*+•]\s+)?(?:\[([\w.:-]{1,20})\](?!\()|((?:Article|Rule|Principle|Section|Clause|§)\s*\d[\w.]*?)(?=[\s:.)]|$)"
    r"|\(?(\d+(?:\.\d+)+)[.)]?(?=\s))",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a policy.

    Attributes:
        id: unique in its policy: its own label (`Article 3`, `2.1`, `[R-4]`, `{#anchor}`), else the number of its
            section and its own in it.
        text: its words, as they stand in the source.
        heading: titles of the sections it is in, outermost first.
        lead: the words that introduce the list it is an item of.
        line: where it begins in the source, from 1; None where the source has no lines.
    """

    id: str
    text: str
    heading: tuple[str, ...] = ()
    lead: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Policy:
    """A policy as its clauses, in order. Raises FormatError where there is none, or two have one id."""

    clauses: tuple[Clause, ...]
    name: str = ""
    _by_id: dict[str, Clause] = field(default_factory=dict[str, Clause], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.clauses:
            raise FormatError(
                "the policy has no clause", source=self.name, hint="write a paragraph or list item each"
            )
        for clause in self.clauses:
            if self._by_id.setdefault(clause.id, clause) is not clause:
                raise FormatError(f"two clauses have the id {clause.id!r}", source=self.name, line=clause.line)

    @property
    def fingerprint(self) -> str:
        """Of the clauses' ids and texts."""
        return fingerprint([[one.id, one.text, one.lead, list(one.heading)] for one in self.clauses])

    def get(self, clause_id: str) -> Clause | None:
        """The clause of that id, blanks and case apart; None where there is none."""
        wanted = clause_id.strip()
        return self._by_id.get(wanted) or self._loose().get(_folded(wanted))

    def _loose(self) -> dict[str, Clause]:
        return {_folded(one.id): one for one in self.clauses}


def _folded(name: str) -> str:
    return " ".join(name.casefold().strip("[]() .").split())


def read_policy(path: str | os.PathLike[str]) -> Policy:
    """The policy in a file: Markdown or text (`.md`, `.txt`), YAML or JSON.

    Raises FormatError for a file that holds no clauses or cannot be read.
    """
    kind, source = file_kind(path), os.fspath(path)
    values = list(read_values(path))
    if kind in ("jsonl", "csv", "tsv", "parquet"):
        return policy_from_value([value.value for value in values], name=source)
    first: Value = values[0]
    if isinstance(first.value, str):
        return parse_policy(first.value, name=source)
    return policy_from_value(first.value, name=source)


def policy_from_value(value: object, *, name: str = "") -> Policy:
    """The policy that a value from YAML or JSON is.

    A list of texts or of objects (`id`, `text`, ...), an object with such a list (`clauses`, `principles`, ...), or
    an object of texts by id. The definitions of Rule-Based Rewards (2411.01111) are one, too: a clause for each
    simple proposition, named as it is, and one for each completion class and response type, `ideal/comply`.

    Raises FormatError for anything else.
    """
    record = as_object(value)
    if record is not None and "simple_propositions" in record:
        return Policy(tuple(_propositions(record, name)), name)
    listed = as_array(value)
    if record is not None:
        held = next((as_array(record[key]) for key in _LISTS if as_array(record.get(key)) is not None), None)
        listed = held if held is not None else [{"id": key, "text": text} for key, text in record.items()]
    if listed is None:
        raise FormatError(f"expected a list of clauses, got {type(value).__name__}", source=name)
    return Policy(tuple(_listed(listed, name)), name)


def _listed(listed: Sequence[object], name: str) -> Iterator[Clause]:
    for place, item in enumerate(listed):
        fields = as_object(item) or {"text": item}
        said = next((fields[key] for key in _TEXTS if key in fields), None)
        if not isinstance(said, str) or not said.strip():
            raise FormatError("expected the text of a clause", source=name, field=f"[{place}]")
        own = next((str(fields[key]) for key in _NAMES if fields.get(key) not in (None, "")), str(place + 1))
        title = fields.get("title")
        yield Clause(own, said.strip(), (title,) if isinstance(title, str) and title.strip() else ())


def _propositions(record: Mapping[str, object], name: str) -> Iterator[Clause]:
    for key, entry in (as_object(record.get("simple_propositions")) or {}).items():
        said = (as_object(entry) or {}).get("prompt")
        if not isinstance(said, str) or not said.strip():
            raise FormatError("expected a prompt", source=name, field=f"simple_propositions.{key}.prompt")
        yield Clause(key, said.strip(), ("simple propositions",))
    for key, entry in (as_object(record.get("derived_propositions")) or {}).items():
        yield Clause(key, f"{key} means: {_rule(entry)}", ("derived propositions",))
    for key, kinds in (as_object(record.get("completion_classes")) or {}).items():
        for kind, rule in (as_object(kinds) or {}).items():
            said = f"{key}, where the response type is {kind}: {_rule(rule)}"
            yield Clause(f"{key}/{kind}", said, ("completion classes", key))


def _rule(value: object) -> str:
    fields = as_object(value) or {}
    return ", ".join(f"{part} is {'true' if wanted else 'false'}" for part, wanted in fields.items())


@dataclass(slots=True)
class _Block:
    """Lines that belong together."""

    line: int
    lines: list[str]
    indent: int = -1
    item: bool = False


def parse_policy(text: str, *, name: str = "") -> Policy:
    """The clauses of Markdown or plain text: every paragraph, list item and table row that is no introduction.

    Words that end with a colon before list items are not a clause of their own, but what introduces these.
    Headings, front matter and comments are no clauses; code stays with the paragraph before it.
    """
    clauses: list[Clause] = []
    headings: list[tuple[int, str, str]] = []  # level, number, title
    counts: dict[str, int] = {}
    leads: list[tuple[int, str]] = []
    blocks = list(_blocks(text))
    for place, block in enumerate(blocks):
        heading = _HEADING.match(block.lines[0])
        if heading is not None:
            _enter(headings, counts, len(heading[1]), heading[2])
            leads = []
            continue
        said = "\n".join(block.lines).strip()
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        leads = [lead for lead in leads if block.item and lead[0] < block.indent]
        if said.endswith(":") and following is not None and following.item and following.indent > block.indent:
            leads.append((block.indent, _bare(said)))
            continue
        section = headings[-1][1] if headings else ""
        counts[section] = counts.get(section, 0) + 1
        made = f"{section}.{counts[section]}" if section else str(counts[section])
        own, said = _labelled(said)
        taken = {one.id for one in clauses}
        name_ = next(one for one in (own or made, f"{own} ({made})", f"{made}#{block.line}") if one not in taken)
        titles = tuple(title for _, _, title in headings)
        clauses.append(Clause(name_, _bare(said), titles, " ".join(lead for _, lead in leads), block.line))
    return Policy(tuple(clauses), name)


def _enter(headings: list[tuple[int, str, str]], counts: dict[str, int], level: int, title: str) -> None:
    while headings and headings[-1][0] >= level:
        headings.pop()
    anchor = _ANCHOR.search(title)
    numbered = re.match(r"(\d+(?:\.\d+)*)[.)]?\s+", title)
    above = headings[-1][1] if headings else ""
    key = f"{above}/sections"
    counts[key] = counts.get(key, 0) + 1
    made = f"{above}.s{counts[key]}" if above else f"s{counts[key]}"
    number = anchor[1] if anchor else numbered[1] if numbered else made
    headings.append((level, number, _ANCHOR.sub("", title)))


def _labelled(text: str) -> tuple[str, str]:
    """The label that a clause bears, and its text without an anchor."""
    anchor = _ANCHOR.search(text)
    if anchor is not None:
        return anchor[1], text[: anchor.start()]
    label = _LABEL.match(text)
    return (next(part for part in label.groups() if part) if label else ""), text


def _bare(text: str) -> str:
    """Without the mark of a list item and the bars of a table's row."""
    item = _ITEM.match(text)
    said = text[item.end() :] if item is not None else text
    return said.strip(" \n|") if _ROW.match(said) else said.strip()


def _blocks(text: str) -> Iterator[_Block]:
    """Headings (as `# title`), paragraphs, list items and table rows, with the line they begin in."""
    lines = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.S).splitlines()
    start = next((at + 1 for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
    start = start if lines and lines[0].strip() == "---" else 0
    block: _Block | None = None
    code = False
    for number, raw in enumerate(lines[start:], start=start + 1):
        line = re.sub(r"^\s{0,3}>\s?", "", raw)
        if code or (_FENCE.match(line) and block is not None):
            code = not code if _FENCE.match(line) else code
            if block is not None:
                block.lines.append(line)
            continue
        item = _ITEM.match(line)
        heading = _HEADING.match(line)
        underlined = block is not None and len(block.lines) == 1 and not block.item and _UNDERLINE.match(line)
        if block is not None and underlined:
            level = 1 if line.strip().startswith("=") else 2
            yield _Block(block.line, [f"{'#' * level} {block.lines[0].strip()}"])
            block = None
        elif not line.strip() or _RULER.match(line):
            if block is not None:
                yield block
            block = None
        elif heading or item or _ROW.match(line):
            if block is not None:
                yield block
            indent = len(item[1].expandtabs(4)) if item is not None else -1
            block = _Block(number, [line], indent, item is not None)
            if heading is not None:
                yield block
                block = None
        elif block is None:
            block = _Block(number, [line])
        else:
            block.lines.append(line)
    if block is not None:
        yield block
