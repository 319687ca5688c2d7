"""Records (turns, rollouts, preference pairs), and readers and writers of their files."""

from rubricate.data.io import Row, read_rollouts, read_rows, rollouts_from_row
from rubricate.data.records import Preference, Rollout, Turn, parse_turns
from rubricate.data.writing import write_json, write_jsonl, write_parquet, write_text, write_yaml

__all__ = [
    "Preference",
    "Rollout",
    "Row",
    "Turn",
    "parse_turns",
    "read_rollouts",
    "read_rows",
    "rollouts_from_row",
    "write_json",
    "write_jsonl",
    "write_parquet",
    "write_text",
    "write_yaml",
]
