"""Runs the documentation: every python and console block must work, and print what the page says it prints.

In a page, ```python blocks share one namespace and run in order. A ```text block right after one is its exact
output; "..." in it stands for anything. Pages run in a temporary folder that holds the checkout's data/ and
examples/. In a ```console block, lines that begin with "$ " are run by the shell and
the lines below are their output. A block after the comment `<!-- not run: REASON -->` is left out, and counted.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.M | re.S)
SKIP = re.compile(r"<!--\s*not run:\s*(.+?)\s*-->\s*\Z", re.S)
CHECKER = doctest.OutputChecker()


@dataclass
class Block:
    """A fenced block: its language, text, first line, and why it is not run."""

    language: str
    text: str
    line: int
    skip: str = ""
    adjacent: bool = False


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(page):
        between = page[end : match.start()]
        skip = SKIP.search(between)
        line = page.count("\n", 0, match.start()) + 2
        found.append(Block(match[1], match[2], line, skip[1] if skip else "", not between.strip()))
        end = match.end()
    return found


def differs(want: str, got: str) -> str:
    """A report of the difference, empty when the output is as the page says."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if CHECKER.check_output(want, got, flags):
        return ""
    return f"--- the page says\n{want}--- it printed\n{got}"


def run_python(block: Block, want: str | None, names: dict[str, object], place: str) -> str:
    """Run a python block; what went wrong, or nothing."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.text, place, "exec"), names)
    except Exception:
        return traceback.format_exc()
    return differs(want, printed.getvalue()) if want is not None else ""


def run_console(block: Block, folder: str) -> str:
    """Run a console block; what went wrong, or nothing."""
    problems: list[str] = []
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, want = part.partition("\n")
        while command.endswith("\\"):
            more, _, want = want.partition("\n")
            command = command[:-1] + more
        env = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
        done = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
        if done.returncode:
            problems.append(f"$ {command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
        elif want.strip() and (difference := differs(want, done.stdout)):
            problems.append(f"$ {command}\n{difference}")
    return "\n".join(problems)


def run_page(path: Path) -> tuple[int, int, list[str]]:
    """Blocks run, blocks left out, and problems of one page."""
    ran = skipped = 0
    problems: list[str] = []
    blocks = blocks_of(path.read_text(encoding="utf-8"))
    names: dict[str, object] = {"__name__": "__main__"}
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("data", "examples"):
            Path(folder, name).symlink_to(ROOT / name)
        os.chdir(folder)
        try:
            for block, following in zip(blocks, [*blocks[1:], None], strict=True):
                if block.language not in ("python", "console"):
                    continue
                if block.skip:
                    skipped += 1
                    continue
                ran += 1
                place = f"{path.relative_to(ROOT)}:{block.line}"
                expects = following is not None and following.language == "text" and following.adjacent
                want = following.text if following is not None and expects else None
                problem = (
                    run_python(block, want, names, place)
                    if block.language == "python"
                    else run_console(block, folder)
                )
                if problem:
                    problems.append(f"{place}\n{problem}")
        finally:
            os.chdir(here)
    return ran, skipped, problems


def main(arguments: list[str]) -> int:
    """Run the pages, or folders of pages, named in the arguments."""
    named = [Path(argument).resolve() for argument in arguments]
    pages = [page for path in named for page in (sorted(path.rglob("*.md")) if path.is_dir() else [path])]
    total = 0
    failed: list[str] = []
    for page in pages:
        ran, skipped, problems = run_page(page)
        total += ran
        failed += problems
        note = f", {skipped} not run" if skipped else ""
        print(f"{page.relative_to(ROOT)}: {ran} blocks run{note}, {len(problems)} wrong")
    for problem in failed:
        print(problem, file=sys.stderr)
    if not total:
        print("no block was run", file=sys.stderr)
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
