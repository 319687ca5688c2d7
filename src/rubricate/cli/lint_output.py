"""What `rubricate lint` writes: text for people, JSON, annotations for GitHub, SARIF for code scanners."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from rubricate.cli.summary import counted
from rubricate.errors import FormatError, RubricateError
from rubricate.rubrics.linting import Finding, Severity, rules
from rubricate.version import __version__

__all__ = ["Report", "spelled", "written"]

_LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.ERROR: "error"}
_ANNOTATIONS = _LEVELS | {Severity.INFO: "notice"}


@dataclass(slots=True)
class Report:
    """What was linted and found.

    Attributes:
        rubrics, criteria: how many were read.
        errors: why files could not be read, one for each of them.
        findings: in the order of files, rubrics and criteria.
    """

    rubrics: int = 0
    criteria: int = 0
    errors: list[RubricateError] = field(default_factory=list[RubricateError])
    findings: list[Finding] = field(default_factory=list[Finding])


def written(report: Report, output: str) -> str:
    """The report as `text`, `json`, `github` or `sarif`."""
    return {"text": _text, "json": _json, "github": _github, "sarif": _sarif}[output](report)


def _summary(report: Report) -> str:
    counts = Counter(finding.severity for finding in report.findings)
    parts = [f"{counts[severity]} {severity}" for severity in reversed(Severity) if counts[severity]]
    found = f"{counted(len(report.findings), 'finding')} ({', '.join(parts)})" if parts else "no findings"
    seen = f"{found} in {counted(report.rubrics, 'rubric')} with {_criteria(report.criteria)}"
    if not report.errors:
        return seen
    unread = f"{counted(len(report.errors), 'file')} could not be read"
    return f"{unread}; {seen} in the others" if report.rubrics else f"{unread}, and no rubric was checked"


def _criteria(number: int) -> str:
    return f"{number} criteri{'on' if number == 1 else 'a'}"


def _text(report: Report) -> str:
    return "\n".join([*(str(_shown(finding)) for finding in report.findings), _summary(report)])


def _shown(finding: Finding) -> Finding:
    """The finding with control characters of the file spelled out: in a log, a line of its own can be a command
    to the program that shows it."""
    return replace(
        finding,
        source=spelled(finding.source),
        criterion_ids=tuple(map(spelled, finding.criterion_ids)),
        message=spelled(finding.message),
        fix=spelled(finding.fix),
    )


def spelled(text: str) -> str:
    """The text with control characters spelled out."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _json(report: Report) -> str:
    findings = [finding.to_dict() for finding in report.findings]
    counts = {"rubrics": report.rubrics, "criteria": report.criteria, "unreadable_files": len(report.errors)}
    lists = {"errors": [_unread(error) for error in report.errors], "findings": findings}
    return json.dumps(counts | lists, ensure_ascii=False, indent=2)


def _unread(error: RubricateError) -> dict[str, object]:
    """An error as a JSON object: file, line (None where unknown), field, message, hint."""
    placed = error if isinstance(error, FormatError) else FormatError(error.message)
    return {
        "file": placed.source,
        "line": placed.line,
        "field": placed.field,
        "message": placed.detail,
        "hint": error.hint,
    }


def _github(report: Report) -> str:
    lines = [_annotated(error) for error in report.errors]
    for finding in report.findings:
        where = {"file": finding.source, "line": str(finding.line or 1), "title": f"{finding.code} {finding.rule}"}
        about = f" ({', '.join(finding.criterion_ids[:3])})" if finding.criterion_ids else ""
        said = _data(f"{finding.message}{about}\nfix: {finding.fix}")
        lines.append(f"::{_ANNOTATIONS[finding.severity]} {_listed(where)}::{said}")
    return "\n".join([*lines, _summary(report)])


def _annotated(error: RubricateError) -> str:
    unread = _unread(error)
    where = {"file": str(unread["file"]), "line": str(unread["line"] or 1), "title": "cannot be read"}
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return f"::error {_listed(where)}::{_data(_said(error) + hint)}"


def _said(error: RubricateError) -> str:
    """What is wrong, with the field, without file and line."""
    if not isinstance(error, FormatError):
        return error.message
    return f"field {error.field!r}: {error.detail}" if error.field else error.detail


def _listed(properties: Mapping[str, str]) -> str:
    return ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)


def _data(text: str) -> str:
    """A text as a workflow command takes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(report: Report) -> str:
    """SARIF 2.1.0 (OASIS): one run, all rules, a result a finding."""
    listed = rules()
    index = {one.code: at for at, one in enumerate(listed)}
    driver: dict[str, object] = {
        "name": "rubricate",
        "version": __version__,
        "rules": [
            {
                "id": one.code,
                "name": one.name,
                "shortDescription": {"text": one.summary},
                "fullDescription": {"text": one.explanation},
                "defaultConfiguration": {"level": _LEVELS[one.severity]},
            }
            for one in listed
        ],
    }
    results = [_result(finding, index[finding.code]) for finding in report.findings]
    run: dict[str, object] = {
        "tool": {"driver": driver},
        "invocations": [_invocation(report.errors)],
        "results": results,
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2)


def _invocation(errors: Sequence[RubricateError]) -> dict[str, object]:
    """How the run went: a notification for each file that could not be read (SARIF 2.1.0, 3.20 and 3.58)."""
    notes: list[dict[str, object]] = []
    for error in errors:
        said = _said(error) + (f". Hint: {error.hint}" if error.hint else "")
        note: dict[str, object] = {"level": "error", "message": {"text": said}}
        if isinstance(error, FormatError) and error.source:
            note["locations"] = [{"physicalLocation": _physical(error.source, error.line)}]
        notes.append(note)
    invocation: dict[str, object] = {"executionSuccessful": not errors}
    return invocation | ({"toolExecutionNotifications": notes} if notes else {})


def _physical(source: str, line: int | None) -> dict[str, object]:
    location: dict[str, object] = {"artifactLocation": {"uri": _uri(source)}}
    return location | ({"region": {"startLine": line}} if line else {})


def _result(finding: Finding, rule: int) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}. Fix: {finding.fix}"},
    }
    location: dict[str, object] = {}
    if finding.source:
        location["physicalLocation"] = _physical(finding.source, finding.line)
    logical = _logical(finding.rubric_id, finding.criterion_ids)
    if logical:
        location["logicalLocations"] = logical
    return result | ({"locations": [location]} if location else {})


def _logical(rubric: str, criteria: Sequence[str]) -> list[dict[str, object]]:
    names = criteria or ([rubric] if rubric else [])
    return [
        {"name": name, "fullyQualifiedName": f"{rubric}/{name}" if criteria and rubric else name} for name in names
    ]


def _uri(source: str) -> str:
    path = Path(source)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
