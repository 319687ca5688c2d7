"""Rows to fine-tune a rubric generator and a rubric judge on, from what label consistency kept (2510.07743)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from rubricate.chat.reasoning import strip_reasoning
from rubricate.data.turns import prompt_of
from rubricate.errors import ConfigError
from rubricate.prompts import Prompt, load_prompt
from rubricate.prompts.fence import fence, make_nonce
from rubricate.rubrics.criterion import CriterionKind, Polarity
from rubricate.rubrics.filters.base import Case, Trace
from rubricate.rubrics.formats.tagged_text import TAGS
from rubricate.rubrics.rubric import Rubric

__all__ = ["RowLayout", "TrainingRows", "generator_rows", "judge_rows", "tagged_rubric_text"]

RowLayout = Literal["messages", "text", "instruction"]
"""Columns of a row: `prompt` and `completion` as messages or as text, both of which `rubricate train sft` and TRL
read; or `instruction` and `output` as text, the columns of the published judge rows."""

_WINNER = re.compile(r"^[\s*_#>-]*winner\s*[:：]\s*[*_]*\s*(?:response\s*)?([AB])\b", re.I | re.M)
_WINNER_LINE = re.compile(r"^[\s*_#>-]*winner\s*[:：]", re.I | re.M)


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows, and why others are none.

    Attributes:
        rows: JSON-ready; besides the columns of the layout, `id`, and `rubric_fingerprint`.
        dropped: reason to number of what could not become a row.
    """

    rows: tuple[dict[str, object], ...]
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])


def tagged_rubric_text(rubric: Rubric) -> str:
    """The rubric as the numbered list that Rubric-RM's generator writes, each item closed by its tag.

    Raises ConfigError for a criterion without a kind, which has no tag, and for a penalty, which the form has not.
    """
    lines: list[str] = []
    for number, one in enumerate(rubric.criteria, start=1):
        if one.kind is None:
            raise ConfigError(f"{one.id!r} is neither a hard rule nor a principle", hint="set its kind")
        if one.polarity is Polarity.PENALTY:
            raise ConfigError(f"{one.id!r} is a penalty, and the form knows none", hint="leave it out")
        lines.append(f"{number}. {' '.join(one.text.split())} {TAGS[one.kind]}")
    return "\n".join(lines)


def generator_rows(
    cases: Iterable[Case], *, layout: RowLayout = "messages", prompt: Prompt | None = None
) -> TrainingRows:
    """Rows for the generator: the request alone in, the rubric out, as `TrainedGenerator` asks and reads.

    Args:
        cases: rubrics that are to be learnt, such as `Filtered.kept` of label consistency.
        layout: columns.
        prompt: the generator's template; that of `TrainedGenerator` unless given.

    Rubrics that the tagged form cannot hold are left out and counted. Raises ConfigError for a layout that does not
    exist.
    """
    _check(layout)
    template = prompt or load_prompt("generate_rubric_rm")
    rows, dropped = list[dict[str, object]](), Counter[str]()
    for case in cases:
        if not case.prompt_text.strip():
            dropped["the case has no prompt"] += 1
            continue
        try:
            text = tagged_rubric_text(case.rubric)
        except ConfigError as error:
            dropped[re.sub(r"'[^']*'", "a criterion", error.message)] += 1
            continue
        rows.append(_row(*_rendered(template, {"task": case.prompt_text}), text, layout, case.name, case.rubric))
    return TrainingRows(tuple(rows), dict(dropped))


def judge_rows(
    traces: Iterable[Trace],
    *,
    layout: RowLayout = "messages",
    prompt: Prompt | None = None,
    fenced: bool = False,
    reference: bool = True,
    run_key: str = "rubricate",
) -> TrainingRows:
    """Rows for the judge: Rubric-RM's prompt with request, rubric and both responses in, the judge's reply out.

    Only replies that are right are traces (`filters.LabelConsistency` with a judge of the style `rubric-rm`). Here
    a reply must also have exactly one line "Winner:", which names the preferred response as it was shown; other
    replies are left out and counted. Reasoning is taken off. The prompt is the one that
    `PairwiseJudge(style="rubric-rm", fenced=fenced)` asks.

    Args:
        traces: replies of a judge that are right.
        layout: columns.
        prompt: the judge's template.
        fenced: put texts between tags that only we can close. Train as the judge will be asked.
        reference: show a reference answer where the pair has one.
        run_key: key of the hash in the tags.

    Raises ConfigError for a layout that does not exist.
    """
    _check(layout)
    template = prompt or load_prompt("rubric_rm_judge")
    rows, dropped = list[dict[str, object]](), Counter[str]()
    for trace in traces:
        reply = strip_reasoning(trace.reply).strip()
        fault = _reply_fault(reply, trace.order)
        if fault:
            dropped[fault] += 1
            continue
        asked = _rendered(template, _judged(trace, fenced, reference, run_key))
        rows.append(_row(*asked, reply, layout, trace.pair.id, trace.rubric) | {"order": trace.order})
    return TrainingRows(tuple(rows), dict(dropped))


def _reply_fault(reply: str, order: str) -> str:
    if not reply:
        return "the judge kept no reply"
    if len(_WINNER_LINE.findall(reply)) != 1:
        return 'not exactly one line "Winner:"'
    named = _WINNER.findall(reply)
    wanted = "A" if order == "given" else "B"
    return "" if [side.upper() for side in named] == [wanted] else "its winner is not the preferred response"


def _judged(trace: Trace, fenced: bool, reference: bool, run_key: str) -> dict[str, object]:
    pair = trace.pair
    shown = (pair.chosen, pair.rejected) if trace.order == "given" else (pair.rejected, pair.chosen)
    texts = {
        "task": prompt_of(pair.prompt),
        "reference": (pair.reference or "") if reference else "",
        "response_A": strip_reasoning(shown[0]),
        "response_B": strip_reasoning(shown[1]),
    }
    if fenced:
        nonce = make_nonce(run_key, *texts.values())
        texts = {label: fence(label, text, nonce) if text else "" for label, text in texts.items()}
    criteria = [
        {
            "text": one.text,
            "tag": TAGS[one.kind or CriterionKind.PRINCIPLE],
            "penalty": "yes" if one.polarity is Polarity.PENALTY else "",
            "condition": one.condition or "",
        }
        for one in trace.rubric.criteria
    ]
    return {
        "task": texts["task"],
        "reference": texts["reference"],
        "criteria": criteria,
        "a": texts["response_A"],
        "b": texts["response_B"],
        "complaint": "",
    }


def _rendered(template: Prompt, values: Mapping[str, object]) -> tuple[str, str]:
    """System and user text of a template."""
    system = template.render("system", values).strip()
    return system, (template.render("shared", values) + template.render("item", values)).strip()


def _row(system: str, user: str, answer: str, layout: RowLayout, name: str, rubric: Rubric) -> dict[str, object]:
    asked = f"{system}\n\n{user}" if system else user
    columns: dict[str, object]
    if layout == "messages":
        before = [{"role": "system", "content": system}] if system else []
        prompt = [*before, {"role": "user", "content": user}]
        columns = {"prompt": prompt, "completion": [{"role": "assistant", "content": answer}]}
    elif layout == "text":
        columns = {"prompt": f"{asked}\n", "completion": answer}
    else:
        columns = {"instruction": asked, "output": answer}
    return columns | {"id": name, "rubric_fingerprint": rubric.fingerprint}


def _check(layout: str) -> None:
    if layout not in get_args(RowLayout):
        raise ConfigError(f"layout is {layout!r}", hint=f"use {', '.join(get_args(RowLayout))}")
