"""Splitting rows by their prompt, so that a row's part depends on its prompt alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from rubricate.data.hygiene_text import canonical, tokens_of
from rubricate.data.records import Turn
from rubricate.data.turns import prompt_of
from rubricate.errors import ConfigError

__all__ = ["check_shares", "split_of"]


def split_of(
    prompt: str | tuple[Turn, ...], shares: Mapping[str, float] | None = None, *, seed: int | str = 0
) -> str:
    """The part that a prompt belongs to.

    By a hash of the prompt's words and symbols: letter case, punctuation and white space make no difference, all
    rows of a prompt get one part, adding or reordering rows moves none, and every machine agrees. Near duplicates
    can fall into different parts: take them out first.

    Args:
        prompt: text, or turns.
        shares: part to share, in order, of sum 1; train .9 and test .1 unless given. When shares change, only
            prompts between an old and a new boundary move.
        seed: another one splits otherwise.

    Raises ConfigError for shares that are no shares.
    """
    parts = {"train": 0.9, "test": 0.1} if shares is None else shares
    check_shares(parts)
    text = prompt_of(prompt)
    key = " ".join(tokens_of(text)) or canonical(text)
    digest = hashlib.blake2b(f"{seed}\0{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    drawn = int.from_bytes(digest, "big") / 2**64
    bound = 0.0
    for name, share in parts.items():
        bound += share
        if drawn < bound:
            return name
    return [name for name, share in parts.items() if share > 0.0][-1]  # bounds add up to 1 but for rounding


def check_shares(shares: Mapping[str, float]) -> None:
    """Raises ConfigError for shares below 0 or of another sum than 1, and for none."""
    total = sum(shares.values())
    if not shares or any(share < 0.0 for share in shares.values()) or abs(total - 1.0) > 1e-9:
        raise ConfigError(f"the shares {dict(shares)} are not at least 0 with a sum of 1")
