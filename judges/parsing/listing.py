"""Entries about several criteria in plain text: tables, YAML-like blocks, lines of "id: verdict", sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rubricate.judges.parsing import cues
from rubricate.judges.parsing.entries import ID_KEYS, INDEX_KEYS, NAME_KEYS, Entry, Ids, Keys
from rubricate.judges.parsing.fields import Field, fold_key
from rubricate.judges.parsing.marks import Standing
from rubricate.judges.parsing.text import fold, mask_quotes

__all__ = ["entries_in_text"]

_SEPARATOR_ROW = re.compile(r"^[\s|:+-]*-[\s|:+-]*$")
_ELEMENT = re.compile(
    r"<(?:criterion|item|verdict|rubric|entry|result)\s[^<>]{0,80}?(?:id|name"
    r"|criterion)\s?=\s?[\"']([^\"'<>]{1,80})[\"'][^<>]{0,80}>",
    re.I,
)
_TAG = re.compile(r"<(/?)([\w-]{1,40})>")
_BULLET = re.compile(r"^\s*(?:[-*+•‣◦]\s+|\(?\d{1,3}[.)]\s+)?")
_ITEM = re.compile(r"^\s*(?:[-*+•‣◦]|\(?\d{1,3}[.)])\s+")
_KEYED = re.compile(r"^(?P<key>[^\s:=|][^:=|]{0,60}?)\s*[:=]\s*(?P<value>.*)$")
_SIGN = re.compile(r"^(?:\[(?P<box>[xX✓✔ ])\]|(?P<sign>[✓✔✅☑✗✘❌✖×❎]))\s*(?P<rest>.+)$")
_NUMBERED = re.compile(
    r"^\W{0,20}(?:criterion|criteria|item|kriterium|no\.?|nr\.?|q|c|#)?\s*#?(?P<index>\d{1,3})\s*(?:[.):=]|-|–|—"
    r"|→)+\s*(?P<value>\S.*)$",
    re.I,
)
_AFTER_ID = re.compile(
    r"^[\])}]+[\"'`*]*\s+(?=\w|[✓✔✅☑✗✘❌✖])"
    r"|^[\s\])}\"'`*>]*(?:\([^()]{0,80}\)\s*)?(?:[:=|→]+>?|-+>?|–|—|\bis\b|(?=$))\s*[\[({\"'*]*"
)
_CLOSES = re.compile(
    r"^\W{0,20}(?:overall|summary|total|in (?:total|summary|conclusion)|conclusion|fazit|gesamt|综合|総合|总)", re.I
)
_REASON_KEYS = set(
    "reason reasons reasoning explanation justification rationale comment note notes analysis evidence "
    "begründung".split()
)


class _Lines:
    """Collects entries line by line."""

    def __init__(self, ids: Ids, keys: Keys, is_value: Callable[[str], bool]) -> None:
        self.ids = ids
        self.value_keys = {fold_key(key) for key in (keys.value, *keys.aliases)}
        self.is_value = is_value
        self.found: list[Entry] = []
        self.current: Entry | None = None
        names = sorted(ids.spellings, key=len, reverse=True)
        spaced = [
            re.escape(name).replace("_", "[_ -]").replace(r"\ ", "[_ -]").replace(r"\-", "[_ -]") for name in names
        ]
        self._id = re.compile(
            rf"^[\[({{\"'`<*]{{0,8}}(?:(?:criterion|criteria|kriterium|item"
            rf"|id)\b[\s#:]{{0,8}})?[\[(\"'`*]{{0,8}}(?P<id>{'|'.join(spaced)})(?!\w)",
            re.I,
        )

        self._inline = re.compile(rf"([,;.])[ ]+(?=(?:{'|'.join(spaced)})(?: ?[:=]| is\b| -))", re.I)

    def flush(self) -> None:
        """Close the current entry."""
        if self.current is not None:
            self.found.append(self.current)
        self.current = None

    def spread(self, text: str) -> str:
        """Each entry on a line of its own: elements of markup, and several entries on one line."""
        if "<" in text:
            text = _TAG.sub(self._untag, _ELEMENT.sub(r"\n\1:\n", text))
        return self._inline.sub(r"\1\n", text)

    def _untag(self, match: re.Match[str]) -> str:
        name = match.group(2)
        if match.group(1):
            return "\n"
        return f"\n{name}: " if fold_key(name) in self.value_keys or self.ids.owner(name) else "\n"

    def take(self, line: str) -> None:
        """Read one line."""
        bare = _BULLET.sub("", line).strip()
        if not bare:
            return
        cue = cues.CORRECTS.match(bare)
        if cue is not None and self._correction(bare[cue.end() :].lstrip(" ,:;.-*")):
            return
        if _CLOSES.match(bare) and self.ids.owner(bare) is None:
            self.flush()
            return
        if self._signed(bare) or self._keyed(line, bare) or self._named(bare) or self._by_number(line.strip()):
            return
        if self.current is not None:
            self.current.section += f"{bare}\n"

    def _correction(self, said: str) -> bool:
        """A line that announces a correction: it replaces the verdict, or leaves it in doubt."""
        before = len(self.found)
        named = self._id.match(said) if said else None
        if named is not None and self._named(said) and len(self.found) > before:
            self.found[-1].corrects = True
            return True
        return False

    def _signed(self, bare: str) -> bool:
        match = _SIGN.match(bare)
        if match is None:
            return False
        named = self._id.match(match["rest"])
        if named is None or not _AFTER_ID.match(match["rest"][named.end() :]):
            return False
        self.flush()
        value = match["sign"] or ("✓" if match["box"].strip() else "✗")
        self.found.append(_entry(named["id"], value))
        return True

    def _keyed(self, line: str, bare: str) -> bool:
        """A line of a YAML-like block: `- id: hook`, `verdict: met`."""
        match = _KEYED.match(bare)
        if match is None:
            return False
        key, value = fold_key(match["key"]), match["value"].strip().strip("\"'")
        if key in ID_KEYS | NAME_KEYS | INDEX_KEYS and value:
            self._identify(key, value, new=_ITEM.match(line) is not None)
            return True
        if key in self.value_keys and self.ids.owner(match["key"]) is None:
            if _ITEM.match(line) and self.current is not None and self.current.fields:
                self.flush()
            self.current = self.current or Entry()
            self.current.fields.append(Field(match["key"], match["value"].strip(), Standing.PLAIN, False, True))
            return True
        if key in _REASON_KEYS and self.current is not None:
            self.current.reason = self.current.reason or value
            return True
        return False

    def _identify(self, key: str, value: str, *, new: bool) -> None:
        entry = self.current
        if entry is None or new or (entry.id or entry.name or entry.index is not None):
            same = entry is not None and not new and not entry.fields
            if not same or (key in ID_KEYS and entry is not None and entry.id):
                self.flush()
                self.current = Entry()
        entry = self.current
        assert entry is not None
        if key in INDEX_KEYS and value.isdecimal():
            entry.index = int(value)
        elif key in NAME_KEYS:
            entry.name = value
        else:
            entry.id = value
            entry.index = int(value) if value.isdecimal() else entry.index

    def _named(self, bare: str) -> bool:
        """A line that begins with an identifier: with its verdict behind it, or opening a section."""
        match = self._id.match(bare)
        if match is None:
            return False
        after = _AFTER_ID.match(bare[match.end() :])
        if after is None:
            after = re.match(r" ?,? ?", bare[match.end() :])
            if after is None or not after.group() or not self.is_value(bare[match.end() + after.end() :]):
                return False
        rest = bare[match.end() + after.end() :]
        self.flush()
        if rest and self.is_value(rest):
            entry = _entry(match["id"], rest)
            entry.section = ""
            self.found.append(entry)
        else:
            self.current = Entry(id=match["id"], section=f"{rest}\n" if rest else "")
        return True

    def _by_number(self, bare: str) -> bool:
        match = _NUMBERED.match(bare)
        if match is None or not self.is_value(match["value"]):
            return self._unknown(bare)
        self.flush()
        entry = _entry("", match["value"])
        entry.id, entry.index = None, int(match["index"])
        self.found.append(entry)
        return True

    def _unknown(self, bare: str) -> bool:
        """A line that gives a verdict on something nobody asked for."""
        match = _KEYED.match(bare)
        if (
            match is None
            or not self.is_value(match["value"])
            or not re.fullmatch(r"[\w-]{2,40}", match["key"].strip("*`\"' "))
        ):
            return False
        if self.current is not None and not self.current.fields:
            return False
        self.flush()
        self.found.append(_entry(match["key"].strip("*`\"' "), match["value"]))
        return True


def _entry(name: str, value: str) -> Entry:
    return Entry(id=name, fields=[Field(name, value, Standing.PLAIN, False, True)])


def entries_in_text(text: str, ids: Ids, keys: Keys, is_value: Callable[[str], bool], part: int = 0) -> list[Entry]:
    """The entries of a passage.

    Args:
        text: plain text.
        ids: the identifiers asked for.
        keys: names of the fields.
        is_value: whether a text reads as a verdict or score.
        part: part of the reply.
    """
    collector = _Lines(ids, keys, is_value)
    text = collector.spread(mask_quotes(text, lambda inner: "\n" not in inner))
    table: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.count("|") >= 2:
            table.append(line)
            continue
        if table:
            collector.flush()
            collector.found += _table_entries(table, ids, collector.value_keys, is_value)
            table = []
        collector.take(line)
    collector.flush()
    for entry in collector.found:
        entry.part = part
    return collector.found


def _table_entries(
    rows: Sequence[str], ids: Ids, value_keys: set[str], is_value: Callable[[str], bool]
) -> list[Entry]:
    cells = [
        [cell.strip() for cell in row.strip().strip("|").split("|")]
        for row in rows
        if not _SEPARATOR_ROW.match(row)
    ]
    header = [fold_key(cell) for cell in cells[0]] if len(rows) > 1 and _SEPARATOR_ROW.match(rows[1]) else []
    column = next((place for place, name in enumerate(header) if name in value_keys), None)
    owner_column = next((place for place, name in enumerate(header) if name in ID_KEYS | NAME_KEYS), None)
    found: list[Entry] = []
    for row in cells[1:] if header else cells:
        named = [place for place, cell in enumerate(row) if ids.owner(cell) is not None and cell]
        if owner_column is not None and owner_column < len(row):
            named = [owner_column]
        values = [place for place, cell in enumerate(row) if place not in named and is_value(cell)]
        if column is not None and column < len(row):
            values = [column]
        if len(named) != 1 or len(values) != 1:
            continue
        entry = _entry(row[named[0]], row[values[0]])
        rest = [
            cell
            for place, cell in enumerate(row)
            if place not in (named[0], values[0]) and not fold(cell).isdigit()
        ]
        entry.reason = " ".join(rest).strip()
        found.append(entry)
    return found
