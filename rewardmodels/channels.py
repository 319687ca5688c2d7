"""Channels: named parts of a reward, the same names for every reward of a reward model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rubricate.errors import ConfigError
from rubricate.rewardmodels.aggregation import Aggregation
from rubricate.rewardmodels.plan import Plan, select
from rubricate.rewardmodels.scoring import score_verdicts
from rubricate.rubrics import Rubric
from rubricate.types import Verdict

__all__ = ["GENERAL", "OTHER", "Channels"]

GENERAL = "general"
"""Channel of the criteria that name none."""

OTHER = "other"
"""Channel of the criteria that name an undeclared one, where the caller chose that."""

Parts = dict[str, tuple[tuple[int, ...], Plan]]


class Channels:
    """The declared channels of a reward model.

    Args:
        names: the declared names. None takes them from `constant`; without names there are no channels.
        undeclared: what a rubric with another channel meets: `raise` (ConfigError) or `other` (it counts there).
        constant: the rubric that holds for every row.

    Attributes:
        names: all names, in order: the declared ones, then `general` and `other` where they can occur.
    """

    def __init__(
        self,
        names: Sequence[str] | None,
        undeclared: Literal["raise", "other"] = "raise",
        constant: Rubric | None = None,
    ) -> None:
        if undeclared not in ("raise", "other"):
            raise ConfigError(f"undeclared channels: {undeclared!r}", hint="use 'raise' or 'other'")
        found = [criterion.channel for criterion in constant.criteria] if constant is not None else []
        declared = list(names) if names is not None else list(dict.fromkeys(name for name in found if name))
        if len(set(declared)) != len(declared) or not all(declared):
            raise ConfigError(f"channel names must differ and not be empty: {declared}")
        self.undeclared = undeclared
        if declared:
            if (names is not None or None in found) and GENERAL not in declared:
                declared.append(GENERAL)
            if undeclared == "other" and OTHER not in declared:
                declared.append(OTHER)
        self.names: tuple[str, ...] = tuple(declared)

    def parts(self, rubric: Rubric, plan: Plan) -> Parts:
        """For each channel the columns of its criteria in this rubric and their plan.

        Raises ConfigError for an undeclared channel.
        """
        if not self.names:
            return {}
        columns: dict[str, list[int]] = {name: [] for name in self.names}
        for index, criterion in enumerate(rubric.criteria):
            columns[self._home(criterion.id, criterion.channel)].append(index)
        return {
            name: (tuple(found), select(plan, np.array(found, dtype=np.intp)))
            for name, found in columns.items()
            if found
        }

    def values(self, options: Aggregation, parts: Parts, verdicts: Sequence[Verdict]) -> dict[str, float | None]:
        """The value of each channel: the aggregation over its criteria alone, None where it has none.

        A veto floors its own channel, at the lowest value of that channel. In implicit mode there are no values.
        """
        values: dict[str, float | None] = dict.fromkeys(self.names)
        if options.mode == "explicit":
            alone = options if options.floor is None else options.changed(floor=None)
            for name, (columns, plan) in parts.items():
                values[name] = score_verdicts(alone, plan, [verdicts[column] for column in columns]).value
        return values

    def _home(self, criterion_id: str, channel: str | None) -> str:
        wanted = channel or GENERAL
        if wanted in self.names:
            return wanted
        if self.undeclared == "other":
            return OTHER
        raise ConfigError(
            f"criterion {criterion_id!r} has the channel {wanted!r}, which this reward does not declare",
            hint=f"declare it (declared: {', '.join(self.names)}), or use undeclared_channels='other'",
        )
