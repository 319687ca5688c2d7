"""IFEval's 25 instruction types (Zhou et al. 2023, arXiv 2311.07911) under their official identifiers.

Arguments have the official names and, as in published data files, may be null where they do not apply. Verdicts are
those of the official checker, in strict and in loose mode, with two exceptions that it leaves to chance: a letter
outside a to z is taken as given, and language detection is seeded. An argument that is missing is an error here;
there it is drawn at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, field_validator, model_validator

from rubricate.errors import VerifierError
from rubricate.judges.verifiers import ifeval_rules as rules
from rubricate.judges.verifiers.detection import languages
from rubricate.judges.verifiers.registry import Check, Input, VerifierArgs, run_verifier, verifier
from rubricate.narrow import as_object

__all__ = ["IFEVAL_INSTRUCTIONS", "ifeval_check"]

Relation = Literal["at least", "less than"]
Count = Annotated[int, Field(ge=0)]
Keyword = Annotated[str, Field(min_length=1)]
Stripped = Annotated[str, AfterValidator(str.strip), Field(min_length=1)]


class _Mode(VerifierArgs):
    """What every instruction takes: the mode. Null arguments are dropped."""

    mode: Literal["strict", "loose"] = "strict"

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        given = as_object(value)
        return value if given is None else {name: item for name, item in given.items() if item is not None}


ArgsT = TypeVar("ArgsT", bound=_Mode)
Rule = Callable[[str, ArgsT], Check]
_INSTRUCTIONS: list[str] = []


def _instruction(identifier: str, args: type[ArgsT]) -> Callable[[Rule[ArgsT]], Rule[ArgsT]]:
    """Register a rule that sees one text as the verifier of that identifier, in both modes."""

    def register(rule: Rule[ArgsT]) -> Rule[ArgsT]:
        def run(given: Input, typed: ArgsT) -> Check:
            return _decide(rule, given, typed)

        run.__doc__ = rule.__doc__
        verifier(identifier, args)(run)
        _INSTRUCTIONS.append(identifier)
        return rule

    return register


def _decide(rule: Rule[ArgsT], given: Input, args: ArgsT) -> Check:
    if not given.response.strip():
        return Check(False, "the response is empty")
    strict = rule(given.response, args)
    if strict.met or args.mode == "strict":
        return strict
    for variant in rules.loose_variants(given.response)[1:]:
        found = rule(variant, args)
        if found.met:
            return Check(True, f"{found.reason} (loose)", value=found.value)
    return strict


def ifeval_check(
    instruction_id: str,
    kwargs: Mapping[str, object],
    prompt: str,
    response: str,
    mode: Literal["strict", "loose"] = "strict",
) -> Check:
    """Check one instruction of an IFEval row: an entry of `instruction_id_list` with its entry of `kwargs`.

    An empty response meets nothing. In loose mode the response is tried with its first line, its last line, both
    and its asterisks left out. Raises VerifierError for an unknown identifier or wrong arguments.
    """
    if instruction_id not in IFEVAL_INSTRUCTIONS:
        raise VerifierError(
            f"{instruction_id!r} is not an instruction of IFEval",
            hint=f"it has {', '.join(IFEVAL_INSTRUCTIONS)}",
        )
    return run_verifier(instruction_id, {**kwargs, "mode": mode}, Input(response, prompt))


def _compared(count: int, relation: Relation, threshold: int, noun: str) -> Check:
    met = count >= threshold if relation == "at least" else count < threshold
    return Check(met, f"{count} {noun}, wanted {relation} {threshold}", value=count)


def _at_least(count: int, threshold: int, noun: str) -> Check:
    return _compared(count, "at least", threshold, noun)


def _exactly(count: int, wanted: int, noun: str) -> Check:
    return Check(count == wanted, f"{count} {noun}, wanted exactly {wanted}", value=count)


# keywords


class _Keywords(_Mode):
    keywords: tuple[Keyword, ...] = Field(min_length=1)


@_instruction("keywords:existence", _Keywords)
def _existence(text: str, args: _Keywords) -> Check:
    """Every keyword occurs."""
    missing = [keyword for keyword in args.keywords if not rules.contains(keyword, text)]
    return Check(not missing, f"missing: {', '.join(missing)}" if missing else "all keywords occur")


class _Frequency(_Mode):
    keyword: Stripped
    frequency: Count
    relation: Relation


@_instruction("keywords:frequency", _Frequency)
def _frequency(text: str, args: _Frequency) -> Check:
    """The keyword occurs at least, or less than, so many times."""
    return _compared(rules.occurrences(args.keyword, text), args.relation, args.frequency, f"x {args.keyword!r}")


class _Forbidden(_Mode):
    forbidden_words: tuple[Keyword, ...] = Field(min_length=1)


@_instruction("keywords:forbidden_words", _Forbidden)
def _forbidden(text: str, args: _Forbidden) -> Check:
    """None of the words occurs."""
    found = [word for word in args.forbidden_words if rules.contains(word, text, whole_word=True)]
    return Check(not found, f"found: {', '.join(found)}" if found else "no forbidden word")


class _Letters(_Mode):
    letter: str = Field(min_length=1, max_length=1)
    let_frequency: Count
    let_relation: Relation


@_instruction("keywords:letter_frequency", _Letters)
def _letter_frequency(text: str, args: _Letters) -> Check:
    """The letter, whatever its case, occurs at least, or less than, so many times."""
    count = Counter(text.lower())[args.letter.lower()]
    return _compared(count, args.let_relation, args.let_frequency, f"x {args.letter!r}")


# language


class _Language(_Mode):
    language: str

    @field_validator("language")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in languages():
            raise ValueError(f"langdetect knows no language {value!r}; it has {', '.join(languages())}")
        return value


@_instruction("language:response_language", _Language)
def _response_language(text: str, args: _Language) -> Check:
    """The response is in the language (langdetect's code); a text that tells nothing passes."""
    return Check(rules.speaks(args.language, text), f"wanted {args.language}")


# length constraints


class _Sentences(_Mode):
    num_sentences: Count
    relation: Relation


@_instruction("length_constraints:number_sentences", _Sentences)
def _number_sentences(text: str, args: _Sentences) -> Check:
    """At least, or less than, so many sentences."""
    return _compared(rules.count_sentences(text), args.relation, args.num_sentences, "sentences")


class _Paragraphs(_Mode):
    num_paragraphs: Count


@_instruction("length_constraints:number_paragraphs", _Paragraphs)
def _number_paragraphs(text: str, args: _Paragraphs) -> Check:
    """Exactly so many paragraphs, parted by `***`."""
    count = rules.count_paragraphs(text)
    if count is None:
        return Check(False, "a paragraph between two dividers is blank")
    return _exactly(count, args.num_paragraphs, "paragraphs")


class _Words(_Mode):
    num_words: Count
    relation: Relation


@_instruction("length_constraints:number_words", _Words)
def _number_words(text: str, args: _Words) -> Check:
    """At least, or less than, so many words."""
    return _compared(rules.count_words(text), args.relation, args.num_words, "words")


class _NthParagraph(_Mode):
    num_paragraphs: Count
    nth_paragraph: int = Field(ge=1)
    first_word: str = Field(min_length=1)

    @model_validator(mode="after")
    def _within(self) -> _NthParagraph:
        if self.nth_paragraph > self.num_paragraphs:
            raise ValueError("nth_paragraph is larger than num_paragraphs")
        return self


@_instruction("length_constraints:nth_paragraph_first_word", _NthParagraph)
def _nth_paragraph_first_word(text: str, args: _NthParagraph) -> Check:
    """Exactly so many paragraphs, parted by an empty line, and the nth begins with the word."""
    found = rules.first_word_of_paragraph(text, args.nth_paragraph)
    if found is None:
        return Check(False, f"there is no paragraph {args.nth_paragraph}")
    count, word = found
    if count != args.num_paragraphs:
        return _exactly(count, args.num_paragraphs, "paragraphs")
    wanted = args.first_word.lower()
    place = f"paragraph {args.nth_paragraph}"
    return Check(word == wanted, f"{place} {'begins' if word == wanted else 'does not begin'} with {wanted!r}")


# detectable content


class _Placeholders(_Mode):
    num_placeholders: Count


@_instruction("detectable_content:number_placeholders", _Placeholders)
def _number_placeholders(text: str, args: _Placeholders) -> Check:
    """At least so many placeholders in square brackets."""
    return _at_least(rules.count_placeholders(text), args.num_placeholders, "placeholders")


class _Postscript(_Mode):
    postscript_marker: Stripped


@_instruction("detectable_content:postscript", _Postscript)
def _postscript(text: str, args: _Postscript) -> Check:
    """A postscript with the marker."""
    return Check(rules.has_postscript(args.postscript_marker, text), f"looked for {args.postscript_marker}")


# detectable format


class _Bullets(_Mode):
    num_bullets: Count


@_instruction("detectable_format:number_bullet_lists", _Bullets)
def _number_bullet_lists(text: str, args: _Bullets) -> Check:
    """Exactly so many bullet points (`*` or `-`)."""
    return _exactly(rules.count_bullets(text), args.num_bullets, "bullet points")


OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


@_instruction("detectable_format:constrained_response", _Mode)
def _constrained_response(text: str, args: _Mode) -> Check:
    """One of `My answer is yes.`, `My answer is no.` and `My answer is maybe.` occurs."""
    return Check(any(option in text for option in OPTIONS), f"looked for {' / '.join(OPTIONS)}")


class _Highlights(_Mode):
    num_highlights: Count


@_instruction("detectable_format:number_highlighted_sections", _Highlights)
def _number_highlighted_sections(text: str, args: _Highlights) -> Check:
    """At least so many highlights, like `*this*` or `**this**`."""
    return _at_least(rules.count_highlights(text), args.num_highlights, "highlights")


class _Sections(_Mode):
    section_spliter: Stripped
    num_sections: Count


@_instruction("detectable_format:multiple_sections", _Sections)
def _multiple_sections(text: str, args: _Sections) -> Check:
    """At least so many sections that begin with the splitter and a number."""
    return _at_least(rules.count_sections(args.section_spliter, text), args.num_sections, "sections")


@_instruction("detectable_format:json_format", _Mode)
def _json_format(text: str, args: _Mode) -> Check:
    """The response is JSON, alone or in a code fence."""
    met = rules.is_json(text)
    return Check(met, "JSON" if met else "not JSON")


@_instruction("detectable_format:title", _Mode)
def _title(text: str, args: _Mode) -> Check:
    """There is a title in double angular brackets."""
    met = rules.has_title(text)
    return Check(met, "there is a title" if met else "there is no <<title>>")


# combination


@_instruction("combination:two_responses", _Mode)
def _two_responses(text: str, args: _Mode) -> Check:
    """Two different responses, parted by `******`."""
    return Check(rules.is_two_responses(text), "looked for two different responses parted by ******")


class _Repeat(_Mode):
    prompt_to_repeat: Stripped


@_instruction("combination:repeat_prompt", _Repeat)
def _repeat_prompt(text: str, args: _Repeat) -> Check:
    """The response begins with the prompt, whatever the case."""
    met = text.strip().lower().startswith(args.prompt_to_repeat.lower())
    return Check(met, "begins with the prompt" if met else "does not begin with the prompt")


# start, end, case, punctuation


class _End(_Mode):
    end_phrase: Stripped


@_instruction("startend:end_checker", _End)
def _end_checker(text: str, args: _End) -> Check:
    """The response ends with the phrase, whatever the case; a closing quotation mark may follow."""
    met = text.strip().strip('"').lower().endswith(args.end_phrase.lower())
    return Check(met, "ends with the phrase" if met else "does not end with the phrase")


@_instruction("startend:quotation", _Mode)
def _quotation(text: str, args: _Mode) -> Check:
    """The whole response is in double quotation marks."""
    return Check(rules.is_quoted(text), "looked for double quotation marks around the response")


class _Capitals(_Mode):
    capital_frequency: Count
    capital_relation: Relation


@_instruction("change_case:capital_word_frequency", _Capitals)
def _capital_word_frequency(text: str, args: _Capitals) -> Check:
    """At least, or less than, so many words in capitals."""
    return _compared(rules.capital_words(text), args.capital_relation, args.capital_frequency, "words in capitals")


@_instruction("change_case:english_capital", _Mode)
def _english_capital(text: str, args: _Mode) -> Check:
    """English, without a small letter."""
    return Check(text.isupper() and rules.speaks("en", text), "wanted English in capitals")


@_instruction("change_case:english_lowercase", _Mode)
def _english_lowercase(text: str, args: _Mode) -> Check:
    """English, without a capital letter."""
    return Check(text.islower() and rules.speaks("en", text), "wanted English without capitals")


@_instruction("punctuation:no_comma", _Mode)
def _no_comma(text: str, args: _Mode) -> Check:
    """No comma."""
    count = text.count(",")
    return Check(count == 0, f"{count} commas", value=count)


IFEVAL_INSTRUCTIONS = tuple(sorted(_INSTRUCTIONS))
"""The 25 official identifiers."""
