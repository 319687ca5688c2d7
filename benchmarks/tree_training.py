"""What it saves to train the criteria of a response on one shared prefix: tokens and time a check, by precision.

Run `python benchmarks/tree_training.py` (ten minutes; `--quick` three): forward and backward passes of SmolLM2-135M
with LoRA on ten checks a response, as a tree of prompts and as separate prompts. Both compute logits at the answers
only, and separate prompts come ten in a padded batch, so that the difference is the sharing alone.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import cast

import torch

from rubricate.chat.local_engine import open_engine
from rubricate.chat.local_host import LocalOptions
from rubricate.chat.local_source import resolve
from rubricate.data.bundled import load_demo
from rubricate.judges.calibrated import Labelled
from rubricate.judges.logprob import LogprobJudge
from rubricate.rubrics import Criterion
from rubricate.rubrics.formats import parse_rubric
from rubricate.training.answer_trainer import Forward, SheetCollator, answer_loss
from rubricate.training.questions import AnswerTokens, Listener, Sheet, find_answer_tokens, make_sheet, requests_of

CHECKS = 10


def labelled_responses(count: int) -> list[list[Labelled]]:
    """Demo responses, each with ten criteria of the demo's rubrics; labels alternate."""
    samples = load_demo()
    criteria = [c for sample in samples for c in parse_rubric(sample.rubric).criteria]
    sheets: list[list[Labelled]] = []
    for number in range(count):
        chosen = [criteria[(7 * number + n) % len(criteria)] for n in range(CHECKS)]
        rollout = samples[number % len(samples)].rollout
        sheets.append(
            [Labelled(rollout, Criterion(id=f"c{n}", text=c.text), n % 2 == 0) for n, c in enumerate(chosen)]
        )
    return sheets


def apart(sheet: Sheet) -> list[Sheet]:
    """Each question of a sheet as a sheet of its own."""
    return [replace(sheet, branches=(b,), items=(i,)) for b, i in zip(sheet.branches, sheet.items, strict=True)]


def lora(spec: str, dtype: torch.dtype) -> torch.nn.Module:
    """The model with fresh adapters on all linear layers."""
    from peft import LoraConfig, get_peft_model

    from rubricate.chat.local_load import load_model

    model, _ = load_model(resolve(spec), device="cpu", dtype=dtype)
    config = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    make = cast("Callable[..., torch.nn.Module]", get_peft_model)
    return make(model, config).train()


def autocast() -> AbstractContextManager[object]:
    """bf16 where torch deems it safe."""
    return torch.autocast("cpu", dtype=torch.bfloat16)


def seconds(model: torch.nn.Module, collate: SheetCollator, batches: Sequence[list[int]], bf16: bool) -> float:
    """CPU seconds of forward and backward over the batches, the first one run once more beforehand."""
    times: list[float] = []
    for numbers in (batches[0], *batches):
        inputs = collate([{"sheet": number} for number in numbers])
        start = time.process_time()
        with autocast() if bf16 else contextlib.nullcontext():
            loss, _ = answer_loss(cast("Forward", model), inputs)
        torch.autograd.backward(loss)
        times.append(time.process_time() - start)
    return sum(times[1:])


def chunks(count: int, size: int) -> list[list[int]]:
    """Numbers 0 to count - 1, `size` at a time."""
    return [list(range(first, min(first + size, count))) for first in range(0, count, size)]


def report(spec: str, sheets: Sequence[Sheet], tokens: AnswerTokens, quick: bool) -> None:
    """Print the table."""
    whole = [question for sheet in sheets for question in apart(sheet)]
    mean = statistics.mean(sheet.separate / len(sheet.branches) for sheet in sheets)
    print(f"{CHECKS} checks a response, {mean:.0f} tokens a question, {torch.get_num_threads()} threads\n")
    print("| precision | rows | tokens a check | CPU ms a check | of separate |\n|---|---|--:|--:|--:|")
    modes = (
        ("fp32", torch.float32, False),
        ("bf16 autocast", torch.float32, True),
        ("bf16", torch.bfloat16, False),
    )
    for name, dtype, bf16 in modes:
        model = lora(spec, dtype)
        few = 1 if quick else 4
        ways = [("separate", whole[: few * CHECKS], 0, CHECKS)]
        ways += [
            (f"tree, {room or 'a sheet'}", sheets, room, 4)
            for room in ((0, 1024) if quick else (0, 512, 1024, 2048))
        ]
        base = 0.0
        for label, some, room, size in ways:
            collate = SheetCollator(list(some), tokens, row_tokens=room)
            spent = seconds(model, collate, chunks(len(some), size), bf16)
            checks = sum(len(sheet.branches) for sheet in some)
            computed = sum(collate.rows(numbers).tokens for numbers in chunks(len(some), size))
            each = 1e3 * spent / checks
            base = base or each
            print(f"| {name} | {label} | {computed / checks:.0f} | {each:.0f} | {base / each:.1f}x |", flush=True)


def main() -> None:
    """Parse arguments, make the sheets, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--quick", action="store_true", help="fewer responses")
    options = parser.parse_args()
    engine = open_engine(resolve(options.model), LocalOptions(device="cpu"), "local:base")
    judge = LogprobJudge(Listener())
    groups = labelled_responses(4 if options.quick else 16)
    sheets = [make_sheet(judge, engine.codec, group) for group in groups]
    request = requests_of(judge, groups[0][0].rollout, [groups[0][0].criterion])[0]
    vocabulary = getattr(engine.network.model.config, "vocab_size", 0)
    tokens = find_answer_tokens(engine.codec, request, vocabulary=vocabulary)
    report(options.model, sheets, tokens, options.quick)


if __name__ == "__main__":
    main()
