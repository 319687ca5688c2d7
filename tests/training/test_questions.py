"""What is trained on is what the judge asks: the same requests, the same tokens, the same probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.chat.local import load_local
from rubricate.data.records import Rollout
from rubricate.errors import ChatError, ConfigError, ContextOverflowError
from rubricate.judges.calibrated import Labelled, gather_probabilities
from rubricate.judges.logprob import LogprobJudge
from rubricate.rubrics import Criterion, NumericScale
from rubricate.training.answer_trainer import SheetCollator, score_sheets
from rubricate.training.base_models import Base, load_base, make_tiny
from rubricate.training.questions import Listener, find_answer_tokens, group_sheets, make_sheet, requests_of
from rubricate.training.recipe import ModelSettings

TEXTS = ("The response names a fruit.", "It is short.", "It rhymes, and yet it does not.")
RESPONSES = ("An apple a day.", "Yes, <|end|> no.", "Ünïcode 🍎 and\n\nmore")


class Tapped(ChatModel):
    """The local back end, with what it was asked."""

    def __init__(self, inner: ChatModel) -> None:
        self.inner = inner
        self.name = inner.name
        self.heard: list[ChatRequest] = []

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    async def complete(self, request: ChatRequest) -> Completion:
        raise AssertionError("one by one")

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        self.heard += requests
        return await self.inner.complete_many(requests)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    make_tiny(path, [*TEXTS, *RESPONSES] * 20)
    return path


@pytest.fixture(scope="module")
def base(folder: Path) -> Base:
    return load_base(ModelSettings(name="tiny", device="cpu"), tiny=folder)


def labelled() -> list[Labelled]:
    return [
        Labelled(Rollout("Say something.", response, reference=reference), Criterion(id=f"c{n}", text=text), n == 1)
        for response, reference in zip(RESPONSES, (None, "A pear.", None), strict=True)
        for n, text in enumerate(TEXTS)
    ]


async def test_requests_and_probabilities_are_those_of_the_judge(base: Base, folder: Path) -> None:
    items = labelled()
    model = Tapped(load_local(str(folder), device="cpu"))
    # a random model has nearly all its mass elsewhere; its judge would not answer
    found = await gather_probabilities(
        LogprobJudge(model, max_outside=1.0, top_logprobs=10_000), items, concurrency=1
    )
    listening = LogprobJudge(Listener(), top_logprobs=10_000)
    groups = group_sheets(items)
    assert model.heard == [
        request
        for group in groups
        for request in requests_of(listening, group[0].rollout, [item.criterion for item in group])
    ]
    sheets = [make_sheet(listening, base.codec, group) for group in groups]
    assert [p for sheet in sheets for p in sheet.prompts] == [base.codec.encode(request) for request in model.heard]
    tokens = find_answer_tokens(base.codec, model.heard[0], vocabulary=base.vocabulary)
    for row_tokens in (0, 5000):
        scores = score_sheets(base.module, SheetCollator(sheets, tokens, row_tokens=row_tokens), batch=2)
        assert scores.probabilities.tolist() == pytest.approx(found.probabilities, abs=1e-4)
        assert scores.labels.tolist() == list(found.labels)
    await model.inner.aclose()


def test_the_answer_is_the_token_that_follows_the_prefill(base: Base) -> None:
    request = requests_of(LogprobJudge(Listener()), Rollout("p", "r"), [Criterion(id="c", text="t")])[0]
    tokens = find_answer_tokens(base.codec, request, vocabulary=base.vocabulary)
    assert (base.codec.piece(tokens.yes), base.codec.piece(tokens.no)) == (" yes", " no")
    assert tokens.yes in tokens.yes_all and tokens.no in tokens.no_all
    assert not set(tokens.yes_all) & set(tokens.no_all)


def test_conditions_are_not_asked() -> None:
    criterion = Criterion(id="c", text="It is kind.", condition="The user is sad.")
    (request,) = requests_of(LogprobJudge(Listener()), Rollout("p", "r"), [criterion])
    assert "sad" not in request.text()


def test_graded_criteria_are_refused() -> None:
    graded = Criterion(id="c", text="How kind?", scale=NumericScale(low=0, high=10))
    with pytest.raises(ConfigError, match="not binary"):
        requests_of(LogprobJudge(Listener()), Rollout("p", "r"), [graded])


def test_a_question_above_the_limit_is_no_question(base: Base) -> None:
    items = labelled()[:3]
    with pytest.raises(ContextOverflowError, match="exceeds 20"):
        make_sheet(LogprobJudge(Listener()), base.codec, items, limit=20)


def test_equal_questions_are_branches_of_their_own(base: Base) -> None:
    item = labelled()[0]
    sheet = make_sheet(LogprobJudge(Listener()), base.codec, [item, item])
    assert sheet.prompts[0] == sheet.prompts[1]
    assert [len(branch) for branch in sheet.branches] == [1, 1]
