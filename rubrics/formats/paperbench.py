"""PaperBench trees (openai/frontier-evals): nested requirements with weights; leaves are graded.

Leaves become criteria, inner nodes groups; a weight counts among siblings. Nothing is signed: every leaf is a
reward. `task_category` is the channel. Trees that carry grades keep them in the metadata, and `graded_verdicts` and
`graded_scores` read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rubricate.data.values import MAX_DEPTH
from rubricate.narrow import as_array, as_number, as_object
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import (
    build_criterion,
    build_rubric,
    check_weights,
    number,
    optional_text,
    text_at,
)
from rubricate.rubrics.formats.layout import check_reserved
from rubricate.rubrics.formats.losses import criterion_losses, metadata_losses, rubric_losses, unmarked
from rubricate.rubrics.rubric import Group, Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Verdict

__all__ = ["FORMAT", "graded_scores", "graded_verdicts"]

_MARK = "paperbench:"
_ORIGINAL, _ORDER = _MARK + "id", _MARK + "order"
_FIELDS = ("id", "requirements", "weight", "sub_tasks")
_NAMES = {"text": "requirements", "channel": "task_category"}


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the tree, with the id that is unique in it and the ids of the nodes above."""

    id: str
    record: Mapping[str, object]
    place: Place
    path: tuple[str, ...]
    children: tuple[str, ...]

    @property
    def leaf(self) -> bool:
        return not self.children


def _is_record(record: Mapping[str, object]) -> bool:
    return "sub_tasks" in record or ("requirements" in record and "weight" in record)


def _is_item(item: Mapping[str, object]) -> bool:
    return False


def _children(record: Mapping[str, object], place: Place) -> list[Mapping[str, object]]:
    value = record.get("sub_tasks")
    listed = as_array(value) if value is not None else ()
    if listed is None:
        raise place.at("sub_tasks").error(f"expected a list of nodes, got {type(value).__name__}")
    nodes: list[Mapping[str, object]] = []
    for index, item in enumerate(listed):
        fields = as_object(item)
        if fields is None:
            raise place.at("sub_tasks", index).error(f"expected a node, got {type(item).__name__}")
        nodes.append(fields)
    return nodes


def _raw(value: object, place: Place, depth: int = 0) -> Iterator[tuple[Mapping[str, object], Place]]:
    """Every node and its place, parents first."""
    record = as_object(value)
    if record is None:
        raise place.error(f"expected a tree of nodes, got {type(value).__name__}")
    if 2 * depth >= MAX_DEPTH:
        raise place.error(f"the tree is deeper than {MAX_DEPTH // 2} levels")
    yield record, place
    for index, child in enumerate(_children(record, place)):
        yield from _raw(child, place.at("sub_tasks", index), depth + 1)


def _nodes(value: object, place: Place) -> list[_Node]:
    """All nodes, parents first, with ids that are unique: the second node of a name gets `~2`, and so on."""
    raw = list(_raw(value, place))
    ids = [text_at(record, "id", where) for record, where in raw]
    taken, seen = set(ids), Counter[str]()
    unique: list[str] = []
    for name, (_, where) in zip(ids, raw, strict=True):
        seen[name] += 1
        chosen = name
        if seen[name] > 1:
            suffix = seen[name]
            while (chosen := f"{name}~{suffix}") in taken:
                suffix += 1
            taken.add(chosen)
            message = f"the id {name!r} occurs more than once in the tree; this node is called {chosen!r}"
            where.at("id").note("duplicate_id", message, criterion_id=chosen)
        unique.append(chosen)
    return _linked(raw, unique, place)


def _linked(raw: Sequence[tuple[Mapping[str, object], Place]], ids: Sequence[str], root: Place) -> list[_Node]:
    by_path = {where.path: name for (_, where), name in zip(raw, ids, strict=True)}
    above: dict[tuple[str | int, ...], tuple[str, ...]] = {root.path: ()}
    nodes: list[_Node] = []
    for (record, where), name in zip(raw, ids, strict=True):
        path = above[where.path]
        inner = [(*where.path, "sub_tasks", index) for index in range(len(as_array(record.get("sub_tasks")) or ()))]
        above |= dict.fromkeys(inner, (*path, name))
        nodes.append(_Node(name, record, where, path, tuple(by_path[child] for child in inner)))
    return nodes


def _parse(value: object, place: Place, options: Options) -> Rubric:
    nodes = _nodes(value, place)
    weights = check_weights(
        [node.record for node in nodes], [node.place for node in nodes], "weight", negative=False
    )
    leaves = {node.id for node in nodes if node.leaf}
    criteria: list[Criterion] = []
    groups: list[Group] = []
    for node, weight in zip(nodes, weights, strict=True):
        if node.leaf:
            criteria.append(_criterion(node, weight))
        else:
            groups.append(_group(node, weight, leaves))
    return build_rubric(place, criteria, groups=groups, rubric_id=nodes[0].id)


def _metadata(node: _Node, without: Sequence[str]) -> dict[str, object]:
    check_reserved(node.record, _MARK, node.place)
    metadata = {key: part for key, part in node.record.items() if key not in without}
    if node.record["id"] != node.id:
        metadata[_ORIGINAL] = node.record["id"]
    return metadata


def _criterion(node: _Node, weight: float) -> Criterion:
    category = optional_text(node.record, "task_category", node.place)
    fields = {
        "id": node.id,
        "text": text_at(node.record, "requirements", node.place),
        "weight": weight,
        "channel": category or None,
        "path": node.path,
        "metadata": _metadata(node, (*_FIELDS, "task_category") if category else _FIELDS),
    }
    return build_criterion(fields, node.place, _NAMES)


def _group(node: _Node, weight: float, leaves: set[str]) -> Group:
    metadata = _metadata(node, _FIELDS)
    if list(node.children) != _usual_order(node.children, leaves):
        metadata[_ORDER] = list(node.children)
    text = optional_text(node.record, "requirements", node.place) or ""
    return Group(id=node.id, text=text, weight=weight, path=node.path, metadata=metadata)


def _usual_order(children: Sequence[str], leaves: set[str]) -> list[str]:
    """Groups first, then criteria, as a rubric keeps them apart."""
    return [name for name in children if name not in leaves] + [name for name in children if name in leaves]


# Writing


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    penalties = [criterion.id for criterion in rubric.criteria if criterion.polarity is Polarity.PENALTY]
    if penalties:
        message = f"paperbench has no penalties, and would reward the errors: {', '.join(penalties)}"
        raise place.error(message, hint="word them as what a good response does")
    below: dict[str, list[str]] = {}
    records: dict[str, dict[str, object]] = {}
    for node in (*rubric.groups, *rubric.criteria):
        records[node.id] = _record(node)
        below.setdefault(node.path[-1] if node.path else "", []).append(node.id)
    orders = {group.id: group.metadata.get(_ORDER) for group in rubric.groups}
    for group in rubric.groups:
        children = below.get(group.id, [])
        if not children:
            message = f"the group {group.id!r} is empty, and would be read as a criterion"
            raise place.error(message, hint="remove the group")
        order = as_array(orders[group.id]) or ()
        if sorted(map(str, order)) == sorted(children):
            children = [str(name) for name in order]
        records[group.id]["sub_tasks"] = [records[name] for name in children]
    bare = [criterion.id for criterion in rubric.criteria if "task_category" not in records[criterion.id]]
    if bare:
        place.note("layout", f"{len(bare)} leaves have no channel, hence no task_category")
    top = below[""]
    if len(top) == 1:
        return records[top[0]]
    root = _root(rubric, records)
    return root | {"sub_tasks": [records[name] for name in top]}


def _root(rubric: Rubric, taken: Mapping[str, object]) -> dict[str, object]:
    """A node above several: a tree has one root."""
    name = rubric.id or "root"
    while name in taken:
        name += "~"
    return {"id": name, "requirements": "All requirements are met.", "weight": 1}


def _record(node: Criterion | Group) -> dict[str, object]:
    head: dict[str, object] = {
        "id": node.metadata.get(_ORIGINAL, node.id),
        "requirements": node.text,
        "weight": number(node.weight),
        "sub_tasks": [],
    }
    if isinstance(node, Criterion) and node.channel is not None:
        head["task_category"] = node.channel
    extra = unmarked(node.metadata, _MARK)
    return head | {key: part for key, part in extra.items() if key not in head}


def _losses(rubric: Rubric) -> list[str]:
    tops = [node.id for node in (*rubric.groups, *rubric.criteria) if not node.path]
    group_fields = [
        f"metadata.{name} of the group {group.id}"
        for group in rubric.groups
        for name in group.metadata
        if name in _FIELDS
    ]
    return [
        *criterion_losses(rubric, {"channel", "path"}),
        *rubric_losses(rubric, {"groups"}),
        *metadata_losses(rubric, rubric.metadata.keys(), _FIELDS),
        *group_fields,
        *_top_losses(rubric, tops),
    ]


def _top_losses(rubric: Rubric, tops: Sequence[str]) -> list[str]:
    """What one root makes of a rubric: its id, and a level more where there are several nodes at the top."""
    if len(tops) > 1:
        return [f"{len(tops)} nodes at the top: a tree has one root, so one is added above them"]
    if rubric.id == tops[0]:
        return []
    return [
        f"id ({rubric.id})" if rubric.id else f"the id that is not set: it becomes that of the root ({tops[0]})"
    ]


FORMAT = Format(
    name="paperbench",
    shape='{"id", "requirements", "weight", "sub_tasks": [...], "task_category"}, a tree',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
)


# Grades


def _grade(node: _Node) -> float | None:
    """The score of a graded node, None where it is marked as invalid. Raises FormatError where there is none."""
    if "score" not in node.record:
        raise node.place.at("score").error("this node has no grade", hint="the tree is a rubric, not a graded one")
    valid = node.record.get("valid_score", True)
    if not isinstance(valid, bool):
        raise node.place.at("valid_score").error(f"expected true or false, got {type(valid).__name__}")
    if not valid:
        return None
    score = as_number(node.record["score"])
    if score is None or not 0.0 <= score <= 1.0:
        raise node.place.at("score").error("a score is a number from 0 to 1")
    return score


def graded_verdicts(value: object, *, place: Place | None = None) -> dict[str, Verdict]:
    """The verdicts on the leaves of a graded tree, by the ids that `parse_rubric` gives the criteria.

    A grade marked as invalid (`valid_score` false) is a failed verdict, never a number. Raises FormatError for a
    tree without grades.
    """
    verdicts: dict[str, Verdict] = {}
    for node in _nodes(value, place or Place()):
        if not node.leaf:
            continue
        score = _grade(node)
        reason = optional_text(node.record, "explanation", node.place) or ""
        if score is None:
            message = "the graded tree marks this score as invalid"
            failure = Failure(FailureKind.INTERNAL, FailureCause.INFRASTRUCTURE, message)
            verdicts[node.id] = Verdict.failed(node.id, failure, judge="paperbench", reason=reason)
        else:
            verdicts[node.id] = Verdict(node.id, score, raw=score, reason=reason, judge="paperbench")
    return verdicts


def graded_scores(value: object, *, place: Place | None = None) -> dict[str, float | None]:
    """The recorded score of every inner node of a graded tree, by group id; None where it is marked as invalid."""
    return {node.id: _grade(node) for node in _nodes(value, place or Place()) if not node.leaf}
