"""What may be asked of a draft: an offer is a criterion still to be worded, and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rubricate.training.checks.banks import Form, Trait

__all__ = ["Offer", "clause", "fill_in", "two_forms"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A question that can be asked of a draft.

    Attributes:
        family, kind: as in the criterion's tags.
        form: `plain` or `negated`.
        texts: wordings, with places to fill.
        met: the answer.
        key: what it is about; nothing is asked twice of one draft.
        bucket: size of an argument, within which both answers are asked equally often.
        fill: what the places are filled with.
        weight: how much it is wanted beside others of its kind.
        language: of the wordings.
        parts: names of what the criterion speaks of; of each, both answers are asked equally often too.
    """

    family: str
    kind: str
    form: str
    texts: Sequence[str]
    met: bool
    key: str
    bucket: str = ""
    fill: Mapping[str, str] = field(default_factory=dict[str, str])
    weight: float = 0.0
    language: str = "en"
    parts: tuple[str, ...] = ()


def two_forms(
    form: Form | Trait,
    met: bool,
    *,
    key: str = "",
    bucket: str = "",
    fill: Mapping[str, str] | None = None,
    weight: float = 0.0,
    parts: tuple[str, ...] = (),
) -> list[Offer]:
    """The plain offer of a kind and, where it has such wordings, the negated one."""
    found: list[Offer] = []
    for name, texts, answer in (("plain", form.plain, met), ("negated", form.negated, not met)):
        if texts:
            found.append(
                Offer(
                    form.family,
                    form.kind,
                    name,
                    texts,
                    answer,
                    key or form.kind,
                    bucket,
                    fill or {},
                    weight,
                    form.language,
                    parts,
                )
            )
    return found


def fill_in(text: str, fill: Mapping[str, str]) -> str:
    """A wording with its places filled; a place in capitals, such as `{A}`, takes its value capitalised."""
    for name, value in fill.items():
        text = text.replace("{" + name + "}", value)
        text = text.replace("{" + name[:1].upper() + name[1:] + "}", value[:1].upper() + value[1:])
    return text


def clause(text: str, subject: str = "The response ") -> str | None:
    """The part after `The response` of a wording that is one such sentence, else None."""
    if not text.startswith(subject) or "{" in text or ", " in text or ";" in text:
        return None
    return text.removeprefix(subject).rstrip(".")


def clauses(entry: Trait | Form, negated: bool) -> list[str]:
    """The verb phrases of an entry's English wordings."""
    texts = entry.negated if negated else entry.plain
    return [found for text in texts if (found := clause(text)) is not None]
