"""Filters that look at texts and numbers alone: form, self-containedness, leakage of the reference answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from rubricate.data.hygiene_text import canonical, numbers_of, quoted, words_of
from rubricate.errors import ConfigError
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.filters.base import Case, Filtered, Outcome, collected
from rubricate.rubrics.linting import alint
from rubricate.rubrics.rubric import Rubric
from rubricate.types import fingerprint

__all__ = ["Action", "Form", "FormRules", "Leakage", "SelfContained", "quotation"]

Action = Literal["drop", "flag"]


@dataclass(frozen=True, slots=True)
class FormRules:
    """What a rubric must look like. None switches a rule off.

    Attributes:
        min_criteria, max_criteria: how many criteria a rubric has; RaR (2507.17746) asks for 7 to 20.
        min_words, max_words: words of a criterion's text.
        min_weight, max_weight: of every criterion.
        whole_weights: weights are whole numbers.
        needs_reward: at least one reward criterion has a weight above 0; without, no response can be good.
        needs_kind, needs_importance: every criterion has one.
        distinct: no two criteria have the same text; the later one goes.
    """

    min_criteria: int | None = 1
    max_criteria: int | None = None
    min_words: int | None = 3
    max_words: int | None = 120
    min_weight: float | None = None
    max_weight: float | None = None
    whole_weights: bool = False
    needs_reward: bool = True
    needs_kind: bool = False
    needs_importance: bool = False
    distinct: bool = True


class Form:
    """Drops criteria, then rubrics, that break rules of form.

    Args:
        rules: the rules. What a rubric must have is checked when its criteria have been.
    """

    def __init__(self, rules: FormRules | None = None, *, name: str = "form") -> None:
        self.rules = rules or FormRules()
        self.name = name

    @property
    def fingerprint(self) -> str:
        """Of the rules."""
        return fingerprint(["form", asdict(self.rules)])

    async def apply(self, cases: Sequence[Case]) -> Filtered:
        """One entry a case, in order."""
        return collected([self._outcome(place, case) for place, case in enumerate(cases)])

    def _outcome(self, place: int, case: Case) -> Outcome:
        outcome = Outcome(self.name, place, case)
        seen = dict[tuple[object, ...], str]()
        left = list[Criterion]()
        for criterion in case.rubric.criteria:
            key = (canonical(criterion.text).casefold(), criterion.path, criterion.condition, criterion.polarity)
            same = seen.setdefault(key, criterion.id)
            words = len(words_of(criterion.text))
            reason = self._fault(criterion, words)
            if not reason and same != criterion.id and self.rules.distinct:
                reason = f"it has the text of {same!r}"
            if reason:
                outcome.drop(criterion.id, reason, words=words, weight=criterion.weight)
            else:
                left.append(criterion)
        reason = self._rubric_fault(left) if left else ""
        if reason:
            outcome.drop_rubric(reason, criteria=len(left))
        return outcome

    def _fault(self, criterion: Criterion, words: int) -> str:
        rules = self.rules
        weight = criterion.weight
        checks: list[tuple[bool, str]] = [
            (rules.min_words is not None and words < rules.min_words, f"fewer than {rules.min_words} words"),
            (rules.max_words is not None and words > rules.max_words, f"more than {rules.max_words} words"),
            (rules.min_weight is not None and weight < rules.min_weight, f"a weight below {rules.min_weight}"),
            (rules.max_weight is not None and weight > rules.max_weight, f"a weight above {rules.max_weight}"),
            (rules.whole_weights and weight != int(weight), "its weight is no whole number"),
            (rules.needs_kind and criterion.kind is None, "it is neither hard rule nor principle"),
            (rules.needs_importance and criterion.importance is None, "it has no importance"),
        ]
        return next((reason for broken, reason in checks if broken), "")

    def _rubric_fault(self, left: Sequence[Criterion]) -> str:
        rules = self.rules
        if rules.min_criteria is not None and len(left) < rules.min_criteria:
            return f"fewer than {rules.min_criteria} criteria"
        if rules.max_criteria is not None and len(left) > rules.max_criteria:
            return f"more than {rules.max_criteria} criteria"
        if rules.needs_reward and not any(c.polarity is Polarity.REWARD and c.weight > 0 for c in left):
            return "no reward criterion has a weight above 0"
        return ""


_RULES = ("R401", "R402", "R403")


class SelfContained:
    """Drops criteria that cannot be judged alone: they speak of other criteria, point outside themselves, or name a
    reference answer that there is none of (the linter's rules R401, R402 and R403).

    Args:
        select: codes of the linter's rules to use; any of its rules.
        action: `flag` leaves them in.
    """

    def __init__(
        self, select: Sequence[str] = _RULES, *, action: Action = "drop", name: str = "self_contained"
    ) -> None:
        _check_action(action)
        self.select = tuple(select)
        self.action: Action = action
        self.name = name

    @property
    def fingerprint(self) -> str:
        """Of the rules' codes and the action."""
        return fingerprint(["self-contained", list(self.select), self.action])

    async def apply(self, cases: Sequence[Case]) -> Filtered:
        """One entry a case, in order. The case's prompt and reference are what the linter sees."""
        rubrics = [_with_reference(case) for case in cases]
        prompts = [case.prompt_text or None for case in cases]
        outcomes = [Outcome(self.name, place, case) for place, case in enumerate(cases)]
        found = await alint(rubrics, prompts=prompts, select=self.select) if rubrics else []
        said = set[tuple[int, str]]()
        for finding in found:
            name = finding.criterion_ids[0] if finding.criterion_ids else ""
            known = name in cases[finding.index].rubric.ids
            if not known or (finding.index, name) in said:
                continue
            said.add((finding.index, name))
            outcome = outcomes[finding.index]
            if self.action == "drop":
                outcome.drop(name, finding.message, rule=finding.code)
            else:
                outcome.flag(name, finding.message, rule=finding.code)
        return collected(outcomes)


def _with_reference(case: Case) -> Rubric:
    """The rubric with the case's reference where the linter looks for one."""
    if case.reference is None:
        return case.rubric
    return case.rubric.model_copy(update={"metadata": {**case.rubric.metadata, "reference": case.reference}})


def _check_action(action: str) -> None:
    if action not in get_args(Action):
        raise ConfigError(f"action is {action!r}", hint="use 'drop' or 'flag'")


def quotation(text: str, source: str, without: Sequence[str], size: int) -> str:
    """The longest run of a text's words, `size` or more, that stands in `source` and not in `without`; "" for none.

    Letter case, punctuation and Unicode's compatibility forms make no difference.
    """
    return " ".join(quoted(words_of(text), words_of(source), [words_of(one) for one in without], size))


class Leakage:
    """Finds criteria that give the reference answer away: runs of its words, and its numbers.

    Ours. What stands in the prompt too is no leak. A number counts where it has two digits or more, or where the
    whole reference is at most `short` words long, so that list numbers and small counts do not. A rubric that
    grades facts has to name them, hence the default only flags; dropping suits rubrics that the policy is shown,
    or that are meant to be free of the reference. Without a reference nothing can leak.

    Args:
        words: words in a row that are a quotation.
        numbers: look for numbers.
        short: see above.
        action: `flag` (default) or `drop`.

    Raises ConfigError for options outside their ranges.
    """

    def __init__(
        self,
        *,
        words: int = 8,
        numbers: bool = True,
        short: int = 5,
        action: Action = "flag",
        name: str = "leakage",
    ) -> None:
        _check_action(action)
        if words < 1 or short < 0:
            raise ConfigError(f"words is {words} and short {short}", hint="use 1 or more, and 0 or more")
        self.words = words
        self.numbers = numbers
        self.short = short
        self.action: Action = action
        self.name = name

    @property
    def fingerprint(self) -> str:
        """Of the options."""
        return fingerprint(["leakage", self.words, self.numbers, self.short, self.action])

    async def apply(self, cases: Sequence[Case]) -> Filtered:
        """One entry a case, in order."""
        return collected([self._outcome(place, case) for place, case in enumerate(cases)])

    def _outcome(self, place: int, case: Case) -> Outcome:
        outcome = Outcome(self.name, place, case)
        if not case.reference:
            return outcome
        prompt = case.prompt_text
        secret = self._secret_numbers(case.reference, prompt)
        say = outcome.drop if self.action == "drop" else outcome.flag
        for criterion in case.rubric.criteria:
            run = quotation(criterion.text, case.reference, [prompt], self.words)
            told = [number for number in numbers_of(criterion.text) if number in secret]
            if run:
                say(criterion.id, f'it quotes the reference answer: "{run[:120]}"', words=len(run.split()))
            elif told:
                say(criterion.id, f"it tells a number of the reference answer: {told[0]}", numbers=len(told))
        return outcome

    def _secret_numbers(self, reference: str, prompt: str) -> set[str]:
        if not self.numbers:
            return set()
        least = 1 if len(words_of(reference)) <= self.short else 2
        found = set(numbers_of(reference)) - set(numbers_of(prompt))
        return {number for number in found if sum(char.isdigit() for char in number) >= least}
