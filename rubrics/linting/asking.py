"""What the linter asks of models: which texts mean the same, and whether a prompt asks for a criterion."""

from __future__ import annotations

from collections.abc import Sequence

from rubricate.chat.base import ChatModel, ChatRequest, Completion, Message
from rubricate.data.jsontext import parse_json
from rubricate.embed import Embedder, similar_pairs
from rubricate.errors import ChatError, FormatError
from rubricate.narrow import as_array, as_object
from rubricate.prompts import load_prompt
from rubricate.rubrics.linting.base import Pair, Subject

__all__ = ["ask_prompts", "pair_up"]

MAX_TOKENS = 2048


async def pair_up(subjects: Sequence[Subject], embedder: Embedder) -> list[tuple[Pair, ...]]:
    """For each rubric the pairs of criteria in one group whose embeddings are alike; each text is embedded once.

    Raises whatever the embedder raises.
    """
    groups = [[group for group in subject.siblings if len(group) > 1] for subject in subjects]
    texts = {
        subject.criteria[index].text: None
        for subject, found in zip(subjects, groups, strict=True)
        for group in found
        for index in group
    }
    if not texts:
        return [() for _ in subjects]
    rows = await embedder.embed(list(texts))
    place = {text: index for index, text in enumerate(texts)}
    return [
        tuple(
            Pair(group[first], group[second], alike)
            for group in found
            for first, second, alike in similar_pairs(
                rows[[place[subject.criteria[index].text] for index in group]], subject.limits.similar_cosine
            )
        )
        for subject, found in zip(subjects, groups, strict=True)
    ]


async def ask_prompts(subjects: Sequence[Subject], model: ChatModel) -> list[tuple[dict[int, str] | None, str]]:
    """For each rubric with a prompt, which criteria the prompt does not ask for, with the model's reasons.

    The second value says why there is no answer; "" where there is one or nothing was asked.
    """
    prompt = load_prompt("linting_unasked")
    asked = [index for index, subject in enumerate(subjects) if subject.prompt.strip()]
    requests = [
        ChatRequest(
            messages=(
                Message("system", prompt.render("system", {})),
                Message(
                    "user",
                    prompt.render(
                        "item",
                        {
                            "prompt": subjects[index].prompt,
                            "reference": subjects[index].reference,
                            "criteria": [criterion.text for criterion in subjects[index].criteria],
                        },
                    ),
                ),
            ),
            max_tokens=MAX_TOKENS,
        )
        for index in asked
    ]
    replies = await model.complete_many(requests) if requests else []
    answers: list[tuple[dict[int, str] | None, str]] = [(None, "") for _ in subjects]
    for index, reply in zip(asked, replies, strict=True):
        answers[index] = _read(reply, len(subjects[index].criteria), model.name)
    return answers


def _read(reply: Completion | ChatError, count: int, name: str) -> tuple[dict[int, str] | None, str]:
    """The reply as numbers and reasons. What cannot be read is unknown, never `asked for`."""
    if isinstance(reply, ChatError):
        return None, reply.message
    try:
        text = reply.require_text(name)
        start, end = text.find("["), text.rfind("]")
        value = as_array(parse_json(text[start : end + 1], line=None)) if 0 <= start < end else None
    except (ChatError, FormatError) as error:
        return None, error.message
    if value is None:
        return None, "the reply holds no list"
    found: dict[int, str] = {}
    for item in value:
        entry = as_object(item) or {"criterion": item}
        number, why = entry.get("criterion"), entry.get("why", "")
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
            return None, f"the reply names a criterion {str(number)[:20]!r} of {count}"
        found[number - 1] = why.strip()[:200] if isinstance(why, str) else ""
    return found, ""
