"""`rubricate lint`: reads files of rubrics, runs the rules, and writes what they find."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rubricate.bridge import run_sync
from rubricate.cli.imports import import_code
from rubricate.cli.lint_output import Report, written
from rubricate.data.io import read_rows
from rubricate.errors import ConfigError, FormatError, RubricateError, VerifierError
from rubricate.judges.verifiers import check_verifier, verifier_names
from rubricate.rubrics.criterion import VerifierSpec
from rubricate.rubrics.formats import Imported, Note, load_rubrics, parse_rubric
from rubricate.rubrics.linting import Finding, Rule, Severity, VerifierFault, alint, rules
from rubricate.rubrics.linting.base import chosen_rules

__all__ = ["LintOptions", "codes", "explained", "rule_list", "run_lint", "verifier_fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """What the command was asked for; see its help."""

    files: tuple[Path, ...]
    read_as: str = "auto"
    kind: str | None = None
    rubric_column: str | None = None
    prompt_column: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = "warning"
    output: str = "text"
    embedder: str | None = None
    model: str | None = None
    imports: tuple[str, ...] = ()


def codes(values: Sequence[str]) -> tuple[str, ...]:
    """Codes out of options that hold one or several, parted by commas."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def rule_list() -> str:
    """All rules, a line each."""
    width = max(len(one.name) for one in rules())
    return "\n".join(f"{one.code}  {one.severity:<7}  {one.name:<{width}}  {one.summary}" for one in rules())


def explained(code: str) -> str:
    """What a rule finds, why, and what to do. Raises ConfigError where there is no such rule."""
    found: list[Rule] = [one for one in rules() if code.upper() == one.code or code == one.name]
    if not found:
        raise ConfigError(f"there is no rule {code!r}", hint="rubricate lint --list-rules lists them")
    one = found[0]
    limits = f"\n\nParameters (from Python, `Limits`): {', '.join(one.parameters)}" if one.parameters else ""
    return f"{one.code} {one.name} ({one.severity})\n\n{one.explanation}{limits}"


def verifier_fault(spec: VerifierSpec) -> VerifierFault | None:
    """What the registry of verifiers says against a verifier's name or arguments; None where nothing."""
    try:
        check_verifier(spec.name, spec.args)
    except VerifierError as error:
        return VerifierFault(error.message, error.hint, unknown=spec.name not in verifier_names())
    return None


def run_lint(options: LintOptions) -> int:
    """Lint the files, write the findings to standard output, and return the exit code.

    A file that cannot be read is reported on standard error, the others are linted all the same; the exit code is
    then 2. Raises ConfigError for unknown codes, formats, models and embedders, and for no file at all.
    """
    if not options.files:
        raise ConfigError("no file to lint", hint="rubricate lint FILE...; --list-rules lists the rules")
    chosen_rules(options.select, options.ignore)  # a misspelt code is an error before anything is read
    for name in options.imports:
        import_code(name)
    unreadable = 0
    report = Report()
    for imported in _read(options):
        if isinstance(imported, RubricateError):
            unreadable += 1
            _complain(imported)
            continue
        report.rubrics += len(imported.rubrics)
        report.criteria += sum(len(rubric) for rubric in imported.rubrics)
        report.findings += run_sync(_lint(imported, options))
    report.unreadable = unreadable
    print(written(report, options.output))
    return 2 if unreadable else int(_fails(report.findings, options.fail_on))


def _complain(error: RubricateError) -> None:
    print(f"error: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {error.hint}", file=sys.stderr)


def _fails(findings: Sequence[Finding], least: str | None) -> bool:
    return least is not None and any(finding.severity.rank >= Severity(least).rank for finding in findings)


def _read(options: LintOptions) -> Iterator[Imported | RubricateError]:
    """Each file's rubrics, or why they cannot be read."""
    for path in options.files:
        try:
            yield _rows(path, options) if options.rubric_column else _file(path, options)
        except (FormatError, OSError) as error:
            yield error if isinstance(error, RubricateError) else FormatError(str(error), source=str(path))


def _file(path: Path, options: LintOptions) -> Imported:
    return load_rubrics(path, format=options.read_as, kind=options.kind)


def _rows(path: Path, options: LintOptions) -> Imported:
    """The rubrics in a column of a file of rows; rows where it is null have none."""
    column, notes = options.rubric_column or "", list[Note]()
    rows = list(read_rows(path, kind=options.kind))
    if rows and not any(column in row.record for row in rows):
        hint = f"columns here: {', '.join(rows[0].record)}"
        raise FormatError(f"there is no column {column!r}", source=str(path), hint=hint)
    held = [row for row in rows if row.record.get(column) is not None]
    rubrics = tuple(
        parse_rubric(
            row.record[column],
            format=options.read_as,
            source=row.source,
            line=row.line,
            field=column,
            notes=notes,
        )
        for row in held
    )
    return Imported(rubrics, tuple(notes), "" if options.read_as == "auto" else options.read_as, tuple(held))


async def _lint(imported: Imported, options: LintOptions) -> list[Finding]:
    from rubricate.chat import connect
    from rubricate.embed import connect_embedder

    prompts = None
    if options.prompt_column is not None:
        prompts = [_prompt(row.record.get(options.prompt_column)) for row in imported.rows]
        if not any(prompts):
            source = imported.rows[0].source if imported.rows else ""
            raise FormatError(f"no row has a prompt in the column {options.prompt_column!r}", source=source)
    embedder = connect_embedder(options.embedder) if options.embedder else None
    model = connect(options.model) if options.model else None
    try:
        found = await alint(
            imported,
            prompts=prompts,
            select=options.select,
            ignore=options.ignore,
            verifiers=verifier_fault,
            embedder=embedder,
            model=model,
        )
    finally:
        for used in (embedder, model):
            if used is not None:
                with contextlib.suppress(RubricateError):
                    await used.aclose()
    return [replace(finding, fix=_with_option(finding)) for finding in found]


def _prompt(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _with_option(finding: Finding) -> str:
    """The fix, with the command's option where a verifier may be the user's own."""
    hint = "your own verifiers need --import FILE"
    return f"{finding.fix}; {hint}" if finding.code == "V601" and "--import" not in finding.fix else finding.fix
