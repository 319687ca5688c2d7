"""Running the rules over rubrics, and making findings of what they yield."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import cast

from rubricate.bridge import run_sync
from rubricate.chat.base import ChatModel
from rubricate.embed import Embedder
from rubricate.errors import ConfigError
from rubricate.narrow import as_object
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.formats.base import Note, Place
from rubricate.rubrics.formats.reading import Imported
from rubricate.rubrics.linting.asking import ask_prompts, pair_up
from rubricate.rubrics.linting.base import (
    Finding,
    Found,
    Limits,
    Rule,
    Severity,
    Subject,
    VerifierCheck,
    chosen_rules,
    suppresses,
)
from rubricate.rubrics.linting.context import prompt_of, reference_of, suppressed
from rubricate.rubrics.rubric import Rubric

__all__ = ["alint", "lint"]

_BY_EMBEDDER, _BY_MODEL = "D107", ("Q702", "Q704")
Rubrics = Rubric | Sequence[Rubric] | Imported


def lint(
    rubrics: Rubrics,
    *,
    prompts: Sequence[str | None] | str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    verifiers: VerifierCheck | None = None,
    embedder: Embedder | None = None,
    model: ChatModel | None = None,
    limits: Limits | None = None,
) -> list[Finding]:
    """What the rules find in rubrics, by rubric, criterion and code; the same every time.

    Args:
        rubrics: one, several, or what `load_rubrics` returned, whose findings have file, line and field.
        prompts: the prompt of each rubric, in order (a text where there is one rubric); None and missing ones are
            looked for in the rubric's metadata and in its row (prompt, question, instruction, input, …).
        select: codes, beginnings of codes, or names of the rules to run; all unless given.
        ignore: the same for rules to leave out.
        verifiers: says what is wrong with a verifier; without it, names and most arguments go unchecked.
        embedder: finds criteria that mean the same (rule D107).
        model: says which criteria the prompt does not ask for (rule Q702); one call a rubric with a prompt.
        limits: parameters of the rules.

    A rubric or criterion with `{"lint": {"ignore": ["C501"]}}` in its metadata is not reported for those rules.

    Raises ConfigError for an unknown code, for what is no rubric (for a file: `lint(load_rubrics(path))`), and for
    prompts that are not as many as rubrics; what the embedder raises.
    """
    work = alint(
        rubrics,
        prompts=prompts,
        select=select,
        ignore=ignore,
        verifiers=verifiers,
        embedder=embedder,
        model=model,
        limits=limits,
    )
    return run_sync(work)


async def alint(
    rubrics: Rubrics,
    *,
    prompts: Sequence[str | None] | str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    verifiers: VerifierCheck | None = None,
    embedder: Embedder | None = None,
    model: ChatModel | None = None,
    limits: Limits | None = None,
) -> list[Finding]:
    """As `lint`, for async callers."""
    chosen = chosen_rules(select, ignore)
    subjects = _subjects(rubrics, prompts, verifiers, limits or Limits())
    codes = {one.code for one in chosen}
    if embedder is not None and _BY_EMBEDDER in codes:
        pairs = await pair_up(subjects, embedder)
        subjects = [dataclasses.replace(s, meant_alike=p) for s, p in zip(subjects, pairs, strict=True)]
    if model is not None and not codes.isdisjoint(_BY_MODEL):
        answers = await ask_prompts(subjects, model)
        subjects = [
            dataclasses.replace(subject, unasked=unasked, unanswered=why)
            for subject, (unasked, why) in zip(subjects, answers, strict=True)
        ]
    places = rubrics.places if isinstance(rubrics, Imported) else ()
    return [
        finding
        for index, subject in enumerate(subjects)
        for finding in _findings(subject, index, chosen, _Where(rubrics, index, places))
    ]


def _listed(rubrics: object) -> Sequence[Rubric]:
    """The rubrics of what a caller gave. Raises ConfigError for anything but rubrics."""
    if isinstance(rubrics, Imported):
        return rubrics.rubrics
    if isinstance(rubrics, Rubric):
        return (rubrics,)
    if isinstance(rubrics, str) or not isinstance(rubrics, Sequence):
        raise _no_rubric(rubrics)
    found: list[Rubric] = []
    for index, one in enumerate(cast("Sequence[object]", rubrics)):
        if not isinstance(one, Rubric):
            raise _no_rubric(one, f"[{index}]")
        found.append(one)
    return found


def _no_rubric(value: object, place: str = "") -> ConfigError:
    kind = type(value).__name__
    if isinstance(value, str | PathLike):
        name = f"{fspath(value)!r}"
        return ConfigError(
            f"lint takes rubrics, not the text or file name {name[:80]}{place and f' at {place}'}",
            hint=f"lint(load_rubrics({name if len(name) < 80 else 'path'})) for a file; parse_rubric for JSON text",
        )
    if isinstance(value, Criterion):
        hint = "Rubric(criteria=(...,)) holds criteria"
    elif as_object(value) is not None:
        hint = "parse_rubric(record) makes a rubric of a record"
    else:
        hint = "give a Rubric, a list of them, or what load_rubrics returned"
    return ConfigError(f"lint takes rubrics, not {kind}{place and f' at {place}'}", hint=hint)


def _subjects(
    rubrics: Rubrics, prompts: Sequence[str | None] | str | None, verifiers: VerifierCheck | None, limits: Limits
) -> list[Subject]:
    listed = _listed(rubrics)
    given = [prompts] if isinstance(prompts, str) else list(prompts or [None] * len(listed))
    if len(given) != len(listed):
        raise ConfigError(f"{len(given)} prompts for {len(listed)} rubrics", hint="give one for each, or None")
    for index, value in enumerate(given):
        _check_prompt(value, index)
    rows: list[Mapping[str, object]] = [dict[str, object]()] * len(listed)
    notes: list[tuple[Note, ...]] = [()] * len(listed)
    name = ""
    if isinstance(rubrics, Imported):
        name, notes = rubrics.format, _notes_by_rubric(rubrics)
        if len(rubrics.rows) == len(listed):
            rows = [row.record for row in rubrics.rows]
    return [
        Subject(
            rubric,
            format=name,
            prompt=prompt if prompt is not None else prompt_of(rubric.metadata, row),
            reference=reference_of(rubric.metadata, row),
            limits=limits,
            check_verifier=verifiers,
            notes=noted,
        )
        for rubric, prompt, row, noted in zip(listed, given, rows, notes, strict=True)
    ]


def _check_prompt(value: object, index: int) -> None:
    if value is not None and not isinstance(value, str):
        hint = "messages belong in the rubric's metadata, under the name prompt"
        raise ConfigError(f"prompts[{index}] is no text but {type(value).__name__}", hint=hint)


def _notes_by_rubric(imported: Imported) -> list[tuple[Note, ...]]:
    """The notes about criteria and groups, each with the rubric it is about."""
    sorted_out: list[list[Note]] = [[] for _ in imported.rubrics]
    about = [note for note in imported.notes if note.kind == "duplicate_id"]
    if about:
        homes: dict[tuple[str, int | None], list[int]] = {}
        for index, rubric in enumerate(imported.rubrics):
            line = imported.rows[index].line if index < len(imported.rows) else None
            for name in (*rubric.ids, *(group.id for group in rubric.groups)):
                homes.setdefault((name, None), []).append(index)
                homes.setdefault((name, line), []).append(index)
        for note in about:
            found = homes.get((note.criterion_id, note.line)) or homes.get((note.criterion_id, None)) or [0]
            sorted_out[found[0]].append(note)
    return [tuple(notes) for notes in sorted_out]


@dataclasses.dataclass(frozen=True, slots=True)
class _Where:
    """Gives the place of a rubric and its criteria in the source."""

    rubrics: Rubrics
    index: int
    places: Sequence[Mapping[str, Place]]

    def find(self, ids: Sequence[str]) -> tuple[str, int | None, str]:
        """Source, line and field of the first of these ids, of the rubric where there is none."""
        marks = self.places[self.index] if self.index < len(self.places) else dict[str, Place]()
        place = next((marks[name] for name in ids[:1] if name in marks), None)
        if place is not None:
            return place.source, place.exact_line(), place.field
        if isinstance(self.rubrics, Imported) and self.index < len(self.rubrics.rows):
            row = self.rubrics.rows[self.index]
            return row.source, row.line, ""
        return "", None, ""


def _findings(subject: Subject, index: int, chosen: Sequence[Rule], where: _Where) -> list[Finding]:
    whole = suppressed(subject.rubric.metadata)
    own = {
        node.id: entries
        for node in (*subject.rubric.groups, *subject.criteria)
        if (entries := suppressed(node.metadata))
    }
    order = {name: at for at, name in enumerate(subject.rubric.ids)}
    ordered: list[tuple[int, str, Rule, Found]] = []
    for one in chosen:
        if suppresses(whole, one):
            continue
        ordered += [
            (order.get(found.ids[0], -1) if found.ids else -1, one.code, one, found)
            for found in _limited(one, subject)
            if not any(suppresses(own[name], one) for name in found.ids[:1] if name in own)
        ]
    ordered.sort(key=lambda entry: entry[:2])
    return [_finding(subject, index, one, found, where) for _, _, one, found in ordered]


def _limited(one: Rule, subject: Subject) -> Iterator[Found]:
    """What a rule finds, up to the limit; how many more there are is said, not left out silently."""
    more = 0
    for number, found in enumerate(one.check(subject)):
        if number < subject.limits.shown:
            yield found
        else:
            more += 1
    if more:
        yield Found((), f"{more} more findings of this rule in this rubric", "see those above", Severity.INFO)


def _finding(subject: Subject, index: int, one: Rule, found: Found, where: _Where) -> Finding:
    source, line, field = where.find(found.ids)
    return Finding(
        code=one.code,
        rule=one.name,
        severity=found.severity or one.severity,
        message=found.message,
        fix=found.fix,
        rubric_id=subject.rubric.id,
        criterion_ids=found.ids,
        source=source,
        line=line,
        field=field,
        index=index,
    )
