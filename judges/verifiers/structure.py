"""The shape of a response: headings, lists, tables, code blocks, sections."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import Field, field_validator

from rubricate.judges.verifiers.bounds import AtLeastOne, Range
from rubricate.judges.verifiers.codeparse import canonical, fault_in
from rubricate.judges.verifiers.markdown import Item, fences, headings, items, lines_of, prose, tables
from rubricate.judges.verifiers.registry import Check, Input, verifier
from rubricate.judges.verifiers.text import fold, snippet

__all__ = ["CodeArgs", "HeadingsArgs", "ListArgs", "SectionsArgs", "TableArgs"]


class HeadingsArgs(AtLeastOne):
    """How many headings, of which level, with which titles.

    Attributes:
        level: counts only headings of that level (1 to 6).
        titles: titles that must be there, in any order; case, emphasis, a number before and a colon after them
            do not matter.
        bold: a line that is bold as a whole counts as a heading of level 6.
    """

    level: int | None = Field(default=None, ge=1, le=6)
    titles: tuple[str, ...] = ()
    bold: bool = False


_ENUMERATION = re.compile(r"\d{1,3}(?:\.\d{1,3}){0,4}[.):]?\s+")


def _bare_title(title: str) -> str:
    plain = fold(title).strip("*_`#: ：")
    return _ENUMERATION.sub("", plain, count=1) if _ENUMERATION.match(plain) else plain


@verifier("headings", HeadingsArgs)
def check_headings(given: Input, args: HeadingsArgs) -> Check:
    """The response has Markdown headings (`#` or underlined, outside code)."""
    found = [heading for heading in headings(given.response, bold=args.bold) if args.level in (None, heading.level)]
    present = {_bare_title(heading.title) for heading in found}
    missing = [title for title in args.titles if _bare_title(title) not in present]
    if missing:
        return Check(False, f"missing heading {', '.join(map(snippet, missing[:3]))}", value=len(found))
    return args.check(len(found), "headings")


class ListArgs(AtLeastOne):
    """How many list items; with `top_level`, only those of the outermost level count."""

    top_level: bool = False


def _count_items(found: Sequence[Item], top_level: bool) -> int:
    outermost = min((item.indent for item in found), default=0)
    return sum(1 for item in found if not top_level or item.indent == outermost)


@verifier("bullets", ListArgs)
def bullets(given: Input, args: ListArgs) -> Check:
    """The response has bullet points (-, *, +, – and a blank, or • and the like), outside code."""
    found = [item for item in items(given.response) if item.number is None]
    return args.check(_count_items(found, args.top_level), "bullet points")


@verifier("numbered", ListArgs)
def numbered(given: Input, args: ListArgs) -> Check:
    """The response has numbered items: lines with digits, a full stop or bracket, and a blank, outside code."""
    found = [item for item in items(given.response) if item.number is not None]
    return args.check(_count_items(found, args.top_level), "numbered items")


class TableArgs(AtLeastOne):
    """How many tables, and what each that counts must have.

    Attributes:
        min_rows: body rows at least.
        columns: titles that must be in its header; case and emphasis do not matter.
    """

    min_rows: int = Field(default=1, ge=0)
    columns: tuple[str, ...] = ()


@verifier("table", TableArgs)
def table(given: Input, args: TableArgs) -> Check:
    """The response has a Markdown table, outside code."""
    found = tables(given.response)
    wanted = {_bare_title(column) for column in args.columns}
    good = [
        one
        for one in found
        if len(one.rows) >= args.min_rows and wanted <= {_bare_title(cell) for cell in one.header}
    ]
    check = args.check(len(good), "tables")
    if len(good) == len(found):
        return check
    return Check(check.met, f"{check.reason}; {len(found) - len(good)} more lack rows or columns", value=len(good))


class CodeArgs(AtLeastOne):
    """How many fenced code blocks, in which language, and whether they must parse.

    Attributes:
        language: counts only blocks with that language on their fence (`py` and `python` are the same).
        parse: blocks in Python, JSON, JSON Lines, TOML and YAML must parse. Blocks in other languages, and those
            without one, are only checked for their closing fence.
    """

    language: str | None = Field(default=None, min_length=1)
    parse: bool = True


@verifier("code", CodeArgs)
def code(given: Input, args: CodeArgs) -> Check:
    """The response has fenced code blocks; all fences are closed, and the code parses where a parser is at hand."""
    found = fences(given.response)
    if any(not fence.closed for fence in found):
        return Check(False, "a code fence is not closed")
    if args.language is not None:
        found = [fence for fence in found if canonical(fence.language) == canonical(args.language)]
    for number, fence in enumerate(found, start=1):
        fault = fault_in(fence.language, fence.body) if args.parse else None
        if fault is not None:
            return Check(False, f"code block {number} ({fence.language}): {fault}", value=len(found))
    return args.check(len(found), f"{args.language or 'code'} blocks")


class SectionsArgs(Range):
    """How many sections, and the divider that stands alone on its line between them."""

    divider: str = Field(default="***", min_length=1)

    @field_validator("divider")
    @classmethod
    def _one_line(cls, value: str) -> str:
        if not value.strip() or len(lines_of(value.strip())) > 1:
            raise ValueError("must be one line of text")
        return value.strip()


@verifier("sections", SectionsArgs)
def sections(given: Input, args: SectionsArgs) -> Check:
    """The number of sections between dividers. Blank ones do not count, nor a divider inside a line or in code."""
    count, filled = 0, False
    for line, plain in zip(
        [*lines_of(given.response), args.divider], [*prose(given.response), args.divider], strict=True
    ):
        if plain.strip() == args.divider:
            count += filled
            filled = False
        elif line.strip():
            filled = True
    return args.check(count, "sections")
