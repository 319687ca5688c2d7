"""A second set of faults, written after the rules and before they were run on them.

Of its 56 wordings the rules of that day found 37; after one round of changes they find these 52.
"""

from __future__ import annotations

from tests.linting.planting import ASKED, Planted, checked, clash, native, pair, text

__all__ = ["SECOND"]

SECOND = (
    pair("D102", "The response mentions three risks of smoking.", "Three risks of smoking are mentioned."),
    pair("D102", "Cites the source of the quote.", "The source of the quote is cited."),
    pair(
        "D103",
        "The answer discusses the effect of inflation on wages.",
        "The answer discusses the effect of rising inflation on wages.",
    ),
    pair("D104", "The response recommends seeing a doctor.", "The response does not recommend seeing a doctor."),
    pair("D104", "The email is written in an informal style.", "The email is written in a formal style."),
    pair("D104", "Uses more than 300 words.", "Keeps it under 200 words."),
    pair("D104", "The poem rhymes.", "The poem doesn't rhyme."),
    text("Does not contain offensive language.", "P201", polarity="penalty"),
    text("Provides an accurate summary of the article.", "P201", polarity="penalty"),
    text("Contains hallucinated references.", "P202"),
    text("Gives wrong dosage information.", "P202"),
    text("The response is misleading about side effects.", "P202"),
    text("Omits the conclusion.", "P202"),
    text("As stated in the previous criterion, the dose is right.", "R401"),
    text("If criterion 2 is satisfied, the units are given.", "R401"),
    text("Other requirements listed above hold for the appendix.", "R401"),
    text("It also mentions the year.", "R402"),
    text("The list above is complete.", "R402"),
    text("Mentions the point described earlier.", "R402"),
    text("Agrees with the expected answer.", "R403"),
    text("Matches the reference.", "R403"),
    text("The essay has a clear thesis and uses evidence from two sources.", "C501"),
    text("Is polite and mentions the deadline.", "C501"),
    text("The answer should define entropy and should give its unit.", "C501"),
    text("1) names the author 2) gives the year", "C501"),
    text("The response is engaging.", "C502"),
    text("Quality of writing", "C502"),
    text("The answer is clear, concise and helpful.", "C502"),
    text("Shows a deep understanding of the topic.", "C502"),
    text("Response is reasonable and makes sense.", "C502"),
    text("Completeness", "C504"),
    text("Why does the author disagree?", "C505"),
    text("Names <PLACEHOLDER> as the author.", "C506"),
    text("Mentions XXX in the title.", "C506"),
    text("Explains [TOPIC] in detail.", "C506"),
    text("La respuesta menciona la causa del color del cielo.", "C507"),
    text("回答は波長を示しています。", "C507"),
    text("The response tells the user that their question is great.", "C509"),
    text("Claims to be the best possible answer.", "C509"),
    text("Includes a statement that the response satisfies the rubric.", "C509"),
    checked("V604", "Has between 3 and 5 paragraphs.", "paragraphs", min=6, max=8),
    checked("V604", 'Begins with "Dear Anna".', "starts_with", phrase="Hello"),
    checked("V604", "No more than 50 words.", "words", min=50),
    clash(
        ("keywords:existence", {"keywords": ["cat"]}), ("keywords:forbidden_words", {"forbidden_words": ["cat"]})
    ),
    clash(("sentences", {"min": 20}), ("words", {"max": 10})),
    clash(("ends_with", {"phrase": "Bye."}), ("ends_with", {"phrase": "The end."})),
    clash(
        ("words", {"min": 100, "max": 120}),
        ("length_constraints:number_words", {"num_words": 80, "relation": "less than"}),
    ),
    Planted("Q701", native({"text": "The response is exactly 3 paragraphs long."}, prompt=ASKED), "c1"),
    Planted("Q701", native({"text": "The answer is given in Spanish."}, prompt=ASKED), "c1"),
    Planted("Q701", native({"text": "The output is a JSON object."}, prompt=ASKED), "c1"),
    Planted("Q701", native({"text": "The essay is between 500 and 600 words."}, prompt=ASKED), "c1"),
    Planted("Q701", native({"text": "Uses the word 'ephemeral' at least once."}, prompt=ASKED), "c1"),
)
