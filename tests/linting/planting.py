"""How rubrics with a fault put in on purpose are written down, in several formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Record = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Planted:
    """A rubric with one fault.

    Attributes:
        code: the rule that must find it.
        record: the rubric, in its format.
        at: the criterion or group that the finding must name, "" for the rubric as a whole.
        format: name of the format.
    """

    code: str
    record: object
    at: str = ""
    format: str = "native"


GOOD: Record = {"id": "good", "text": "The response names Rayleigh scattering as the cause."}
OTHER: Record = {"id": "other", "text": "The response gives a wavelength in nanometres.", "weight": 2}


def native(*criteria: Record, prompt: str = "", **fields: object) -> Record:
    """A native rubric of these criteria and two good ones."""
    listed = [{"id": f"c{at + 1}", **criterion} for at, criterion in enumerate(criteria)]
    metadata: dict[str, object] = {"prompt": prompt} if prompt else {}
    return {"criteria": [*listed, GOOD, OTHER], "metadata": metadata | fields}


def only(*criteria: Record, groups: Sequence[Record] = (), **metadata: object) -> Record:
    """A native rubric of these criteria alone."""
    listed = [{"id": f"c{at + 1}", **criterion} for at, criterion in enumerate(criteria)]
    return {"criteria": listed, "groups": list(groups), "metadata": metadata}


def text(words: str, code: str, **fields: object) -> Planted:
    """One criterion of this text, among good ones."""
    return Planted(code, native({"text": words, **fields}), "c1")


def pair(code: str, first: str, second: str, **fields: object) -> Planted:
    """Two criteria, the second of which is at fault."""
    return Planted(code, native({"text": first}, {"text": second, **fields}), "c2")


def checked(code: str, words: str, name: str, **args: object) -> Planted:
    """A criterion with a verifier at fault."""
    return Planted(code, native({"text": words, "verifier": {"name": name, "args": args}}), "c1")


def clash(first: tuple[str, Record], second: tuple[str, Record]) -> Planted:
    """Two verifiers that no response meets both."""
    specs = [{"name": name, "args": args} for name, args in (first, second)]
    listed = (
        {"text": f"The response passes check {at}.", "verifier": spec} for at, spec in zip("AB", specs, strict=True)
    )
    return Planted("V603", native(*listed), "c2")


def rar(*items: tuple[str, str, float]) -> Record:
    """A row of Rubrics as Rewards: title, description, weight."""
    listed = [{"title": title, "description": words, "weight": weight} for title, words, weight in items]
    return {"question": "Which drug helps?", "reference_answer": "Aspirin.", "rubric": listed}


def points(code: str, at: str, *items: tuple[str, float]) -> Planted:
    """A row of HealthBench: criterion and points."""
    listed = [{"criterion": words, "points": value} for words, value in items]
    return Planted(
        code, {"prompt": [{"role": "user", "content": "I am ill."}], "rubrics": listed}, at, "healthbench"
    )


def levels(code: str, *descriptions: str) -> Planted:
    """A rubric of Prometheus with these five descriptions."""
    named = {f"score{at + 1}_description": words for at, words in enumerate(descriptions)}
    record = {"input": "Tell a joke.", "score_rubric": {"criteria": "Is the joke about an animal?", **named}}
    return Planted(code, record, "c1", "prometheus")


def ordinal(code: str, *descriptions: str) -> Planted:
    """A native criterion with a level for each description."""
    scale = [{"label": str(at), "value": at, "description": words} for at, words in enumerate(descriptions)]
    return Planted(
        code, native({"text": "The joke is about an animal.", "scale": {"type": "ordinal", "levels": scale}}), "c1"
    )


def leaf(name: str, words: str, weight: float = 1) -> Record:
    """A leaf of a PaperBench tree."""
    return {
        "id": name,
        "requirements": words,
        "weight": weight,
        "sub_tasks": [],
        "task_category": "Code Development",
    }


def tree(code: str, at: str, *nodes: Record, weight: float = 1) -> Planted:
    """A PaperBench tree whose one group has this weight and these leaves."""
    inner = {"id": "group", "requirements": "The method is there.", "weight": weight, "sub_tasks": list(nodes)}
    other = leaf("far", "The data set has been loaded.")
    record = {"id": "root", "requirements": "The paper is reproduced.", "weight": 1, "sub_tasks": [inner, other]}
    return Planted(code, record, at, "paperbench")


ASKED = "Explain why the sky is blue in at most 100 words. Answer in English."
COPIED = "the molecules of the air scatter the short waves of the light of the sun far more than the long ones"
