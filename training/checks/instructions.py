"""Explicit demands in a prompt, made up when the response is there: half of them it follows, half it does not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from rubricate.training.checks.banks import Banks
from rubricate.training.checks.draft import Draft, Instruction
from rubricate.training.checks.known import Known
from rubricate.training.checks.offers import fill_in
from rubricate.training.checks.probes import NAMES, PROBES

__all__ = ["instruct"]

_GROUPS = {
    "length": "length",
    "structure": "format",
    "letter": "format",
    "characters": "wording",
    "lexical": "wording",
    "language": "language",
}


def instruct(
    draft: Draft, banks: Banks, rng: random.Random, level: Counter[tuple[str, str]], *, never: Collection[str] = ()
) -> Draft:
    """The draft with up to three demands added to its prompt, one of each group at most.

    Args:
        level: demands of each kind and language so far that were followed, less those that were not: kept level, so
            that no demand by itself tells whether it is followed.
        never: kinds of form that nothing is demanded about.
    """
    count = rng.choice((0, 0, 0, 1, 1, 1, 2, 2, 3))
    if not count:
        return draft
    found: dict[str, Instruction] = {}
    kinds = [
        kind
        for kind in PROBES
        if kind not in never
        and (form := banks.forms.get((draft.topic.language, kind))) is not None
        and form.instruction
    ]
    rng.shuffle(kinds)
    content = _content(draft, banks, rng) if rng.random() < 0.45 else None
    if content is not None:
        found["content"] = content
    for kind in kinds[: 4 * count]:
        item = _demand(draft, banks, kind, rng, level) if len(found) < count else None
        if item is not None and item.group not in found:
            found[item.group] = item
            level[kind, draft.topic.language] += 1 if item.followed else -1
    items = list(found.values())
    rng.shuffle(items)
    prompt = draft.prompt
    for item in items:
        gap = "\n\n" if "\n" in prompt else " " if prompt[-1] in ".?!:" else ". " if prompt[-1].isalnum() else "\n"
        prompt = f"{prompt}{gap}{item.text}"
    return replace(draft, prompt=prompt, instructions=tuple(items))


def _demand(
    draft: Draft, banks: Banks, kind: str, rng: random.Random, level: Counter[tuple[str, str]]
) -> Instruction | None:
    form = banks.forms[draft.topic.language, kind]
    if kind in draft.muted:
        return None
    uneven = level[kind, draft.topic.language]
    wanted = uneven < 0 if uneven else rng.random() < 0.5
    options = [option for option in PROBES[kind](draft, rng) if option.met == wanted]
    if not options:
        return None
    chosen = rng.choice(options)
    fill = dict(chosen.fill)
    if kind == "in_language":
        names = NAMES.get(draft.topic.language, {})
        if fill["code"] not in names:
            return None
        fill["name"] = names[fill["code"]]
    return Instruction(
        _GROUPS[form.family], fill_in(rng.choice(form.instruction), fill), chosen.met, fill.get("code", "")
    )


def _content(draft: Draft, banks: Banks, rng: random.Random) -> Instruction | None:
    """A demand to mention one or two points."""
    language = draft.topic.language
    form = banks.forms.get((language, "covers"))
    if form is None or not form.instruction or not draft.on_topic:
        return None
    known = Known(draft, banks, language, rng)
    wanted = rng.random() < 0.5
    one = known.true if wanted else known.false
    two = known.true if wanted or rng.random() < 0.5 else known.false
    if not one:
        return None
    other = next((point for point in two if point is not one[0]), None)
    fill = known.fill(a=one[0]) if other is None or rng.random() < 0.4 else known.fill(a=one[0], b=other)
    if "b" in fill:
        parts = [fill["a"], fill["b"]]
        rng.shuffle(parts)
        joint = {"en": " and ", "de": " und ", "fr": " et ", "es": " y "}.get(language)
        if joint is None:
            return None
        fill["a"] = joint.join(parts)
    return Instruction("content", fill_in(rng.choice(form.instruction), fill), wanted)
