"""What `rubricate lint` writes: text for people, JSON, annotations for GitHub, SARIF for code scanners."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from rubricate.cli.summary import counted
from rubricate.rubrics.linting import Finding, Severity, rules
from rubricate.version import __version__

__all__ = ["Report", "written"]

_LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.ERROR: "error"}
_ANNOTATIONS = _LEVELS | {Severity.INFO: "notice"}


@dataclass(slots=True)
class Report:
    """What was linted and found.

    Attributes:
        rubrics, criteria: how many were read.
        unreadable: files that could not be read.
        findings: in the order of files, rubrics and criteria.
    """

    rubrics: int = 0
    criteria: int = 0
    unreadable: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])


def written(report: Report, output: str) -> str:
    """The report as `text`, `json`, `github` or `sarif`."""
    return {"text": _text, "json": _json, "github": _github, "sarif": _sarif}[output](report)


def _summary(report: Report) -> str:
    counts = Counter(finding.severity for finding in report.findings)
    parts = [f"{counts[severity]} {severity}" for severity in reversed(Severity) if counts[severity]]
    found = f"{counted(len(report.findings), 'finding')} ({', '.join(parts)})" if parts else "no findings"
    return f"{found} in {counted(report.rubrics, 'rubric')} with {_criteria(report.criteria)}"


def _criteria(number: int) -> str:
    return f"{number} criteri{'on' if number == 1 else 'a'}"


def _text(report: Report) -> str:
    return "\n".join([*(str(_shown(finding)) for finding in report.findings), _summary(report)])


def _shown(finding: Finding) -> Finding:
    """The finding with control characters of the file spelled out: in a log, a line of its own can be a command
    to the program that shows it."""
    return replace(
        finding,
        source=_spelled(finding.source),
        criterion_ids=tuple(map(_spelled, finding.criterion_ids)),
        message=_spelled(finding.message),
        fix=_spelled(finding.fix),
    )


def _spelled(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _json(report: Report) -> str:
    findings = [finding.to_dict() for finding in report.findings]
    counts = {"rubrics": report.rubrics, "criteria": report.criteria, "unreadable_files": report.unreadable}
    return json.dumps(counts | {"findings": findings}, ensure_ascii=False, indent=2)


def _github(report: Report) -> str:
    lines: list[str] = []
    for finding in report.findings:
        where = {"file": finding.source, "line": str(finding.line or 1), "title": f"{finding.code} {finding.rule}"}
        listed = ",".join(f"{key}={_property(value)}" for key, value in where.items() if value)
        about = f" ({', '.join(finding.criterion_ids[:3])})" if finding.criterion_ids else ""
        said = _data(f"{finding.message}{about}\nfix: {finding.fix}")
        lines.append(f"::{_ANNOTATIONS[finding.severity]} {listed}::{said}")
    return "\n".join([*lines, _summary(report)])


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
        "invocations": [{"executionSuccessful": not report.unreadable}],
        "results": results,
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2)


def _result(finding: Finding, rule: int) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}. Fix: {finding.fix}"},
    }
    location: dict[str, object] = {}
    if finding.source:
        region = {"region": {"startLine": finding.line}} if finding.line else {}
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(finding.source)}} | region
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
