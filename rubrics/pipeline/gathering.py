"""One rubric for all rows together: what a data set's generator makes of the rows that are left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from rubricate.errors import ConfigError
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.native import FORMAT as NATIVE
from rubricate.rubrics.generators.base import DatasetGenerator
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Usage

__all__ = ["Gathered", "gather", "read_native"]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What came of one generator.

    Attributes:
        label: the method.
        rubric: the rubric in our own format, None where `failure` says why there is none.
        failure: why there is none.
        rows: rows that it was made of.
        unfit: rows that lack what the method needs.
        notes: what was asked again, dropped or changed.
        extra: what else the method yields.
        usage: what it cost.
    """

    label: str
    rubric: Mapping[str, object] | None
    failure: str = ""
    rows: int = 0
    unfit: int = 0
    notes: Mapping[str, int] = field(default_factory=dict[str, int])
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    usage: Usage = Usage()

    def to_dict(self) -> dict[str, object]:
        """JSON-ready, with the number of criteria in place of the rubric."""
        fields: dict[str, object] = {
            name: value for name, value in asdict(self).items() if name not in ("rubric", "extra")
        }
        return fields | {"criteria": 0 if self.rubric is None else len(read_native(self.rubric))}


def read_native(record: Mapping[str, object]) -> Rubric:
    """The rubric that an outcome holds."""
    return NATIVE.parse(record, Place(), {})


async def gather(label: str, generator: DatasetGenerator, sources: Sequence[Source]) -> Gathered:
    """The rubric for all sources that have what the method needs."""
    fit: list[Source] = []
    why = ""
    for source in sources:
        try:
            generator.check(source)
            fit.append(source)
        except ConfigError as error:
            why = why or error.message
    unfit = len(sources) - len(fit)
    if not fit:
        return Gathered(label, None, why or "there are no rows", unfit=unfit)
    made = await generator.generate_from(fit)
    return Gathered(
        label,
        None if made.rubric is None else NATIVE.dump(made.rubric, Place()),
        "" if made.failure is None else made.failure.message,
        len(fit),
        unfit,
        dict(Counter(f"{note.kind.value}: {note.reason}"[:300] for note in made.notes)),
        made.extra,
        made.usage,
    )
