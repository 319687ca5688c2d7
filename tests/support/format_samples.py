"""A good sample of each layout of every rubric format: records, bare lists, texts. Imported as `format_samples`."""

from __future__ import annotations

import json

__all__ = ["LISTS", "RECORDS", "TEXTS"]

_TURNS: list[object] = [{"role": "user", "content": "Why is the sky blue?"}]
_RAR: list[object] = [
    {"title": "Scattering", "description": "Essential Criteria: Names scattering.", "weight": 5},
    {"title": "Myth", "description": "Pitfall Criteria: Says that the sea is mirrored.", "weight": -2},
]
_HEALTH: list[object] = [
    {"criterion": "Names scattering.", "points": 5, "tags": ["axis:accuracy"]},
    {"criterion": "Blames the sea.", "points": -3, "tags": []},
]
_TAIL: list[object] = [{"criterion": "Names scattering.", "weight": 3}, {"criterion": "Is short.", "weight": 1}]
_NATIVE: list[object] = [
    {"id": "scatter", "text": "Names scattering.", "weight": 2},
    {"text": "Blames the sea.", "weight": 1, "polarity": "penalty", "veto": True},
]
_JUDGE: list[object] = [
    {"name": "scatter", "text": "Names scattering.", "weight": 2.5},
    {"name": "short", "text": "How short is it?", "choices": ["long", "fair", "short"]},
]
_FLAT: list[object] = [
    {"rubric_id": "sky", "id": "a", "text": "Names scattering.", "weight": 2, "polarity": "reward"},
    {"rubric_id": "sky", "id": "b", "text": "Blames the sea.", "weight": 1, "polarity": "penalty", "note": 5},
]
_HUB: list[object] = [
    {"criterion": "Names scattering.", "points": 7, "tags": {"function": "", "parameters": {}, "verifier": "llm"}},
    {"criterion": "Is short.", "points": 1, "tags": {"function": "", "parameters": {}, "verifier": "llm"}},
]
_SCORES: dict[str, object] = {f"score{level}_description": f"Level {level}." for level in range(1, 6)}
_TULU: dict[str, object] = {"query": "Why is the sky blue?", "rubrics": _RAR, "rubrics_types": ["persistent"] * 2}
_TAGGED = "1. The response names scattering. [Hard Rule]\n2. The response is short. [Principle]"
_CHECKLIST = "1) Does it name scattering? (importance: 100/100)\n2) Is it short? (importance: 40/100)"
_SCORED = "[Is it right?]\n" + "\n".join(f"Score {level}: Level {level}." for level in range(1, 6))

RECORDS: dict[str, list[dict[str, object]]] = {
    "advancedif": [
        {
            "conversation_history": json.dumps(_TURNS),
            "benchmark_name": "carried_context_multi_turn_eval_v5",
            "prompt_metadata": json.dumps({"rubrics": json.dumps(["Does it name scattering?", "Is it short?"])}),
        },
        {"conversation_history": _TURNS, "prompt_metadata": {"rubrics": ["Does it name scattering?"]}},
    ],
    "drtulu": [
        {"messages": _TURNS, "ground_truth": json.dumps(_TULU), "dataset": "general_rubric", "source": "s"},
        _TULU,
        {
            "question": "Why?",
            "positive_rubrics": [{"description": "Names scattering.", "title": "Scattering"}],
            "negative_rubrics": [{"description": "Blames the sea.", "title": "Sea"}],
        },
        {
            "Question": "Why?",
            "Answer Critical": [{"Ingredient": "Name scattering.", "Handle": "Scattering", "Specifics": []}],
            "Valuable": [],
            "Context": [],
        },
    ],
    "flat": [{"rows": _FLAT}],
    "healthbench": [{"prompt": _TURNS, "prompt_id": "p1", "rubrics": _HEALTH, "example_tags": ["theme:sky"]}],
    "multichallenge": [
        {
            "QUESTION_ID": "q1",
            "AXIS": "INFERENCE_MEMORY",
            "CONVERSATION": _TURNS,
            "TARGET_QUESTION": "Does it blame the sea?",
            "PASS_CRITERIA": "NO",
        },
        {"question_id": "q1", "conversation": _TURNS, "target_question": "Is it short?", "pass_criteria": "YES"},
    ],
    "native": [
        {"id": "sky", "metadata": {"prompt": "Why?"}, "criteria": _NATIVE},
        {"groups": [{"id": "g", "weight": 2}], "criteria": [{"id": "a", "text": "Is right.", "path": ["g"]}]},
        {"criteria": ["Names scattering.", "Is short."]},
    ],
    "openinstruct": [
        {"messages": _TURNS, "ground_truth": json.dumps(_TULU), "dataset": "rubric"},
        {"messages": _TURNS, "ground_truth": ["42", json.dumps(_TULU)], "dataset": ["math", "rubric"]},
    ],
    "openrubrics": [
        {"instruction": "Why?", "rubric": _TAGGED, "source": "s"},
        {"instruction": "Why?", "response_a": "A", "response_b": "B", "winner": "A", "rubric": _TAGGED},
    ],
    "paperbench": [
        {
            "id": "root",
            "requirements": "The paper is reproduced.",
            "weight": 1,
            "sub_tasks": [
                {
                    "id": "a",
                    "requirements": "The code runs.",
                    "weight": 2,
                    "sub_tasks": [],
                    "task_category": "Code",
                },
                {"id": "b", "requirements": "The figures match.", "weight": 1, "sub_tasks": []},
            ],
        }
    ],
    "prometheus": [
        {"id": "p1", "input": "Why?", "score_rubric": {"criteria": "Is it right?", **_SCORES}},
        {"criteria": "Is it right?", **_SCORES},
        {"input": "Why?", "score_rubric": _SCORED},
        {"instruction": f"Grade it.\n###Score Rubrics:\n{_SCORED}\n\n###Feedback: ", "output": "5"},
        {"orig_criteria": "Is it right?", **{f"orig_{name}": text for name, text in _SCORES.items()}},
    ],
    "rar": [{"question": "Why?", "reference_answer": "Scattering.", "question_source": "s", "rubric": _RAR}],
    "rbr": [
        {
            "simple_propositions": {"sorry": {"prompt": "Does it apologise?"}, "rude": {"prompt": "Is it rude?"}},
            "derived_propositions": {"clean": {"sorry": True, "rude": False}},
            "completion_classes": {"good": {"hard_refuse": {"clean": True}}},
            "completion_class_order": ["good"],
        },
        {
            "response_type": "Hard Refuse",
            "prompt": _TURNS,
            "completion": [{"role": "assistant", "content": "Sorry."}],
            "propositions": {"sorry": True, "rude": False},
        },
    ],
    "rlcf": [
        {"instruction": "Why?", "requirements": [["Does it name scattering?", 100], ["Is it short?", 40]]},
        {"prompt": "Why?", "chosen": "a", "rejected": "b", "requirements": _CHECKLIST},
        {"prompt": "Why?", "requirements": ["Is it short?"], "importances": [40]},
    ],
    "rubrichub": [
        {"prompt": _TURNS, "data_source": "s", "ability": "a", "Rubrics": _HUB},
        {"question": "Why?", "merged_rubrics": [{"title": "T", "description": "Is short.", "weight": 7}]},
        {"query": "Why?", "answer": "Scattering.", "rubrics": _HUB},
    ],
    "rubricjudge": [{"criteria": _JUDGE}],
    "tail": [{"prompt": "Why?", "rubrics": _TAIL, "number_of_criteria": 2, "total_weight": 4}],
}
"""Records of each format, one for each layout."""

LISTS: dict[str, list[object]] = {
    "flat": _FLAT,
    "healthbench": _HEALTH,
    "native": _NATIVE,
    "rar": _RAR,
    "rubrichub": _HUB,
    "rubricjudge": _JUDGE,
    "tail": _TAIL,
}
"""Bare lists of criteria, of the formats that have such."""

TEXTS: dict[str, str] = {"openrubrics": _TAGGED, "prometheus": _SCORED, "rlcf": _CHECKLIST}
"""Plain texts, of the formats that have such."""
