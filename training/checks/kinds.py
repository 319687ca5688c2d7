"""All that may be asked of a draft."""

from __future__ import annotations

import random
from collections.abc import Collection

from rubricate.training.checks.banks import Banks
from rubricate.training.checks.draft import Draft
from rubricate.training.checks.kinds_content import content
from rubricate.training.checks.kinds_style import compounds, traits
from rubricate.training.checks.kinds_task import task
from rubricate.training.checks.known import Known
from rubricate.training.checks.offers import Offer
from rubricate.training.checks.probes import NAMES, PROBES

__all__ = ["COUNTED_KINDS", "UNSEEN_KINDS", "offers"]

COUNTED_KINDS = frozenset(
    {
        "follows_length",
        "list_length",
        "paragraphs_exact",
        "sentences_max",
        "sentences_min",
        "word_count",
        "words_max",
        "words_min",
        "words_range",
    }
)
"""Kinds that are decided by counting, which verifiers do without error and small models badly."""

UNSEEN_KINDS = frozenset(
    {
        "table",
        "postscript",
        "placeholder",
        "mixed_language",
        "order",
        "claims_ai",
        "price",
        "humour",
        "anecdote",
        "definition",
        "professional",
    }
)
"""Kinds that are never asked about in training, nor demanded in a prompt. Each is another criterion than those
trained on: no other kind asks about tables, postscripts, open gaps, changes of language, the order of what is said,
artificial authorship, prices, jokes, stories from the author's life, definitions, or referrals to experts."""


def offers(draft: Draft, banks: Banks, rng: random.Random, kinds: Collection[str]) -> list[Offer]:
    """What may be asked of a draft within some kinds, with the answers; of kinds with arguments, a few.

    A response in another language than English is asked about in English and in its own.
    """
    found: list[Offer] = []
    for language in dict.fromkeys(("en", draft.language)):
        known = Known(draft, banks, language, rng, kinds)
        found += [*_by_code(known), *content(known), *traits(known), *task(known), *compounds(known)]
    return found


def _by_code(known: Known) -> list[Offer]:
    found: list[Offer] = []
    for kind, probe in PROBES.items():
        if kind in known.draft.muted or not known.asks(kind):
            continue
        for probed in probe(known.draft, known.rng):
            fill, parts = dict(probed.fill), ()
            if kind == "in_language":
                names = NAMES.get(known.language, {})
                if fill["code"] not in names:
                    continue
                fill["name"] = names[fill["code"]]
                # Most responses are in the language of their prompt: that alone must not give the answer.
                parts = (f"{known.draft.topic.language} {fill['code']}",)
            # A form that was nearly missed on purpose is the better question.
            weight = 0.5 if known.draft.traits.get(kind) is False else 0.0
            found += known.ask(kind, probed.met, bucket=probed.bucket, fill=fill, weight=weight, parts=parts)
    return found
