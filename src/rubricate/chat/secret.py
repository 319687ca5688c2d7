"""API keys that do not show: not in a repr, and in a pickle only when they came from nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

__all__ = ["Secret"]


@dataclass(frozen=True, slots=True)
class Secret:
    """An API key, given or to be read from an environment variable when it is needed.

    A pickle of one that names a variable holds the name alone: the key is read again where it is unpickled.

    Attributes:
        variable: name of the environment variable, "" where the key was given.
    """

    given: str = field(default="", repr=False)
    variable: str = ""

    def reveal(self) -> str:
        """The key, or "" where there is none."""
        return self.given or (os.environ.get(self.variable, "") if self.variable else "")
