"""`rubricate lint`: reads files of rubrics, runs the rules, and writes what they find."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rubricate.bridge import run_sync
from rubricate.cli.conversion import check_format_options
from rubricate.cli.imports import import_code
from rubricate.cli.lint_output import Report, spelled, written
from rubricate.data.io import file_kind, read_rows
from rubricate.errors import ConfigError, FormatError, MissingExtraError, RubricateError, VerifierError
from rubricate.judges.verifiers import check_verifier, verifier_names
from rubricate.rubrics.criterion import VerifierSpec
from rubricate.rubrics.formats import Imported, Note, load_rubrics, parse_rubric
from rubricate.rubrics.linting import Finding, Limits, Rule, Severity, VerifierFault, alint, rules
from rubricate.rubrics.linting.base import chosen_rules

__all__ = ["LintOptions", "codes", "explained", "rule_list", "run_lint", "verifier_fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """What the command was asked for; see its help."""

    files: tuple[Path, ...]
    read_as: str = "auto"
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    kind: str | None = None
    rubric_column: str | None = None
    prompt_column: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = "warning"
    output: str = "text"
    embedder: str | None = None
    similarity: float | None = None
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

    A file that cannot be read is reported on standard error and in the output, the others are linted all the same;
    the exit code is then 2. Raises ConfigError for unknown codes, formats, models and embedders, and for no file.
    """
    if not options.files:
        raise ConfigError("no file to lint", hint="rubricate lint FILE...; --list-rules lists the rules")
    chosen_rules(options.select, options.ignore)  # a misspelt code is an error before anything is read
    for name in options.imports:
        import_code(name)
    _check_options(options)
    report = Report()
    for read in _read(options):
        if isinstance(read, RubricateError):
            report.errors.append(read)
            _complain(read)
            continue
        imported, prompts = read
        report.rubrics += len(imported.rubrics)
        report.criteria += sum(len(rubric) for rubric in imported.rubrics)
        report.findings += run_sync(_lint(imported, prompts, options))
    print(written(report, options.output))
    return 2 if report.errors else int(_fails(report.findings, options.fail_on))


def _check_options(options: LintOptions) -> None:
    check_format_options(options.options)
    if options.similarity is None:
        return
    if not 0.0 < options.similarity <= 1.0:
        raise ConfigError(f"--similarity is a cosine above 0 and up to 1, not {options.similarity:g}")
    if options.embedder is None:
        hint = "as in --embedder wordllama --similarity 0.7"
        raise ConfigError("--similarity is that of an embedder, and there is none", hint=hint)


def _complain(error: RubricateError) -> None:
    print(f"error: {spelled(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {spelled(error.hint)}", file=sys.stderr)


def _fails(findings: Sequence[Finding], least: str | None) -> bool:
    return least is not None and any(finding.severity.rank >= Severity(least).rank for finding in findings)


Prompts = list[str | None] | None


def _read(options: LintOptions) -> Iterator[tuple[Imported, Prompts] | RubricateError]:
    """Each file's rubrics and prompts, or why they cannot be read."""
    for path in options.files:
        try:
            if path.is_dir():
                raise FormatError("this is a folder, not a file", source=str(path), hint=_globs(path))
            imported = _rows(path, options) if options.rubric_column else _file(path, options)
            read: tuple[Imported, Prompts] | RubricateError = imported, _prompts(imported, path, options)
        except FormatError as error:
            read = error
        except MissingExtraError as error:
            read = FormatError(error.message, source=str(path), hint=error.hint)
        except ConfigError as error:
            if not options.options:  # else it may be that this file's format has no such option, and others do
                raise
            read = FormatError(error.message, source=str(path), hint=error.hint)
        except OSError as error:
            read = FormatError(str(error), source=str(path))
        yield read


def _globs(folder: Path) -> str:
    """What to give in place of a folder: a pattern for each ending in it."""
    endings: dict[str, None] = {}
    for file in sorted(folder.iterdir()):
        with contextlib.suppress(FormatError):
            file_kind(file)
            endings["".join(file.suffixes[-2:] if file.suffix.lower() == ".gz" else file.suffixes[-1:])] = None
    if not endings:
        return "name the files; this folder itself holds none that could be rubrics"
    return f"name the files in it: {' '.join(str(folder / f'*{ending}') for ending in endings)}"


def _file(path: Path, options: LintOptions) -> Imported:
    return load_rubrics(path, format=options.read_as, kind=options.kind, **options.options)


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
            **options.options,
        )
        for row in held
    )
    return Imported(rubrics, tuple(notes), "" if options.read_as == "auto" else options.read_as, tuple(held))


def _prompts(imported: Imported, path: Path, options: LintOptions) -> Prompts:
    if options.prompt_column is None:
        return None
    prompts = [_prompt(row.record.get(options.prompt_column)) for row in imported.rows]
    if not any(prompts):
        raise FormatError(f"no row has a prompt in the column {options.prompt_column!r}", source=str(path))
    return prompts


async def _lint(imported: Imported, prompts: Prompts, options: LintOptions) -> list[Finding]:
    from rubricate.chat import connect
    from rubricate.embed import connect_embedder

    limits = Limits() if options.similarity is None else Limits(similar_cosine=options.similarity)
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
            limits=limits,
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
