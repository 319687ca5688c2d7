"""Faults of repetition, sign and weight, several wordings a rule."""

from __future__ import annotations

from tests.linting.planting import (
    Planted,
    leaf,
    native,
    only,
    pair,
    points,
    rar,
    text,
    tree,
)

DUPLICATES = (
    pair("D101", "The response cites a study.", "The response cites a study."),
    pair("D101", "The response cites a study.", "the response  cites a STUDY"),
    pair("D101", "答案提到了瑞利散射。", "答案提到了瑞利散射"),
    Planted(
        "D101",
        rar(("A", "Essential Criteria: Names aspirin.", 5), ("B", "Important Criteria: Names aspirin.", 3)),
        "b",
        "rar",
    ),
    tree("D101", "b", leaf("a", "The encoder is implemented."), leaf("b", "The encoder is implemented.")),
    pair(
        "D102", "The response mentions the cost of the trip.", "The response clearly states the costs of the trip."
    ),
    pair("D102", "Names the three phases of mitosis.", "The answer identifies the three phases of mitosis."),
    pair("D102", "Explains that bleeding is a side effect.", "It should mention bleeding as a side effect"),
    points(
        "D102", "c2", ("Advises the user to see a doctor.", 5), ("The response advises that users see doctors", 3)
    ),
    pair(
        "D103",
        "The essay compares coal and wind by cost and by noise.",
        "The essay compares coal and wind by cost, noise and land.",
    ),
    pair("D103", "Explains how vaccines train immune cells.", "Explains how vaccines slowly train immune cells."),
    tree(
        "D103",
        "b",
        leaf("a", "The loss of the encoder is logged at every step."),
        leaf("b", "The loss of the encoder is logged at every training step."),
    ),
    pair("D104", "The response mentions the dose.", "The response does not mention the dose."),
    pair("D104", "The letter uses a formal tone.", "The letter uses an informal tone."),
    pair("D104", "The summary has at most 50 words.", "The summary has at least 100 words."),
    pair("D104", "The response cites a study.", "The response cites a study.", polarity="penalty"),
    pair("D104", "Includes a table of prices.", "Avoids a table of prices."),
    points("D104", "c2", ("Recommends antibiotics.", 5), ("Recommends antibiotics.", -5)),
    tree(
        "D105", "twin~2", leaf("twin", "The encoder is implemented."), leaf("twin", "The decoder is implemented.")
    ),
    tree("D105", "far~2", leaf("far", "The encoder is implemented."), leaf("b", "The decoder is implemented.")),
    tree(
        "D105",
        "a~3",
        leaf("a", "The encoder is implemented."),
        leaf("a", "The decoder is trained."),
        leaf("a", "Adam is used."),
    ),
    pair("D106", "Mentions the risk of bleeding.", "Does not mention the risk of bleeding.", polarity="penalty"),
    points("D106", "c2", ("Recommends a second test.", 4), ("Fails to recommend a second test.", -4)),
    Planted(
        "D106", rar(("A", "Names the dose.", 5), ("B", "Pitfall Criteria: Does not name the dose.", -1)), "b", "rar"
    ),
)
SIGNS = (
    text("Avoids medical jargon.", "P201", polarity="penalty"),
    text("The response should not give a diagnosis.", "P201", polarity="penalty"),
    text("The response is free of spelling errors.", "P201", polarity="penalty"),
    text("Correctly names the capital of France.", "P201", polarity="penalty"),
    points("P201", "c1", ("Refrains from prescribing antibiotics.", -5), ("Advises rest.", 5)),
    Planted(
        "P201", rar(("Jargon", "Pitfall Criteria: Avoids jargon.", -1), ("A", "Names aspirin.", 5)), "jargon", "rar"
    ),
    text("Fails to mention the dose.", "P202"),
    text("The response contains factual errors.", "P202"),
    text("The answer incorrectly claims that whales are fish.", "P202"),
    points("P202", "c1", ("Neglects to ask about allergies.", 5), ("Advises rest.", 5)),
    Planted(
        "P202",
        rar(("Dose", "Pitfall Criteria: Does not mention the dose.", 1), ("A", "Names aspirin.", 5)),
        "dose",
        "rar",
    ),
    text("The response does not mention any brand.", "P203"),
    text("Avoids the passive voice.", "P203"),
    text("The text contains no adverbs.", "P203"),
)
WEIGHTS = (
    Planted(
        "W301",
        only(
            {"text": "Contains slander.", "polarity": "penalty"},
            {"text": "Invents a source.", "polarity": "penalty"},
        ),
    ),
    points("W301", "", ("Invents a source.", -3), ("Gives a dose for children.", -5)),
    Planted(
        "W301", only({"text": "Names aspirin.", "weight": 0}, {"text": "Invents a dose.", "polarity": "penalty"})
    ),
    Planted("W302", only({"text": "Names aspirin.", "weight": 0}, {"text": "Gives a dose.", "weight": 0})),
    tree("W302", "group", leaf("a", "The encoder is implemented.", 0), leaf("b", "The decoder is trained.", 0)),
    points("W302", "", ("Names aspirin.", 0), ("Gives a dose.", 0)),
    Planted("W303", native({"text": "Cites a study of 2019.", "weight": 100}), "c1"),
    points("W303", "c2", ("Advises rest.", 0.1), ("Names aspirin.", 9), ("Gives a dose.", 0.2)),
    tree("W303", "a", leaf("a", "The encoder is implemented.", 99), leaf("b", "The decoder is trained.", 1)),
    points("W304", "c1", ("Advises rest.", 50), ("Names aspirin.", 9), ("Gives a dose.", 8)),
    Planted(
        "W304",
        rar(("A", "Names aspirin.", 12), ("B", "Gives a dose.", 5), ("C", "Warns of bleeding.", 4)),
        "a",
        "rar",
    ),
    Planted(
        "W304",
        {"prompt": "Why?", "requirements": [["Is a cause given?", 150], ["Is a unit given?", 100]]},
        "c1",
        "rlcf",
    ),
    Planted("W305", native({"text": "Cites a study of 2019.", "weight": 0}), "c1"),
    points("W305", "c1", ("Advises rest.", 0), ("Names aspirin.", 9)),
    tree("W305", "a", leaf("a", "The encoder is implemented.", 0), leaf("b", "The decoder is trained.", 1)),
    tree("W306", "group", leaf("a", "The encoder is implemented."), weight=0),
    Planted("W306", only({"text": "Names aspirin."}, groups=[{"id": "g", "text": "Safety"}]), "g"),
    Planted(
        "W306",
        only(
            {"text": "Names aspirin.", "path": ["g"]}, {"text": "Gives a dose."}, groups=[{"id": "g", "weight": 0}]
        ),
        "g",
    ),
    Planted("W307", native({"text": "Cites a study of 2019.", "veto": True, "importance": "optional"}), "c1"),
    Planted(
        "W307",
        native({"text": "Slanders a politician.", "polarity": "penalty", "veto": True, "importance": "optional"}),
        "c1",
    ),
    Planted(
        "W307",
        only({"text": "Names aspirin."}, {"text": "Gives a dose.", "veto": True, "importance": "optional"}),
        "c2",
    ),
    Planted(
        "W308",
        rar(("A", "Essential Criteria: Names aspirin.", 1), ("B", "Optional Criteria: Gives a price.", 5)),
        "b",
        "rar",
    ),
    Planted(
        "W308",
        only(
            {"text": "Names aspirin.", "importance": "essential"},
            {"text": "Gives a dose.", "weight": 3, "importance": "optional"},
        ),
        "c2",
    ),
    Planted(
        "W308",
        native(
            {"text": "Gives a price.", "weight": 9, "importance": "optional"},
            {"text": "Gives a date.", "importance": "essential"},
        ),
        "c1",
    ),
)
