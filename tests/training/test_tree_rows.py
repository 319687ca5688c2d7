"""Sheets as trees: loss and gradients are those of separate prompts, whatever is packed into a row."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.local.conftest import build_model

from rubricate.chat.local_torch import ints
from rubricate.training.answer_trainer import Forward, answer_loss
from rubricate.training.tree_rows import IGNORED, TreeBatch, lay_rows, lay_tree, tree_size

Prompts = list[list[int]]

prompts_of_a_sheet = st.tuples(
    st.lists(st.integers(3, 6), max_size=12),
    st.lists(st.lists(st.integers(3, 6), min_size=1, max_size=6), min_size=1, max_size=5),
).map(lambda parts: [parts[0] + branch for branch in parts[1]])


def inputs_of(batch: TreeBatch) -> dict[str, torch.Tensor]:
    return {
        "input_ids": batch.input_ids,
        "position_ids": batch.position_ids,
        "attention_mask": batch.attention_mask,
        "labels": batch.labels,
    }


@given(st.lists(prompts_of_a_sheet, min_size=1, max_size=4), st.sampled_from([0, 16, 1000]))
def test_every_answer_sees_its_own_prompt_and_nothing_else(sheets: list[Prompts], row_tokens: int) -> None:
    labels = [[100 * s + n for n in range(len(sheet))] for s, sheet in enumerate(sheets)]
    batch = lay_rows(sheets, labels, row_tokens=row_tokens)
    seen: set[tuple[int, int]] = set()
    for row, places in enumerate(batch.places):
        first = batch.labels.shape[1] - len(places)
        assert (batch.labels[row, :first] == IGNORED).all()
        for column, (sheet, number) in enumerate(places, start=first):
            position = batch.input_ids.shape[1] - batch.labels.shape[1] + column
            allowed = batch.attention_mask[row, 0, position].nonzero().flatten()
            order = allowed[batch.position_ids[row, allowed].argsort()]
            assert ints(batch.input_ids[row, order]) == sheets[sheet][number]
            assert ints(batch.position_ids[row, order]) == list(range(len(sheets[sheet][number])))
            assert int(batch.labels[row, column]) == 100 * sheet + number
            seen.add((sheet, number))
    assert len(seen) == sum(map(len, sheets))


@given(prompts_of_a_sheet)
def test_a_tree_holds_each_shared_beginning_once(prompts: Prompts) -> None:
    beginnings = {tuple(prompt[:n]) for prompt in prompts for n in range(1, len(prompt))}
    assert lay_tree(prompts).size == tree_size(prompts) == len(beginnings) + len(prompts)


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("row_tokens", [0, 64, 1000])
def test_loss_and_gradients_are_those_of_separate_prompts(kind: str, row_tokens: int) -> None:
    random = torch.Generator().manual_seed(1)

    def draw(count: int) -> list[int]:
        return ints(torch.randint(3, 280, (count,), generator=random))

    start = draw(5)
    sheets = [[start + shared + draw(length) for length in (3, 9, 1)] for shared in (draw(20), draw(7), draw(40))]
    labels = [draw(len(sheet)) for sheet in sheets]
    model = cast("torch.nn.Module", build_model(kind))

    def run(batches: list[TreeBatch]) -> tuple[float, dict[str, torch.Tensor]]:
        model.zero_grad()
        total = 0.0
        for batch in batches:
            loss, _ = answer_loss(cast("Forward", model), inputs_of(batch))
            torch.autograd.backward(loss)
            total += loss.item()
        return total, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    apart = [
        lay_rows([[prompt]], [[label]], row_tokens=0)
        for sheet, answers in zip(sheets, labels, strict=True)
        for prompt, label in zip(sheet, answers, strict=True)
    ]
    separate, wanted = run(apart)
    together, found = run([lay_rows(sheets, labels, row_tokens=row_tokens)])
    assert together == pytest.approx(separate, rel=1e-5)
    assert wanted.keys() == found.keys()
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-4, msg=name)


def test_a_plain_causal_model_agrees() -> None:
    """Separate prompts are what the model itself makes of plain tokens, without masks or positions."""
    model = cast("torch.nn.Module", build_model("llama"))
    prompt = [5, 9, 200, 17, 33]
    loss, logits = answer_loss(cast("Forward", model), inputs_of(lay_rows([[prompt]], [[7]], row_tokens=0)))
    plain = cast("Forward", model)(input_ids=torch.tensor([prompt])).logits[0, -1].float()
    torch.testing.assert_close(logits[0, 0], plain, rtol=1e-4, atol=1e-4)
    assert loss.item() == pytest.approx(-torch.log_softmax(plain, -1)[7].item(), rel=1e-4)
