"""Fences around untrusted text, as judges use them. They live in `rubricate.prompts.fence`."""

from rubricate.prompts.fence import fence, make_nonce, unfence

__all__ = ["fence", "make_nonce", "unfence"]
