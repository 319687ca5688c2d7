"""The samples that ship with the package: prompts with rubrics, responses of plain quality, and gold labels."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from rubricate.data.io import Row, read_rows, rollouts_from_row
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_object

__all__ = ["SAMPLES", "Sample", "load_demo", "sample_file"]

SAMPLES = ("demo.jsonl", "quickstart.jsonl", "quickstart-rubric.json")
"""Files that `sample_file` knows."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One response of the demo data.

    Attributes:
        rollout: prompt and response.
        rubric: the prompt's rubric, as in the file (rubricate's own format).
        gold: for each criterion id, whether a careful reader finds it met.
        language: `en`, `de` or `ja`.
        task: what kind of task it is, such as `summary`.
    """

    rollout: Rollout
    rubric: Mapping[str, object]
    gold: Mapping[str, bool]
    language: str
    task: str


@contextmanager
def sample_file(name: str) -> Generator[Path, None, None]:
    """The path of a bundled file while the block runs. Raises ConfigError for a name that is not in `SAMPLES`."""
    if name not in SAMPLES:
        raise ConfigError(f"there is no bundled file {name!r}", hint=f"there are: {', '.join(SAMPLES)}")
    with as_file(files("rubricate.data").joinpath("samples", name)) as path:
        yield path


def load_demo() -> list[Sample]:
    """The bundled demo data, one sample a response, responses to one prompt together."""
    with sample_file("demo.jsonl") as path:
        return [sample for row in read_rows(path) for sample in _samples(row)]


def _samples(row: Row) -> Iterator[Sample]:
    rubric = as_object(row.record.get("rubric"))
    labels = as_array(row.record.get("gold"))
    rollouts = rollouts_from_row(row)
    if rubric is None or labels is None or len(labels) != len(rollouts):
        raise FormatError("a rubric and gold labels for each response are needed", source=row.source, line=row.line)
    for rollout, gold in zip(rollouts, labels, strict=True):
        named = as_object(gold) or {}
        yield Sample(
            rollout=rollout,
            rubric=rubric,
            gold={key: value is True for key, value in named.items()},
            language=str(row.record.get("language") or ""),
            task=str(row.record.get("task") or ""),
        )
