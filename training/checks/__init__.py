"""Labelled checks, made by construction: prompts, responses, criteria and whether they are met."""

from rubricate.training.checks.banks import Banks, load_banks
from rubricate.training.checks.kinds import UNSEEN_KINDS
from rubricate.training.checks.sheets import HIDDEN, make_sheets, masked_sheets, sheets_of

__all__ = ["HIDDEN", "UNSEEN_KINDS", "Banks", "load_banks", "make_sheets", "masked_sheets", "sheets_of"]
