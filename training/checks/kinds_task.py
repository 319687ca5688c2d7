"""Kinds that compare a response with its prompt or its reference: relevance, completeness, instructions."""

from __future__ import annotations

from rubricate.training.checks.known import Known
from rubricate.training.checks.offers import Offer

__all__ = ["task"]


def task(known: Known) -> list[Offer]:
    """All kinds about the prompt and the reference."""
    return [*_relevance(known), *_reference(known), *_instructions(known)]


def _relevance(known: Known) -> list[Offer]:
    draft = known.draft
    # A response in another language than the prompt may by chance be on the same subject.
    certain = not draft.marks & {"mixed", "other_language"}
    found = known.ask("on_topic", draft.on_topic) if certain else []
    return found + (known.ask("aside", draft.aside) if draft.aside is not None else [])


def _reference(known: Known) -> list[Offer]:
    draft = known.draft
    if draft.reference is None:
        return []
    shared = [name in draft.stated for name in draft.reference_points]
    return [*known.ask("agrees", all(shared)), *known.ask("shares", any(shared))]


def _instructions(known: Known) -> list[Offer]:
    draft = known.draft
    found: list[Offer] = []
    groups: dict[str, bool] = {}
    for item in draft.instructions:
        groups[item.group] = groups.get(item.group, True) and item.followed
    for group, followed in groups.items():
        kind = "covers" if group == "content" else f"follows_{group}"
        details = [item.detail for item in draft.instructions if item.group == group and item.detail]
        found += known.ask(kind, followed, parts=tuple(f"{draft.topic.language} {code}" for code in details))
    if groups and draft.on_topic:
        found += known.ask("follows_all", all(groups.values()))
    return found
