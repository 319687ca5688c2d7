"""Texts as the rules see them: words, content words, negation, quotations; any script, English function words."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property

__all__ = ["BOILERPLATE", "NEGATIONS", "STOP", "Text", "is_name", "stem"]

_WORD = re.compile(r"\$[^$\n]{1,200}\$|[^\W_]+(?:['’_.+\-/][^\W_]+)*[+#]*|[^\W]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f]")
_QUOTED = re.compile(
    r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|«[^»\n]{1,200}»|`[^`\n]{1,200}`|(?<!\w)'[^'\n]{1,120}'(?!\w)"
)
_CJK_PARTICLES = set(
    "的了是在有和与或应须该需要必请这那其中对于并且且也都就地得之を、はがのにでとも。，！？をべきするこ"
)

STOP = frozenset(
    "a an the of to in on at by for from with as is are be been being was were it its this that these those and or "
    "which who whom whose what when where how why if then so do does did done has have had will "
    "would can could may "
    "might shall should must there their them they he she his her you your user's also any all each "
    "every both into "
    "within about regarding concerning such".split()
)
"""English function words. Negations are none of them."""

BOILERPLATE = frozenset(
    "response responses answer answers reply replies output model assistant text criterion criteria essential "
    "important optional pitfall hard rule principle clearly clear correctly correct accurately accurate explicitly "
    "explicit properly appropriately effectively successfully specifically mention mentions mentioned state states "
    "stated describe describes described explain explains explained include includes included including contain "
    "contains contained provide provides provided give gives given identify identifies identified "
    "discuss discusses "
    "discussed address addresses addressed cover covers note notes noted point points out present "
    "presents say says "
    "indicate indicates list lists name names specify specifies report reports make makes sure ensure ensures "
    "acknowledge acknowledges highlight highlights show shows demonstrate demonstrates".split()
)
"""Words of rubrics that say little of what is asked: who answers, and that something is said."""

NEGATIONS = frozenset(
    "not no never without none neither nor cannot don't doesn't isn't aren't won't shouldn't mustn't can't didn't "
    "avoid avoids avoided avoiding refrain refrains refraining abstain abstains omit omits omitting omitted fail "
    "fails failing exclude excludes neglect neglects lack lacks lacking free ignore ignores ignoring".split()
)
"""Words that turn a statement into its opposite."""

RELATIONS = frozenset("than before after over under above below versus vs precedes follows into rather".split())


def stem(word: str) -> str:
    """A word without the commonest English endings; two forms of a word mostly share it."""
    for ending in ("ations", "ation", "ings", "ing", "ions", "ion", "ies", "ied", "es", "ed", "ly", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    if word.endswith("ed") and len(word) > 4:
        return word[:-1]
    plural = word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3
    return word[:-1] if plural else word


def is_name(word: str, first: bool) -> bool:
    """Whether a word, as it was written, is a number, a code or a name: what sets of criteria are told apart by."""
    if any(char.isdigit() for char in word) or any(char in "_/.+#$" for char in word):
        return True
    return word[1:] != word[1:].lower() or (word[:1].isupper() and not first) or len(word) == 1


class Text:
    """A criterion's text, analysed as far as it is asked for."""

    def __init__(self, raw: str) -> None:
        self.raw = raw

    @cached_property
    def folded(self) -> str:
        """NFKC, lower case, plain apostrophes, single blanks."""
        plain = unicodedata.normalize("NFKC", self.raw).replace("’", "'").casefold()
        return " ".join(plain.split())

    @cached_property
    def unquoted(self) -> str:
        """The text, quotations and code blanked out with `Q`."""
        return _QUOTED.sub("Q", self.raw)

    @cached_property
    def quotations(self) -> tuple[str, ...]:
        """What stands in quotation marks, without them."""
        return tuple(found[1:-1] for found in _QUOTED.findall(self.raw))

    @cached_property
    def written(self) -> tuple[str, ...]:
        """Words as they were written, after NFKC."""
        return tuple(_WORD.findall(unicodedata.normalize("NFKC", self.raw).replace("’", "'")))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words in lower case; runs of Chinese, Japanese, Korean or Thai are cut into pairs of characters."""
        found: list[str] = []
        for word in self.written:
            lower = word.casefold()
            if _CJK.search(lower):
                kept = "".join(char for char in lower if char not in _CJK_PARTICLES) or lower
                found += [kept[at : at + 2] for at in range(max(1, len(kept) - 1))]
            else:
                found.append(lower.removesuffix("'s"))
        return tuple(found)

    @cached_property
    def count(self) -> int:
        """How many words there are; a Chinese or Japanese character is one."""
        return sum(max(1, len(_CJK.findall(word))) for word in self.written)

    @cached_property
    def names(self) -> frozenset[str]:
        """Stems of numbers, codes and names."""
        listed = enumerate(self.written)
        named = (word.casefold().removesuffix("'s") for at, word in listed if is_name(word, at == 0))
        return frozenset(stem(word) for word in named if word not in STOP)

    @cached_property
    def core(self) -> tuple[str, ...]:
        """Stems of the content words in order, without negations; of all words where nothing else is left."""
        plain = [w for w in self.words if w not in STOP and w not in NEGATIONS]
        kept = [w for w in plain if w not in BOILERPLATE]
        return tuple(stem(word) for word in kept or plain or self.words)

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words, function words and boilerplate included."""
        return frozenset(stem(word) for word in self.words)

    @cached_property
    def core_set(self) -> frozenset[str]:
        """The content words as a set."""
        return frozenset(self.core)

    @cached_property
    def negative(self) -> bool:
        """Whether an odd number of words turns the statement into its opposite."""
        return sum(word in NEGATIONS for word in self.words) % 2 == 1

    @cached_property
    def relational(self) -> bool:
        """Whether the order of its words matters, as in `more than` and `before`."""
        return not RELATIONS.isdisjoint(self.words)
