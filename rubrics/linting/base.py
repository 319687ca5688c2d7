"""What a finding, a rule and a rubric under the linter are, and the registry of rules."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property

from rubricate.errors import ConfigError
from rubricate.rubrics.criterion import Criterion, OrdinalScale, VerifierSpec
from rubricate.rubrics.formats.base import Note
from rubricate.rubrics.linting.words import Text
from rubricate.rubrics.rubric import Rubric

__all__ = [
    "Finding",
    "Found",
    "Limits",
    "Pair",
    "Rule",
    "Severity",
    "Subject",
    "VerifierCheck",
    "VerifierFault",
    "chosen_rules",
    "described",
    "rule",
    "rules",
]

INDENT = "\n    "


class Severity(enum.StrEnum):
    """How bad a finding is: `error` makes rewards wrong, `warning` probably, `info` is worth a look."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for info, 1 for warning, 2 for error."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a rule found.

    Attributes:
        code, rule: the rule's stable code, such as `C501`, and its name, such as `compound`.
        severity: how bad it is.
        message: what was found, in a sentence.
        fix: what to do about it; the corrected text where one can be made.
        rubric_id: the rubric's id, "" where it has none.
        criterion_ids: the criteria (or groups) it is about, the first one being where it stands; empty for the
            whole rubric.
        source, line, field: where, as in FormatError; "", None and "" where the rubric came from no file.
        index: place of the rubric among those linted, from 0.
    """

    code: str
    rule: str
    severity: Severity
    message: str
    fix: str
    rubric_id: str = ""
    criterion_ids: tuple[str, ...] = ()
    source: str = ""
    line: int | None = None
    field: str = ""
    index: int = 0

    @property
    def place(self) -> str:
        """Where it is, for people: file and line, rubric, criteria."""
        where = ":".join(part for part in (self.source, str(self.line) if self.line is not None else "") if part)
        rubric = f"rubric {self.rubric_id}" if self.rubric_id else f"rubric {self.index + 1}"
        return " ".join([*([f"{where}:"] if where else []), rubric, *self.criterion_ids[:3]])

    def __str__(self) -> str:
        return f"{self.place}: {self.severity} {self.code} {self.rule}: {self.message}{INDENT}fix: {self.fix}"

    def to_dict(self) -> dict[str, object]:
        """The finding as a JSON object."""
        fields: dict[str, object] = asdict(self)
        return fields | {"severity": self.severity.value, "criterion_ids": list(self.criterion_ids)}


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule's check yields; the engine makes a Finding of it.

    Attributes:
        ids: the criteria or groups it is about.
        message, fix: as in Finding.
        severity: where it differs from the rule's.
    """

    ids: tuple[str, ...]
    message: str
    fix: str
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The parameters of the rules. All are ours.

    Attributes:
        similar_share: share of content words (Jaccard) from which two texts are similar, in (0, 1].
        similar_cosine: cosine of embeddings from which two texts may mean the same (info), in (0, 1].
        same_cosine: cosine from which they probably do (warning). Both are set for wordllama; others differ.
        dominant_share: share of the weight among siblings above which one decides alone.
        long_words, very_long_words: words from which a text is long (info) and far too long (warning).
        concrete_words: a text with vague words is vague where it has at most so many concrete ones.
        requirements: requirements in one text from which it is compound.
        quoted_words: words in a row that a criterion may share with the reference.
        shown: at most so many findings of one rule for one rubric; one more says how many there were.
    """

    similar_share: float = 0.75
    similar_cosine: float = 0.6
    same_cosine: float = 0.8
    dominant_share: float = 0.95
    long_words: int = 120
    very_long_words: int = 250
    concrete_words: int = 2
    requirements: int = 2
    quoted_words: int = 15
    shown: int = 1000


@dataclass(frozen=True, slots=True)
class VerifierFault:
    """What is wrong with a verifier: `unknown` for its name, else its arguments."""

    message: str
    hint: str = ""
    unknown: bool = False


VerifierCheck = Callable[[VerifierSpec], VerifierFault | None]
"""Says what is wrong with a verifier, None where nothing is; the linter itself knows no verifiers."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two criteria of a rubric by their places, and how similar they are (cosine)."""

    first: int
    second: int
    cosine: float


@dataclass(frozen=True)
class Subject:
    """A rubric under the linter, with what is known around it.

    Attributes:
        rubric: the rubric.
        format: name of the format it was read from, "" where unknown.
        prompt, reference: the texts, "" where there are none.
        limits: parameters of the rules.
        check_verifier: says what is wrong with a verifier; None leaves it unchecked.
        notes: what the reader noted about this rubric.
        meant_alike: pairs that an embedder finds alike.
        unasked: places of criteria for which a model says that the prompt does not ask; None where no model did.
        unanswered: why the model could not be asked, "" where it could.
    """

    rubric: Rubric
    format: str = ""
    prompt: str = ""
    reference: str = ""
    limits: Limits = field(default_factory=Limits)
    check_verifier: VerifierCheck | None = None
    notes: tuple[Note, ...] = ()
    meant_alike: tuple[Pair, ...] = ()
    unasked: Mapping[int, str] | None = None
    unanswered: str = ""

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """The rubric's criteria."""
        return self.rubric.criteria

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        """The criteria's texts, analysed."""
        return tuple(Text(criterion.text) for criterion in self.rubric.criteria)

    @cached_property
    def siblings(self) -> list[list[int]]:
        """Places of the criteria that sit in the same group, for each group that holds some."""
        found: dict[tuple[str, ...], list[int]] = {}
        for index, criterion in enumerate(self.rubric.criteria):
            found.setdefault(criterion.path, []).append(index)
        return list(found.values())


def described(criterion: Criterion) -> bool:
    """Whether the levels of the criterion's scale are described, so that they say what its text leaves open."""
    scale = criterion.scale
    return isinstance(scale, OrdinalScale) and sum(bool(level.description.strip()) for level in scale.levels) >= 2


Check = Callable[[Subject], Iterator[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the linter.

    Attributes:
        code: letter of the family and number; never given to another rule.
        name: a few words with hyphens.
        severity: of its findings, unless one says otherwise.
        explanation: what it finds, why that is bad, how it is mended.
        check: yields what it finds in a rubric.
        parameters: names of the fields of Limits that it uses.
    """

    code: str
    name: str
    severity: Severity
    explanation: str
    check: Check
    parameters: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first line of the explanation."""
        return self.explanation.partition("\n")[0]


_RULES: dict[str, Rule] = {}


def rule(
    code: str, name: str, severity: Severity = Severity.WARNING, *, parameters: tuple[str, ...] = ()
) -> Callable[[Check], Check]:
    """Register a function as the rule of that code; its docstring is the explanation."""

    def register(check: Check) -> Check:
        if code in _RULES and _RULES[code].name != name:
            raise ConfigError(f"there is a rule {code} already, {_RULES[code].name}")
        _RULES[code] = Rule(code, name, severity, inspect.getdoc(check) or "", check, parameters)
        return check

    return register


def rules() -> list[Rule]:
    """All rules, by code."""
    return [_RULES[code] for code in sorted(_RULES)]


def _matches(one: Rule, chosen: str) -> bool:
    return one.name == chosen or one.code.startswith(chosen.upper())


def chosen_rules(select: Sequence[str], ignore: Sequence[str]) -> list[Rule]:
    """The rules selected (all, where none is) less those ignored, by code.

    Each entry is a code, the beginning of codes (`C` for the family, `C5`), or a rule's name. Raises ConfigError
    for an entry that fits no rule, and for a text in place of a list.
    """
    known = rules()
    for given in (select, ignore):
        if isinstance(given, str):
            raise ConfigError(f"rules are chosen by a list of codes, not {given!r}", hint=f"give [{given!r}]")
    for entry in (*select, *ignore):
        if not entry or not any(_matches(one, entry) for one in known):
            hint = f"codes: {', '.join(one.code for one in known)}"
            raise ConfigError(f"there is no rule {entry!r}", hint=hint)
    return [
        one
        for one in known
        if (not select or any(_matches(one, entry) for entry in select))
        and not any(_matches(one, entry) for entry in ignore)
    ]


def suppresses(entries: Sequence[str], one: Rule) -> bool:
    """Whether a list of codes and names in a rubric's or criterion's metadata switches a rule off there."""
    return any(entry and _matches(one, entry) for entry in entries)
