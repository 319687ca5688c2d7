"""The rule about what rubrics say to the linter itself (family L)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from rubricate.narrow import as_array, as_object
from rubricate.rubrics.linting.base import Found, Subject, rule, rules, suppresses

__all__: list[str] = []


@rule("L901", "unknown-ignore")
def unknown_ignore(subject: Subject) -> Iterator[Found]:
    """The metadata's `{"lint": {"ignore": [...]}}` names a rule that there is not, or is written in another way.

    It switches nothing off: what was meant to be left out is reported, or was never there.

    Fix: write codes (`C501`), beginnings of codes (`C5`) or names (`compound`), in a list.
    """
    yield from _faults(subject.rubric.metadata, ())
    for node in (*subject.rubric.groups, *subject.criteria):
        yield from _faults(node.metadata, (node.id,))


def _faults(metadata: Mapping[str, object], ids: tuple[str, ...]) -> Iterator[Found]:
    settings = as_object(metadata.get("lint"))
    if settings is None:
        return
    for name in settings:
        if name != "ignore" and difflib.get_close_matches(name.lower(), ["ignore"], cutoff=0.7):
            yield Found(ids, f"the linter knows no setting {name!r}", "its one setting is 'ignore'")
    if "ignore" not in settings:
        return
    given = settings["ignore"]
    entries = [given] if isinstance(given, str) else as_array(given)
    if entries is None:
        yield Found(ids, f"what lint.ignore holds is no list of codes but {_shown(given)}", 'as in ["C501"]')
        return
    for entry in entries:
        if not isinstance(entry, str):
            yield Found(ids, f"lint.ignore holds {_shown(entry)}, which is no code", 'as in ["C501"]')
        elif not any(suppresses([entry], one) for one in rules()):
            yield Found(ids, f"lint.ignore names a rule that there is not, {_shown(entry)}", _advice(entry))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _advice(entry: str) -> str:
    names = [name for one in rules() for name in (one.code, one.name)]
    near = difflib.get_close_matches(entry.strip(), names, n=1) or difflib.get_close_matches(
        entry.strip().upper(), names, n=1
    )
    if "," in entry:
        return "write each code as a text of its own in the list"
    return f"write {near[0]!r}, or remove it" if near else "remove it; the codes are those of rules()"
