"""The public names, how they are loaded, and what importing the package costs."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import rubricate
import rubricate.errors as errors

NAMES = [
    "Aggregation",
    "Criterion",
    "CriterionJudge",
    "Failure",
    "Group",
    "HolisticJudge",
    "Judgement",
    "LikertJudge",
    "LogprobJudge",
    "Preference",
    "Reward",
    "Rollout",
    "Router",
    "Rubric",
    "RubricReward",
    "RubricateError",
    "ScriptedJudge",
    "Turn",
    "Usage",
    "Verdict",
    "VerifierJudge",
    "__version__",
    "build_judge",
    "compose",
    "connect",
    "load_rubrics",
    "parse_rubric",
    "save_rubrics",
    "verifier",
]
HEAVY = [
    "torch",
    "transformers",
    "trl",
    "openai",
    "vllm",
    "ray",
    "fastapi",
    "nltk",
    "langdetect",
    "aiohttp",
    "yaml",
]


def test_public_names_are_pinned_and_sorted() -> None:
    assert rubricate.__all__ == NAMES == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_public_name_loads_and_is_documented(name: str) -> None:
    value = getattr(rubricate, name)
    assert name == "__version__" or inspect.getdoc(value)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        rubricate.nonsense  # type: ignore[attr-defined]  # noqa: B018  # the point of the test


@pytest.mark.parametrize(
    "module", ["rubricate", "rubricate.rubrics", "rubricate.judges", "rubricate.rewardmodels", "rubricate.cli"]
)
def test_import_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("module", [f"rubricate.{name}" for name in ("chat", "judges", "rewardmodels", "rubrics")])
def test_names_of_packages_are_there_once(module: str) -> None:
    package = import_module(module)
    assert len(package.__all__) == len(set(package.__all__))
    assert all(hasattr(package, name) for name in package.__all__)


def every_error() -> list[type[errors.RubricateError]]:
    return [value for name in errors.__all__ if isinstance(value := getattr(errors, name), type)]


@pytest.mark.parametrize("cls", every_error())
def test_errors_pickle_with_what_they_carry(cls: type[errors.RubricateError]) -> None:
    error = errors.AnswerError("went wrong", outcome="empty") if cls is errors.AnswerError else cls("went wrong")
    error.hint = "do this"
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert copy.__dict__ == error.__dict__
    assert str(copy) == str(error)
    assert "do this" in str(copy)


@pytest.mark.parametrize("cls", [cls for cls in every_error() if cls is not errors.RubricateError])
def test_errors_are_standard_types_too(cls: type[errors.RubricateError]) -> None:
    assert issubclass(cls, ValueError | RuntimeError | ImportError)
