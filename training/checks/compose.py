"""Putting a draft together: points, near misses, traits and marks of form, in a random layout."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import lru_cache

from rubricate.training.checks.banks import Banks, Form, Topic, Trait
from rubricate.training.checks.draft import Draft
from rubricate.training.checks.layout import LAYOUTS, Piece, render
from rubricate.training.checks.letters import add_letter_parts
from rubricate.training.checks.marks import mark_pieces, mute_marks
from rubricate.training.checks.measured import Measured
from rubricate.training.checks.plan import Plan, insert

__all__ = ["Settings", "compose"]

_STATED = (1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8)
_TRAITS = (1, 1, 2, 2, 3, 3, 4, 5)
_EVERYWHERE = frozenset(
    "what does your with that this have from about write please explain tell which when".split()
)
_LISTED = frozenset({"bullets", "numbered", "table", "json", "broken_json"})


@dataclass(frozen=True, slots=True)
class Settings:
    """How often a draft has what. Shares of drafts, in [0, 1].

    Attributes:
        boost: kinds whose phrases and marks are put in more often.
        clean: without traits, near misses and phrases, so that nothing in it is beside the point.
        present: a trait is fulfilled, rather than nearly missed.
    """

    boost: frozenset[str] = frozenset()
    clean: float = 0.15
    present: float = 0.6
    miss: float = 0.45
    aside: float = 0.25
    off_topic: float = 0.08
    other_language: float = 0.06
    reference: float = 0.2
    marks: tuple[tuple[str, float], ...] = (
        ("lower_case", 0.06),
        ("upper_case", 0.05),
        ("no_commas", 0.09),
        ("exclamation", 0.12),
        ("emoji", 0.13),
        ("bold", 0.13),
        ("italic", 0.08),
        ("title", 0.13),
        ("repeated", 0.09),
        ("cut", 0.08),
        ("mixed", 0.07),
        ("mixed_language", 0.0),
    )


def compose(topic: Topic, banks: Banks, rng: random.Random, settings: Settings) -> Draft:
    """A draft for a request, without instructions in the prompt."""
    source = topic
    if rng.random() < settings.off_topic:
        source = other_topic(topic, banks, rng) or topic
    elif rng.random() < settings.other_language:
        source = rng.choice([other for other in banks.topics if other.language != topic.language] or [topic])
    layout = rng.choices(list(LAYOUTS), weights=_layout_weights(settings))[0]
    plan = Plan(topic, source, layout, clean=rng.random() < settings.clean)
    if source.language != topic.language:
        plan.marks.add("other_language")
    _add_points(plan, rng, settings)
    _add_asides(plan, rng, settings)
    if not plan.clean:
        _add_traits(plan, banks, rng, settings)
    marks = {name for name, share in settings.marks if rng.random() < _boosted(name, share, settings)}
    mark_pieces(plan, marks, banks, rng)
    add_letter_parts(plan.frame, plan.marks, plan.layout, source, rng)
    if "title" in marks and layout != "headings" and not plan.marks & {"salutation", "subject_line"}:
        _add_title(plan, banks, rng)
    mute_marks(plan, marks)
    _doubt_points(plan)
    return _finish(plan, marks, rng, settings)


def _boosted(name: str, share: float, settings: Settings) -> float:
    return max(share, 0.3) if name in settings.boost else share


def _layout_weights(settings: Settings) -> list[float]:
    return [_boosted(name, share, settings) for name, share in LAYOUTS.items()]


def other_topic(topic: Topic, banks: Banks, rng: random.Random) -> Topic | None:
    """Another topic of the language: half the time the one whose requests share most words with this one's."""
    others = [other for other in banks.topics if other.language == topic.language and other.id != topic.id]
    if not others:
        return None
    if rng.random() < 0.5:
        return rng.choice(others)
    sample = rng.sample(others, min(8, len(others)))
    mine = _prompt_words(topic)
    return max(sample, key=lambda other: len(mine & _prompt_words(other)))


def _prompt_words(topic: Topic) -> set[str]:
    return {word for prompt in topic.prompts for word in re.findall(r"\w{4,}", prompt.casefold())}


def _add_points(plan: Plan, rng: random.Random, settings: Settings) -> None:
    points = list(plan.source.points)
    rng.shuffle(points)
    count = min(len(points), rng.choice(_STATED))
    if plan.layout in _LISTED or plan.layout == "headings":
        count = max(count, 2)
    for point in points[:count]:
        plan.frame.body.append(Piece(rng.choice(point.says), "point", point.id))
        plan.stated.append(point.id)
    if plan.clean:
        return
    misses = [point for point in points[count:] if point.misses and rng.random() < settings.miss]
    for point in misses[:3]:
        insert(plan.frame.body, Piece(rng.choice(point.misses), "miss", point.id), rng)
        plan.missed.add(point.id)


def _add_asides(plan: Plan, rng: random.Random, settings: Settings) -> None:
    share = 0.5 if plan.clean else settings.aside
    if not plan.source.asides or rng.random() >= share:
        return
    for text in rng.sample(plan.source.asides, min(len(plan.source.asides), rng.choice((1, 1, 2)))):
        insert(plan.frame.body, Piece(text, "aside"), rng)
        plan.asides += 1


def _phrased(banks: Banks, language: str) -> list[Trait | Form]:
    """Everything of a language that a phrase can bring about, by name; titles have their own place."""
    found: list[Trait | Form] = [item for (name, _), item in banks.traits.items() if name == language]
    found += [item for (name, kind), item in banks.forms.items() if name == language and kind != "title"]
    return [item for item in found if item.present]


def _add_traits(plan: Plan, banks: Banks, rng: random.Random, settings: Settings) -> None:
    pool = _phrased(banks, plan.source.language)
    if not pool:
        return
    weights = [12.0 if item.kind in settings.boost else 1.0 for item in pool]
    for item in dict.fromkeys(rng.choices(range(len(pool)), weights=weights, k=rng.choice(_TRAITS))):
        _add_phrase(plan, pool[item], rng, settings)


def _add_phrase(plan: Plan, item: Trait | Form, rng: random.Random, settings: Settings) -> None:
    fulfils = not item.near or rng.random() < settings.present
    text = rng.choice(item.present if fulfils else item.near)
    piece = Piece(text, "trait" if fulfils else "near", item.kind)
    if text.startswith("```"):
        if plan.layout in ("single", "json", "broken_json"):
            return
        plan.frame.body.append(piece)
    elif item.kind == "postscript" and fulfils:
        if plan.layout in ("json", "broken_json"):
            return
        plan.frame.foot.append(text)
    else:
        _place(plan, piece, item.slot, rng)
    plan.traits[item.kind] = fulfils
    plan.muted.update(item.mutes)
    if item.kind == "repetition":
        plan.muted.add("repeated_sentence")


def _place(plan: Plan, piece: Piece, slot: str, rng: random.Random) -> None:
    if slot == "any":
        slot = rng.choice(("opening", "between", "closing"))
    if slot == "opening":
        insert(plan.frame.opening, piece, rng)
    elif slot == "closing":
        insert(plan.frame.closing, piece, rng)
    else:
        insert(plan.frame.body, piece, rng)


_VERBS = frozenset(
    "says mentions explains gives names states tells describes that what which when where there does not with from "
    "about into their them your this have has will only also more than been being very the and for are how who any "
    "nennt sagt erklärt wie was die der das nicht dit indique explique pas que qui les des une dice explica indica "
    "los las una spiega che non come della diz explica uma para dos das".split()
)


@lru_cache(maxsize=4096)
def _stems(texts: tuple[str, ...]) -> frozenset[str]:
    """The beginnings of the words that carry meaning."""
    found = (word for text in texts for word in re.findall(r"\w{3,}", text.casefold()))
    return frozenset(word[:5] for word in found if word not in _VERBS)


def _doubt_points(plan: Plan) -> None:
    """A phrase that shares a word with what a point is about might do what the point does: that is unknown then."""
    texts = [piece.text for piece in plan.frame.pieces if piece.origin in ("trait", "near", "form")]
    texts += plan.frame.head + plan.frame.foot
    if plan.marks & {"salutation", "sign_off"}:
        texts.append("name names signed sender greets greeting addresses customer reader polite wishes regards")
    said = _stems(tuple(texts))
    for point in plan.source.points:
        if point.id not in plan.stated and said & _stems((*point.about, *point.denied)):
            plan.unknown.add(point.id)


def _add_title(plan: Plan, banks: Banks, rng: random.Random) -> None:
    form = banks.forms.get((plan.source.language, "title"))
    if form is None or not form.present or plan.layout in ("json", "broken_json"):
        return
    title = rng.choice(form.present)
    plan.frame.head.insert(0, rng.choice((title, title, f"# {title}")))
    plan.marks.add("title")


def _finish(plan: Plan, marks: set[str], rng: random.Random, settings: Settings) -> Draft:
    language = plan.source.language
    text = render(plan.frame, plan.layout, language, rng)
    if "no_commas" in marks and plan.layout not in ("json", "broken_json"):
        text = text.replace(",", "")
    if "lower_case" in marks:
        text = text.lower()
    elif "upper_case" in marks:
        text = text.upper()
    reference, points = _reference(plan, rng, settings)
    return Draft(
        topic=plan.topic,
        prompt=rng.choice(plan.topic.prompts),
        response=text,
        language=language,
        layout=plan.layout,
        measured=Measured(text, language),
        matter=" ".join(piece.text for piece in plan.frame.pieces if piece.origin not in ("trait", "near", "form")),
        reference=reference,
        stated=_in_order(plan) if plan.on_topic else (),
        unknown=frozenset(plan.unknown) if plan.on_topic else frozenset(),
        missed=frozenset(plan.missed) if plan.on_topic else frozenset(),
        first=_first(plan),
        aside=_aside(plan),
        on_topic=plan.on_topic,
        far=_far(plan),
        traits=plan.traits,
        muted=frozenset(plan.muted),
        marks=frozenset(plan.marks),
        reference_points=points,
    )


def _far(plan: Plan) -> bool:
    """Another kind of task on another subject: no word of four letters is common to the requests."""
    if plan.on_topic or "other_language" in plan.marks or plan.topic.task == plan.source.task:
        return False
    return not _prompt_words(plan.topic) & _prompt_words(plan.source) - _EVERYWHERE


def _in_order(plan: Plan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(piece.key for piece in plan.frame.pieces if piece.origin == "point"))


def _first(plan: Plan) -> tuple[str, str] | None:
    if plan.frame.head or plan.layout in ("headings", "table", "json", "broken_json"):
        return None
    first = plan.frame.pieces[0]
    return first.origin, first.key


def _aside(plan: Plan) -> bool | None:
    """A near miss or a phrase may or may not belong to the subject, so only clean drafts can do without asides."""
    if not plan.on_topic:
        return None
    if plan.asides:
        return True
    return None if not plan.clean or "mixed" in plan.marks or "title" in plan.marks else False


def _reference(plan: Plan, rng: random.Random, settings: Settings) -> tuple[str | None, tuple[str, ...]]:
    if rng.random() >= settings.reference or not plan.on_topic:
        return None, ()
    known = [point for point in plan.topic.points if point.id not in plan.unknown]
    inside = [point for point in known if point.id in plan.stated]
    outside = [point for point in known if point.id not in plan.stated]
    mode = rng.choice(("all", "all", "some", "none"))
    pool = inside if mode == "all" else outside if mode == "none" else known
    chosen = rng.sample(pool, min(len(pool), rng.choice((1, 2, 2, 3))))
    if mode == "some" and inside and outside:
        chosen = [rng.choice(inside), rng.choice(outside)]
        rng.shuffle(chosen)
    if not chosen:
        return None, ()
    return " ".join(rng.choice(point.says) for point in chosen), tuple(point.id for point in chosen)
