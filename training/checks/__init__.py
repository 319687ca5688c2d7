"""Labelled checks, made by construction: prompts, responses, criteria and whether they are met."""

from rubricate.training.checks.banks import Banks, load_banks
from rubricate.training.checks.kinds import COUNTED_KINDS, UNSEEN_KINDS
from rubricate.training.checks.pairs import Pair, make_pairs
from rubricate.training.checks.rows import sheet_record, write_sheets
from rubricate.training.checks.sheets import HIDDEN, make_sheets, masked_sheets, sheets_of

__all__ = [
    "COUNTED_KINDS",
    "HIDDEN",
    "UNSEEN_KINDS",
    "Banks",
    "Pair",
    "load_banks",
    "make_pairs",
    "make_sheets",
    "masked_sheets",
    "sheet_record",
    "sheets_of",
    "write_sheets",
]
