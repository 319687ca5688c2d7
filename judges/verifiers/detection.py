"""Language detection that gives the same answer every time."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, cast

__all__ = ["detect", "languages", "probabilities"]


class _Language(Protocol):
    lang: str
    prob: float


class _Detector(Protocol):
    def append(self, text: str) -> None: ...

    def get_probabilities(self) -> Sequence[_Language]: ...


class _Factory(Protocol):
    def load_profile(self, directory: str) -> None: ...

    def set_seed(self, seed: int) -> None: ...

    def create(self) -> _Detector: ...

    def get_lang_list(self) -> list[str]: ...


class _FactoryModule(Protocol):
    PROFILES_DIRECTORY: str

    def DetectorFactory(self) -> _Factory: ...


class _Package(Protocol):
    LangDetectException: type[Exception]


@lru_cache(maxsize=1)
def _factory() -> _Factory:
    """A factory of our own: the package's global one is unseeded, and seeding it would change it for others."""
    module = cast("_FactoryModule", importlib.import_module("langdetect.detector_factory"))
    factory = module.DetectorFactory()
    factory.load_profile(module.PROFILES_DIRECTORY)
    factory.set_seed(0)
    return factory


@lru_cache(maxsize=1)
def languages() -> tuple[str, ...]:
    """Codes of the languages that can be told apart: ISO 639-1, Chinese as `zh-cn` and `zh-tw`."""
    return tuple(sorted(_factory().get_lang_list()))


def probabilities(text: str) -> list[tuple[str, float]] | None:
    """Languages of a text with their probabilities above 0.1, the likeliest first; None where nothing tells any.

    langdetect draws n-grams at random; here every text starts from the same seed. It reads the first 10,000
    characters.
    """
    package = cast("_Package", importlib.import_module("langdetect"))
    detector = _factory().create()
    detector.append(text)
    try:
        return [(language.lang, language.prob) for language in detector.get_probabilities()]
    except package.LangDetectException:
        return None


def detect(text: str) -> str | None:
    """The likeliest language of a text; None where it has no letters, `unknown` where none is likely."""
    found = probabilities(text)
    if found is None:
        return None
    return found[0][0] if found else "unknown"
