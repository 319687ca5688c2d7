"""Which language a short text is in, as far as its script or its function words tell."""

from __future__ import annotations

import re
from collections import Counter

from rubricate.rubrics.linting.words import Text

__all__ = ["language_of"]

_SCRIPTS = (
    ("Japanese", re.compile(r"[\u3040-\u30ff]")),
    ("Korean", re.compile(r"[\uac00-\ud7af]")),
    ("Chinese", re.compile(r"[\u3400-\u9fff]")),
    ("Cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("Arabic", re.compile(r"[\u0600-\u06ff]")),
    ("Devanagari", re.compile(r"[\u0900-\u097f]")),
    ("Hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("Greek", re.compile(r"[\u0370-\u03ff]")),
    ("Thai", re.compile(r"[\u0e00-\u0e7f]")),
)
_LATIN = {
    "English": "the and of to is are that with for response which should does not by from this it be "
    "in has have as all",
    "German": "der die das und ist nicht eine einen dem den wird werden mit von auf für im zu antwort nennt sich",
    "French": "le la les des est une et dans que qui pour pas réponse avec sur du au ne elle ce un de",
    "Spanish": "el los las una y en que para del con por se es respuesta al lo su la de un",
    "Italian": "il lo gli della di che una e per non con del è nel risposta si da la un",
    "Portuguese": "o os uma e em que para não do da com por se é resposta ao na no",
    "Dutch": "de het een en van niet op voor dat die zijn te antwoord wordt",
}
_MATH = re.compile(r"\$[^$]*\$|\\\w+")
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {
    word: tuple(name for name, words in _LATIN.items() if word in words.split())
    for word in " ".join(_LATIN.values()).split()
}


def language_of(text: Text) -> str:
    """The language, or the script, of a text outside quotations; "" where it is too short to tell."""
    raw = _MATH.sub(" ", text.unquoted)
    letters = sum(char.isalpha() for char in raw)
    if letters < 6:
        return ""
    if not raw.isascii():
        for name, pattern in _SCRIPTS:
            share = len(pattern.findall(raw)) / letters
            if share > 0.5 or (name == "Japanese" and share > 0.15):
                return name
    counts = Counter(dict.fromkeys(_LATIN, 0))
    for word in raw.casefold().split():
        counts.update(_LANGUAGES_OF.get(word.strip(".,;:!?()"), ()))
    (best, most), (_, second) = counts.most_common(2)
    return best if most >= 2 and most > second else ""
