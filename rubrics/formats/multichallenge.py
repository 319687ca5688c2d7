"""MultiChallenge (2501.17399): a conversation, one yes/no question about the answer, and the verdict that passes.

A row has QUESTION_ID, AXIS, CONVERSATION (chat messages), TARGET_QUESTION and PASS_CRITERIA, "YES" or "NO"; a
response passes when the judge's verdict on the question equals PASS_CRITERIA. Names and rule as in
data/benchmark_questions.jsonl, src/data_loader.py and src/evaluator.py of the published code (read in the copy
zhendong-nexusflow/MultiChallengeBench, fe767df; ekwinox117/multi-challenge is the original). The same names in
lower case, as conversions of the data have them, are read and written too. AXIS is the criterion's channel.

One criterion, always of polarity `reward` and weight 1. Where NO passes, its text is the question behind "The
answer to this question is NO: ". A penalty would say the same of the response, but not of its reward: where only
what earns is in the denominator, passing would be worth 0, or nothing at all, and failing -1; and added to other
criteria it could only cost, while a row that passes with YES earns. As a reward, passing is 1 and failing 0
everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import (
    build_criterion,
    build_rubric,
    optional_text,
    record_id,
    text_at,
    with_id,
)
from rubricate.rubrics.formats.layers import with_order
from rubricate.rubrics.formats.layout import arranged, check_reserved
from rubricate.rubrics.formats.losses import criterion_losses, metadata_losses, rubric_losses, unmarked
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT", "NO_PREFIX"]

NO_PREFIX = "The answer to this question is NO: "
"""What stands before the question in the text of a criterion that is met when the answer is no."""

_MARK = "multichallenge:"
_CASE, _PASS, _ORDER = _MARK + "case", _MARK + "pass", _MARK + "order"
_ID, _AXIS, _QUESTION, _VERDICT = "QUESTION_ID", "AXIS", "TARGET_QUESTION", "PASS_CRITERIA"
_FIELDS = (_AXIS, _QUESTION, _VERDICT)


def _is_item(item: Mapping[str, object]) -> bool:
    return False


def _is_record(record: Mapping[str, object]) -> bool:
    return _QUESTION in record or _VERDICT in record or {_QUESTION.lower(), _VERDICT.lower()} <= record.keys()


def _named(name: str, lower: bool) -> str:
    return name.lower() if lower else name


def _parse(value: object, place: Place, options: Options) -> Rubric:
    record = as_object(value)
    if record is None:
        raise place.error(f"expected an object, got {type(value).__name__}")
    check_reserved(record, _MARK, place)
    lower = not {_QUESTION, _VERDICT} & record.keys() and _QUESTION.lower() in record
    axis, question, verdict = (_named(name, lower) for name in _FIELDS)
    passes, spelling = _verdict(text_at(record, verdict, place), place.at(verdict))
    asked = text_at(record, question, place)
    metadata: dict[str, object] = {}
    if spelling != passes or (passes == "YES" and _negated(asked)):
        metadata[_PASS] = spelling
    fields = {
        "id": "c1",
        "text": asked if passes == "YES" else NO_PREFIX + asked,
        "channel": optional_text(record, axis, place),
        "metadata": metadata,
    }
    criterion = build_criterion(fields, place, {"text": question, "channel": axis})
    rest = {name: part for name, part in record.items() if name not in (axis, question, verdict)}
    rubric_id, metadata = record_id(rest, _named(_ID, lower))
    rubric = build_rubric(
        place, [criterion], rubric_id=rubric_id, metadata=metadata | ({_CASE: "lower"} if lower else {})
    )
    return with_order(rubric, record, _dump, _ORDER)


def _verdict(text: str, place: Place) -> tuple[str, str]:
    """YES or NO, and how the source spells it; spellings other than these two in capitals get a note."""
    verdict = text.strip().upper()
    if verdict not in ("YES", "NO"):
        raise place.error(f"expected YES or NO, got {text[:20]!r}", hint="say which answer to the question passes")
    if verdict != text:
        place.note("layout", f"{text!r} is read as {verdict}; the published code compares it as it stands")
    return verdict, text


def _negated(text: str) -> bool:
    """Whether a text is a question behind the words that turn it round."""
    return text.startswith(NO_PREFIX) and bool(text[len(NO_PREFIX) :].strip())


def _split(criterion: Criterion) -> tuple[str, str]:
    """The question, and the answer to it that is good, as the source spells that."""
    good = criterion.polarity is Polarity.REWARD
    mark = criterion.metadata.get(_PASS)
    spelling = mark if isinstance(mark, str) else ""
    kept = spelling.strip().upper()
    if _negated(criterion.text) and not (good and kept == "YES"):
        question, verdict = criterion.text[len(NO_PREFIX) :], "NO" if good else "YES"
    else:
        question, verdict = criterion.text, "YES" if good else "NO"
    return question, spelling if kept == verdict else verdict


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    criterion = rubric.criteria[0]
    if len(rubric) > 1:
        message = f"multichallenge holds one criterion, this rubric has {len(rubric)}"
        raise place.error(message, hint="write one rubric for each criterion")
    lower = rubric.metadata.get(_CASE) == "lower"
    axis, question, verdict = (_named(name, lower) for name in _FIELDS)
    taken = (axis, question, verdict)
    metadata = {name: part for name, part in unmarked(rubric.metadata, _MARK).items() if name not in taken}
    record = with_id(rubric, _named(_ID, lower), metadata)
    order = as_array(rubric.metadata.get(_ORDER)) or ()
    if criterion.channel is not None or axis in order:
        record[axis] = criterion.channel
    record[question], record[verdict] = _split(criterion)
    return arranged(record, order or [_named(_ID, lower), axis])


def _losses(rubric: Rubric) -> list[str]:
    criterion = rubric.criteria[0]
    lower = rubric.metadata.get(_CASE) == "lower"
    lost = criterion_losses(rubric, {"channel"}) + rubric_losses(rubric, ())
    if criterion.id != "c1":
        lost.append(f"id ({criterion.id})")
    if criterion.weight != 1.0:
        lost.append(f"weight ({criterion.weight:g})")
    if criterion.polarity is Polarity.PENALTY:
        lost.append(f"polarity (the penalty {criterion.id} is written as a question that is good to deny)")
    lost += [f"metadata.{name} ({criterion.id})" for name in unmarked(criterion.metadata, _MARK)]
    return lost + metadata_losses(rubric, [_named(name, lower) for name in _FIELDS], ())


FORMAT = Format(
    name="multichallenge",
    shape='{"QUESTION_ID", "AXIS", "CONVERSATION", "TARGET_QUESTION", "PASS_CRITERIA": "YES" or "NO"}',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    prompt="CONVERSATION",
    prompts=("conversation",),
    messages=True,
)
