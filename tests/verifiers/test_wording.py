"""No opening praise and no self-evaluation, in English, German and Japanese."""

from __future__ import annotations

import pytest
from tests.verifiers.conftest import check, met

from rubricate.errors import VerifierError

PRAISE = [
    "Great question!",
    "Great question! Photosynthesis is ...",
    "That's a great question.",
    "What a great question! Let me",
    "**Great question!** Here",
    "Wow, what an insightful question.",
    "Hi Anna! Great question.",
    "Sure! Great question, and one that",
    "You've asked a really good question about X.",
    "This is a truly fascinating topic!",
    "Thank you for this thoughtful question!",
    "I love this question!",
    "You raise an excellent point.",
    "You're so smart!",
    "🌟 Excellent question! 🌟",
    "Oh, great idea!",
    "Absolutely! That's a fantastic question.",
    '"Great question! Here is the answer: 42."',
    "That is such a great question!",
    "You make a very good and important point.",
    "How insightful of you to ask!",
    "Your question is really insightful.",
    "Good point! But",
    "What an interesting problem!",
    "That’s an excellent question",
    "Gute Frage!",
    "Das ist eine sehr gute Frage.",
    "Was für eine tolle Frage! Also",
    "Danke für die spannende Frage!",
    "Vielen Dank für Ihre ausgezeichnete Frage.",
    "Tolle Idee!",
    "Hallo! Sehr gute Frage.",
    "Das ist wirklich eine großartige Idee!",
    "Da hast du einen wichtigen Punkt angesprochen.",
    "Super Frage, denn",
    "素晴らしい質問ですね！",
    "とても良い質問です。",
    "良いご質問ありがとうございます。",
    "なるほど、鋭い質問ですね。",
    "それは非常に興味深いテーマです。",
    "いい質問だね！",
    "こんにちは！素晴らしいご質問をいただきありがとうございます。",
    "すばらしいアイデアですね！",
    "さすがですね。",
]

NO_PRAISE = [
    "Great Britain is an island.",
    "Great questions open doors.",
    "A good question is one that can be answered.",
    "A good question, in my view, is short.",
    '"Great question!" is a phrase that teachers overuse.',
    'The phrase "great question" is a cliché.',
    "Good question design matters.",
    "Good points of the plan: ...",
    "Thank you for your question.",
    "Thanks for asking! Photosynthesis is",
    "Excellent health needs sleep.",
    "It's a great idea to drink water.",
    "Interesting facts about cats:",
    "What a day!",
    "That's a good sign.",
    "This is an important topic that many people neglect.",
    "You're a wonderful mother, and",
    "I love this city.",
    "Good morning! Here is",
    "Important point: back up first.",
    "Dear Bob,\nThank you for your excellent work.",
    "A great question to ask in interviews is why the role is open.",
    "Sure, here is the plan.",
    "Nice is a city in France.",
    "Smart questions lead to smart answers.",
    "Großbritannien ist eine Insel.",
    "Gute Fragen sind kurz.",
    "Eine gute Frage ist halb beantwortet.",
    "Vielen Dank für Ihre Frage.",
    "Das ist eine Frage der Zeit.",
    "„Gute Frage!“ sagt man oft.",
    "Guten Tag, hier ist die Antwort.",
    "良い質問とは、短い質問です。",
    "良い質問をする方法は三つあります。",
    "質問ありがとうございます。",
    "「いい質問ですね！」という言葉は使い古されている。",
    "素晴らしい天気ですね。",
    "面白い映画です。",
    "こんにちは。答えは四十二です。",
    "",
]

SELF = [
    "This response fully addresses all the requirements.",
    "My answer meets all of the criteria specified.",
    "I have followed all of the instructions.",
    "I have successfully met every requirement.",
    "This response deserves a perfect score.",
    "Self-evaluation: 10/10",
    "Self-assessment: This answer scores 9 out of 10.",
    "I am confident that this response is correct.",
    "I would rate this response a 10.",
    "This answer is comprehensive and accurate.",
    "The above response satisfies all constraints.",
    "All of the requirements you listed have been met.",
    "This response directly answers the question.",
    "I give myself a 10.",
    "This answer addresses all parts of the question.",
    "This response is well-structured.",
    "All your instructions were followed.",
    "My response should be rated 5 stars.",
    "Diese Antwort erfüllt alle Anforderungen.",
    "Ich habe alle Vorgaben vollständig berücksichtigt.",
    "Selbstbewertung: 10/10",
    "Meine Antwort ist umfassend und korrekt.",
    "Diese Antwort verdient die volle Punktzahl.",
    "Ich bin überzeugt, dass diese Antwort hilft.",
    "Diese Antwort beantwortet die Frage vollständig.",
    "この回答はすべての条件を満たしています。",
    "自己評価：10点",
    "この回答は正確で、包括的です。",
    "本回答はすべての要件を満たしています。",
    "すべての指示に従いました。",
    "この回答は満点に値します。",
    "私の回答は完璧です。",
]

NO_SELF = [
    "The answer is 42.",
    "I hope this answer is helpful.",
    "This answer depends on the context.",
    "Our product meets all requirements of the norm.",
    "The essay should address all parts of the question.",
    "Write your self-evaluation before the meeting.",
    "In my self-assessment, I noted three goals.",
    "The applicant meets all requirements.",
    '"This response meets all requirements" is what a flatterer writes.',
    "I have met all kinds of people.",
    "The response of the immune system is complete.",
    "His answer was accurate.",
    "I give this film 8 out of 10.",
    "I have followed your instructions to the airport.",
    "The response includes the following instructions for the pilot: ...",
    "This question deserves an answer.",
    "The system must satisfy all constraints listed above.",
    "My answer is yes.",
    "My response to the fire was quick.",
    "Die Antwort ist 42.",
    "Der Bewerber erfüllt alle Anforderungen.",
    "Diese Antwort hängt vom Kontext ab.",
    "Meine Antwort ist ja.",
    "答えは42です。",
    "この製品はすべての条件を満たしています。",
    "自己評価シートを書いてください。",
    "この問題の答えは三つあります。",
    "「この回答は完璧です」と書くのはよくない。",
    "",
]


@pytest.mark.parametrize("text", PRAISE)
def test_praise_is_found(text: str) -> None:
    assert not met("no_praise", text)
    assert not met("no_praise", f"## {text}\n\nAnd here is the answer: it is 42.")


@pytest.mark.parametrize("text", NO_PRAISE)
def test_what_only_looks_like_praise_passes(text: str) -> None:
    found = check("no_praise", text)
    assert found.met, found.reason


def test_praise_later_on_is_not_at_the_opening() -> None:
    assert met("no_praise", "The answer is 42. Great question, by the way!")
    assert met("no_praise", "```\nGreat question!\n```\nThe code prints that.")


def test_own_phrases_and_languages() -> None:
    assert not met("no_praise", "Quelle bonne question !", phrases=["quelle bonne question"])
    assert met("no_praise", "Quelle bonne question !")
    assert met("no_praise", "Gute Frage!", languages=["en"])
    assert not met("no_self_eval", "Cette réponse est parfaite.", phrases=["Cette réponse est parfaite"])
    with pytest.raises(VerifierError, match="argument 'languages"):
        check("no_praise", "a", languages=["fr"])


@pytest.mark.parametrize("text", SELF)
def test_self_evaluation_is_found(text: str) -> None:
    assert not met("no_self_eval", text)
    assert not met("no_self_eval", f"The answer is 42.\n\n**{text}**\n\nBye.")


@pytest.mark.parametrize("text", NO_SELF)
def test_what_only_looks_like_self_evaluation_passes(text: str) -> None:
    found = check("no_self_eval", text)
    assert found.met, found.reason


def test_a_prompt_that_asks_for_a_review_allows_adjectives_but_no_claims() -> None:
    review = "This answer is accurate, but it is too long."
    assert not check("no_self_eval", review, prompt="Explain photosynthesis.").met
    assert check("no_self_eval", review, prompt="Evaluate the student's answer below.").met
    assert not check("no_self_eval", review, prompt="Evaluate the student's answer below.", unless_asked=False).met
    claim = "I have followed all instructions."
    assert not check("no_self_eval", claim, prompt="Evaluate the student's answer below.").met


def test_a_response_in_quotation_marks_is_no_quotation() -> None:
    assert not met("no_self_eval", '"The sky is blue. This response meets all requirements."')
    assert met("no_self_eval", 'He wrote "this response meets all requirements" and sent it.')
