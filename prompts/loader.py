"""Loads the jinja2 files of this folder, or a user's own, block by block.

A judge's prompt has two blocks that matter: `shared`, which all calls for one response have in common, and
`item`, which differs. They are rendered apart and joined, so the shared part is the same text to the letter in
each call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from rubricate.errors import ConfigError

if TYPE_CHECKING:  # jinja2 takes a tenth of a second to import: only those who render pay for it
    from jinja2 import Template

__all__ = ["Prompt", "load_prompt", "prompt_names"]


class Prompt:
    """A prompt template.

    Attributes:
        name: file name without the ending, or the path of a user's own file.
        source: the template's text.
        fingerprint: 16 hex digits of SHA-256 over the text; part of a judge's fingerprint.
    """

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.source = source
        self.fingerprint = hashlib.sha256(source.encode()).hexdigest()[:16]
        self._template: Template | None = None

    def __reduce__(self) -> tuple[type[Prompt], tuple[str, str]]:
        return Prompt, (self.name, self.source)

    def __repr__(self) -> str:
        return f"Prompt({self.name!r}, fingerprint={self.fingerprint!r})"

    def render(self, block: str, values: Mapping[str, object]) -> str:
        """One block of the template, filled in one pass; texts that look like template code stay texts.

        Raises ConfigError when the template has no such block, does not parse, or uses a value it was not given.
        """
        from jinja2 import TemplateError

        try:
            template = self._compiled()
            found = template.blocks.get(block)
            if found is None:
                raise ConfigError(
                    f"the prompt {self.name!r} has no block {block!r}", hint=f"it has: {', '.join(template.blocks)}"
                )
            return "".join(found(template.new_context(dict(values))))
        except TemplateError as error:
            raise ConfigError(f"the prompt {self.name!r} cannot be rendered: {error}") from error

    def _compiled(self) -> Template:
        if self._template is None:
            from jinja2 import Environment, StrictUndefined

            environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
            self._template = environment.from_string(self.source)
        return self._template


def prompt_names() -> list[str]:
    """Names of the prompts that ship with the package, sorted. Templates of pages are none."""
    names = (entry.name.removesuffix(".jinja2") for entry in files("rubricate.prompts").iterdir())
    return sorted(name for name in names if "." not in name and not name.startswith("_"))


@lru_cache(maxsize=64)
def load_prompt(name: str) -> Prompt:
    """A prompt by name, or from a path that ends in `.jinja2`. Raises ConfigError when there is none."""
    if name.endswith(".jinja2"):
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"there is no prompt file {name}")
        return Prompt(name, path.read_text(encoding="utf-8"))
    entry = files("rubricate.prompts").joinpath(f"{name}.jinja2")
    if not entry.is_file():
        raise ConfigError(f"there is no prompt named {name!r}", hint=f"there are: {', '.join(prompt_names())}")
    return Prompt(name, entry.read_text(encoding="utf-8"))
