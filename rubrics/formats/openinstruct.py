"""open-instruct's RLVR rows for its rubric verifier: `messages`, `ground_truth`, and `dataset`, which is "rubric".

Read in allenai/open-instruct (RubricVerifier and apply_verifiable_reward in ground_truth_utils.py; rubrics/ at
06b596f and 9bf051e). `ground_truth` is what DR Tulu has there, `{"query", "rubrics", "rubrics_types"}` as JSON text
or object; both columns may be lists with one element for each verifier. The verifier, chosen by `dataset` in any
case, is laxer than DR Tulu's code: the text is `description`, `rubric_item` or `Ingredient`, and a weight that is
missing counts 1. Judged 0, 1 or 2; a negative weight is a penalty.

Rows of DR Tulu's data look the same and say "general_rubric", which open-instruct is told to remap: these are
`drtulu`. Named, this format reads them too, and leaves the name of their verifier; other rubrics get "rubric".
"""

from __future__ import annotations

from collections.abc import Mapping

from rubricate.narrow import as_array, as_object
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import build_rubric, record_id, with_id
from rubricate.rubrics.formats.layout import arranged, check_reserved, order_mark
from rubricate.rubrics.formats.losses import metadata_losses, rubric_losses
from rubricate.rubrics.formats.tulu import (
    ITEM_FIELDS,
    Dialect,
    build_criteria,
    parse_list,
    payload_losses,
    read_rubrics,
    without_marks,
    write_rubrics,
)
from rubricate.rubrics.formats.tulucell import close_cell, filled, open_cell, verifier_names
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT"]

_VERIFIER = "rubric"
_DIALECT = Dialect("openinstruct", default=1.0)
_PAYLOAD = _DIALECT.mark("ground_truth")
_OTHER = _DIALECT.mark("other")  # the row is another verifier's, and was read by this format's name
_LISTS = ("rubrics", "rubrics_types")


def _is_item(item: Mapping[str, object]) -> bool:
    return False


def _is_record(record: Mapping[str, object]) -> bool:
    return "ground_truth" in record and _VERIFIER in verifier_names(record)


def _query(metadata: Mapping[str, object]) -> str:
    """The text of the last user message, "" where there is none: what `query` repeats."""
    turns = [as_object(turn) or {} for turn in as_array(metadata.get("messages")) or ()]
    texts = [turn.get("content") for turn in turns if turn.get("role") == "user"]
    return texts[-1] if texts and isinstance(texts[-1], str) else ""


def _parse(value: object, place: Place, options: Options) -> Rubric:
    record = as_object(value)
    if record is None:
        return parse_list(value, place, _DIALECT)
    check_reserved(record, _DIALECT.prefix, place)
    cell = open_cell(record, place, _DIALECT)
    if "rubrics" not in cell.payload:
        hint = f"fields here: {', '.join(cell.payload) or 'none'}"
        raise cell.where.at("rubrics").error("this field is missing", hint=hint)
    criteria = build_criteria(read_rubrics(cell.payload, cell.where, _DIALECT), _DIALECT)
    cell.check_numbers()
    rubric_id, metadata = record_id({key: part for key, part in record.items() if key != "ground_truth"}, "id")
    marks: dict[str, object] = {}
    if metadata.get("dataset") == _VERIFIER:
        del metadata["dataset"]  # written for every row that has none
    elif "dataset" in metadata and not _is_record(record):
        marks[_OTHER] = True
    last = [] if "dataset" in metadata else ["dataset"]
    usual = [*(["id"] if rubric_id else []), *metadata, "ground_truth", *last]
    skeleton = {key: None if key in _LISTS else part for key, part in cell.payload.items()}
    plain = dict[str, object]({"query": _query(metadata), "rubrics": None})
    plain |= {"rubrics_types": None} if any(criterion.tags for criterion in criteria) else {}
    marks |= {} if list(skeleton.items()) == list(plain.items()) else {_PAYLOAD: skeleton}
    marks |= cell.marks | order_mark(_DIALECT.order, record, usual)
    return build_rubric(cell.where, criteria, rubric_id=rubric_id, metadata=metadata | marks)


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    metadata = without_marks(rubric.metadata)
    skeleton = as_object(rubric.metadata.get(_PAYLOAD)) or {"query": _query(metadata), "rubrics": None}
    cell = close_cell(filled(skeleton, write_rubrics(rubric, _DIALECT)), rubric.metadata, _DIALECT)
    record = with_id(rubric, "id", {key: part for key, part in metadata.items() if key != "ground_truth"})
    record["ground_truth"] = cell
    order = as_array(rubric.metadata.get(_DIALECT.order))
    if _foreign(rubric):
        record["dataset"] = _VERIFIER
    if "dataset" not in record and (order is None or "dataset" in order):
        record["dataset"] = _VERIFIER
    return arranged(record, order)


def _foreign(rubric: Rubric) -> bool:
    """Whether the metadata names verifiers, none of which is this one, though the row is to be this one's."""
    metadata = rubric.metadata
    return "dataset" in metadata and _VERIFIER not in verifier_names(metadata) and _OTHER not in metadata


def _losses(rubric: Rubric) -> list[str]:
    return [
        *payload_losses(rubric),
        *rubric_losses(rubric, ()),
        *metadata_losses(rubric, {"ground_truth"} | ({"dataset"} if _foreign(rubric) else set()), ITEM_FIELDS),
    ]


FORMAT = Format(
    name="openinstruct",
    shape='{"messages", "ground_truth": JSON text of {"query", "rubrics": [{"description", "weight"}, ...]}, '
    '"dataset": "rubric"}',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    prompt="messages",
    messages=True,
    texts=("ground_truth",),
)
