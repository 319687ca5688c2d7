"""Citations in a response: numbers in brackets, author and year, links."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from pydantic import Field

from rubricate.judges.verifiers.bounds import AtLeastOne
from rubricate.judges.verifiers.markdown import prose
from rubricate.judges.verifiers.registry import Check, Input, verifier

__all__ = ["CitationsArgs", "find_citations"]

Kind = Literal["numbered", "author_year", "link"]


class CitationsArgs(AtLeastOne):
    """How many different citations there must be, and of which kinds.

    Attributes:
        kinds: `numbered` ([1], [2, 3], [4-6], 【1】, [^1]), `author_year` ((Smith, 2020), (Smith & Doe 2020a;
            Li et al., 2019), Smith et al. (2020)), `link` (a URL, bare or in a Markdown link).
        max_number: the highest number that a numbered citation may have, where the sources are known; a higher
            one is an invented source.
    """

    kinds: tuple[Kind, ...] = Field(default=("numbered", "author_year", "link"), min_length=1)
    max_number: int | None = Field(default=None, ge=1)


_CODE_SPAN = re.compile(r"`[^`\n]*`")
_NUMBERED = re.compile(r"[\[【]\^?(\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,20})[\]】](?!\()")
_URL = re.compile(r"https?://[^\s<>()\[\]{}\"'|、。」]+")
_BRACKET = re.compile(r"[(（]([^()（）\n]{4,300})[)）]")
_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?(?:[,:]\s?(?:pp?\.|S\.)?\s?\d{1,5}(?:[–-]\d{1,5})?)?"
_WHO_WHEN = re.compile(rf"(\S.*?)\s?([,，、]?)\s?({_YEAR})")
_NARRATIVE = re.compile(
    rf"(?<!\w)(\w[\w’'-]{{0,40}}\s(?:et\sal\.?|(?:and|und|&)\s\w[\w’'-]{{0,40}}))\s?[(（]({_YEAR})[)）]"
)
_JOINERS = frozenset(
    {"and", "und", "&", "et", "al", "van", "von", "de", "der", "den", "del", "di", "da", "la", "le"}
)
_PREFIXES = frozenset({"see", "cf", "e.g", "vgl", "siehe", "also", "z.b"})
_MONTHS = frozenset(
    "january february march april may june july august september october november december "
    "januar februar märz mai juni juli oktober dezember spring summer autumn fall winter".split()
)


def find_citations(text: str, kinds: tuple[Kind, ...] = ("numbered", "author_year", "link")) -> set[str]:
    """The different citations of the kinds, outside code: a number as `[1]`, otherwise author and year, or the URL.

    A place and a year in brackets, `(Paris, 2020)`, cannot be told from an author and counts; a single name before
    a bracketed year, `Gladiator (2000)`, does not.
    """
    plain = _CODE_SPAN.sub(" ", "\n".join(prose(text)))
    return {citation for kind in kinds for citation in _FINDERS[kind](plain)}


def _numbered(text: str) -> set[str]:
    return {f"[{number}]" for match in _NUMBERED.finditer(text) for number in _numbers(match[1])}


def _numbers(listed: str) -> set[int]:
    """`2, 4-6` as 2, 4, 5, 6."""
    found: set[int] = set()
    for part in re.split("[,;]", listed):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        found.update(range(ends[0], ends[-1] + 1) if ends[-1] >= ends[0] else ends)
    return found


def _author_year(text: str) -> set[str]:
    found = {f"{match[1]} {match[2]}" for match in _NARRATIVE.finditer(text) if match[1][0].isupper()}
    for bracket in _BRACKET.finditer(text):
        for part in re.split("[;；]", bracket[1]):
            match = _WHO_WHEN.fullmatch(part.strip())
            if match is not None and _is_author(match[1], comma=bool(match[2])):
                found.add(f"{match[1]} {match[3]}")
    return found


def _is_author(who: str, *, comma: bool) -> bool:
    """Whether this may be one or more names: capitals or a script without them, joined as authors are."""
    names = [name.strip(".,，、") for name in who.replace("&", " & ").split()]
    while names and names[0].lower() in _PREFIXES:
        names = names[1:]
    if not names or len(names) > 14 or not (comma or {"&", "and", "und", "al"} & set(names)):
        return False
    if any(name.lower() in _MONTHS for name in names):
        return False
    return names[0] not in _JOINERS and all(name in _JOINERS or _is_name(name) for name in names)


def _is_name(name: str) -> bool:
    return not name or (name[0].isalpha() and not name[0].islower())


def _links(text: str) -> set[str]:
    return {match.group().rstrip(".,;:!?*_") for match in _URL.finditer(text)}


_FINDERS: dict[Kind, Callable[[str], set[str]]] = {
    "numbered": _numbered,
    "author_year": _author_year,
    "link": _links,
}


@verifier("citations", CitationsArgs)
def citations(given: Input, args: CitationsArgs) -> Check:
    """The response cites: at least one different source unless told otherwise. Whether it exists is not checked."""
    found = find_citations(given.response, args.kinds)
    if args.max_number is not None:
        numbers = [int(citation[1:-1]) for citation in found if citation.startswith("[")]
        invented = sorted(number for number in numbers if not 1 <= number <= args.max_number)
        if invented:
            return Check(False, f"there is no source {', '.join(map(str, invented[:5]))}", value=len(found))
    return args.check(len(found), "different citations")
