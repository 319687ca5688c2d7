"""What `rubricate score` writes for a response, and how it is read again."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from rubricate.data.io import atomic, write_jsonl
from rubricate.data.records import Rollout, Turn
from rubricate.errors import FormatError, MissingExtraError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.types import (
    Failure,
    FailureCause,
    FailureKind,
    Reward,
    RewardStatus,
    Status,
    Usage,
    Verdict,
    fingerprint,
)

__all__ = ["as_text", "journal_record", "parse_reward", "reward_record", "row_key", "write_records"]

BATCH = 1000


def row_key(rollout: Rollout, rubric_fingerprint: str) -> str:
    """Identifies a response by its id and by everything that a judge may see of it: 16 hex digits."""
    return fingerprint(
        [
            rollout.id,
            _plain(rollout.prompt),
            _plain(rollout.response),
            rollout.reference,
            rollout.finish,
            rubric_fingerprint,
        ]
    )


def _plain(text: str | tuple[Turn, ...]) -> object:
    if isinstance(text, str):
        return text
    return [
        [turn.role, turn.content, turn.reasoning, [list(call) for call in turn.tool_calls], turn.name]
        for turn in text
    ]


def as_text(text: str | tuple[Turn, ...]) -> str:
    """A prompt or response for people to read: turns with their roles."""
    if isinstance(text, str):
        return text
    return "\n\n".join(f"[{turn.role}] {turn.content}".rstrip() for turn in text)


def reward_record(rollout: Rollout, line: int, reward: Reward) -> dict[str, Any]:
    """The output record of a response: its id, its line in the input, and every field of `Reward` but the latency,
    so that the same answers give the same bytes."""
    record = journal_record(rollout, line, reward)
    del record["latency"]
    return record


def journal_record(rollout: Rollout, line: int, reward: Reward) -> dict[str, Any]:
    """The record that a journal keeps of a response: the output record, with the latency."""
    return {"id": rollout.id, "line": line, **reward.to_dict()}


def parse_reward(record: Mapping[str, object]) -> Reward:
    """The reward in an output record. Raises FormatError for a record that `rubricate score` did not write."""
    try:
        bounds = as_array(record.get("bounds"))
        channels = as_object(record.get("channels")) or {}
        return Reward(
            value=as_number(record.get("value")),
            status=RewardStatus(str(record.get("status"))),
            channels={name: as_number(value) for name, value in channels.items()},
            coverage=as_number(record.get("coverage")) or 0.0,
            bounds=_pair(bounds),
            vetoed_by=tuple(str(name) for name in as_array(record.get("vetoed_by")) or ()),
            verdicts=tuple(_verdict(item) for item in as_array(record.get("verdicts")) or ()),
            overall=_verdict(record["overall"]) if record.get("overall") is not None else None,
            failure=_failure(record.get("failure")),
            rubric_fingerprint=str(record.get("rubric_fingerprint") or ""),
            rubric_version=str(record.get("rubric_version") or ""),
            judge_fingerprint=str(record.get("judge_fingerprint") or ""),
            usage=_usage(record.get("usage")),
            latency=as_number(record.get("latency")) or 0.0,
        )
    except ValueError as error:
        raise FormatError(f"not a record of a reward: {error}", hint="see `rubricate score --help`") from None


def _pair(value: object) -> tuple[float, float] | None:
    listed = as_array(value) or ()
    numbers = [number for item in listed if (number := as_number(item)) is not None]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _verdict(value: object) -> Verdict:
    fields = as_object(value) or {}
    raw = fields.get("raw")
    return Verdict(
        criterion_id=str(fields.get("criterion_id") or ""),
        score=as_number(fields.get("score")),
        status=Status(str(fields.get("status"))),
        probability=as_number(fields.get("probability")),
        raw=raw if isinstance(raw, str) else as_number(raw),
        reason=str(fields.get("reason") or ""),
        failure=_failure(fields.get("failure")),
        judge=str(fields.get("judge") or ""),
        spread=as_number(fields.get("spread")),
    )


def _failure(value: object) -> Failure | None:
    fields = as_object(value)
    if fields is None:
        return None
    return Failure(
        kind=FailureKind(str(fields.get("kind"))),
        cause=FailureCause(str(fields.get("cause"))),
        message=str(fields.get("message") or ""),
        retryable=fields.get("retryable") is True,
    )


def _usage(value: object) -> Usage:
    fields = as_object(value) or {}

    def whole(name: str) -> int:
        return int(as_number(fields.get(name)) or 0)

    return Usage(
        whole("calls"),
        whole("prompt_tokens"),
        whole("completion_tokens"),
        whole("cached_tokens"),
        as_number(fields.get("cost")) or 0.0,
    )


def write_records(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    """Write records to a .parquet file, or else as JSON Lines; in one step, a batch in memory at a time."""
    if path.suffix == ".parquet":
        _write_parquet(path, records)
    else:
        write_jsonl(path, records)


def _arrow(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise MissingExtraError("pyarrow", extra="parquet") from None


def check_parquet() -> None:
    """Raises MissingExtraError when Parquet cannot be written here."""
    _arrow("pyarrow.parquet")


def _schema(arrow: ModuleType) -> Any:
    """One schema for every run, so that files of several runs can be read as one table."""
    text, number, whole = arrow.string(), arrow.float64(), arrow.int64()
    failure = arrow.struct({"kind": text, "cause": text, "message": text, "retryable": arrow.bool_()})
    verdict = arrow.struct(
        {
            "criterion_id": text,
            "score": number,
            "status": text,
            "probability": number,
            "raw": text,
            "reason": text,
            "failure": failure,
            "judge": text,
            "spread": number,
        }
    )
    usage = {"calls": whole, "prompt_tokens": whole, "completion_tokens": whole, "cached_tokens": whole}
    return arrow.schema(
        {
            "id": text,
            "line": whole,
            "value": number,
            "status": text,
            "channels": arrow.map_(text, number),
            "coverage": number,
            "bounds": arrow.list_(number),
            "vetoed_by": arrow.list_(text),
            "verdicts": arrow.list_(verdict),
            "overall": verdict,
            "failure": failure,
            "rubric_fingerprint": text,
            "rubric_version": text,
            "judge_fingerprint": text,
            "usage": arrow.struct({**usage, "cost": number}),
        }
    )


def _write_parquet(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    arrow, parquet = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    schema = _schema(arrow)
    with atomic(path) as file, parquet.ParquetWriter(file, schema) as writer:
        batch: list[dict[str, object]] = []
        for record in records:
            batch.append(_parquet_row(record))
            if len(batch) == BATCH:
                writer.write_table(_table(arrow, schema, batch))
                batch.clear()
        writer.write_table(_table(arrow, schema, batch))


def _table(arrow: ModuleType, schema: Any, batch: list[dict[str, object]]) -> Any:
    try:
        return arrow.Table.from_pylist(batch, schema=schema)
    except UnicodeEncodeError:  # rare enough not to look for it in every text
        return arrow.Table.from_pylist([_escaped(row) for row in batch], schema=schema)


def _escaped(value: object) -> Any:
    """The value with halves of surrogate pairs in its texts as escapes, as JSON Lines has them."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    fields = as_object(value)
    if fields is not None:
        return {name: _escaped(item) for name, item in fields.items()}
    listed = as_array(value)
    if listed is None:
        return value
    items = [_escaped(item) for item in listed]
    return tuple(items) if isinstance(value, tuple) else items


def _parquet_row(record: Mapping[str, object]) -> dict[str, object]:
    """A record as the schema has it: channels as pairs, `raw` as text (a judge gives texts and numbers)."""
    row = dict(record)
    row["channels"] = list((as_object(record.get("channels")) or {}).items())
    row["verdicts"] = [_parquet_verdict(item) for item in as_array(record.get("verdicts")) or ()]
    row["overall"] = _parquet_verdict(row["overall"]) if row.get("overall") is not None else None
    return row


def _parquet_verdict(value: object) -> dict[str, object]:
    verdict = dict(as_object(value) or {})
    if verdict.get("raw") is not None:
        verdict["raw"] = str(verdict["raw"])
    return verdict
