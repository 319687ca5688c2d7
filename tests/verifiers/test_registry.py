"""The registry: registration, typed arguments, and what happens to verifiers that break."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from pydantic import Field

from rubricate.errors import ConfigError, MissingExtraError, VerifierError
from rubricate.judges.verifiers import (
    Check,
    Input,
    VerifierArgs,
    get_verifier,
    registry,
    run_verifier,
    verifier,
    verifier_names,
)


@pytest.fixture
def name() -> Iterator[str]:
    """A fresh verifier name, taken out of the registry afterwards."""
    fresh = f"test-{uuid.uuid4().hex}"
    yield fresh
    table = cast("dict[str, object]", vars(registry)["_REGISTRY"])
    table.pop(fresh, None)


class Times(VerifierArgs):
    word: str = Field(min_length=1)
    times: int = Field(default=1, ge=1)


def test_a_user_adds_a_verifier_with_the_decorator(name: str) -> None:
    @verifier(name, Times)
    def repeats(given: Input, args: Times) -> Check:
        """The word occurs so many times.

        More text.
        """
        count = given.response.count(args.word)
        return Check(count == args.times, f"{count} times")

    assert name in verifier_names()
    assert get_verifier(name).doc == "The word occurs so many times."
    assert run_verifier(name, {"word": "ha", "times": 2}, Input("ha ha")) == Check(True, "2 times")
    assert not run_verifier(name, {"word": "ha"}, Input("ha ha")).met
    assert repeats(Input("ha"), Times(word="ha")) == Check(True, "1 times"), "the decorator returns the function"


def test_a_verifier_may_return_a_bool_and_take_no_arguments(name: str) -> None:
    @verifier(name)
    def short(given: Input, args: VerifierArgs) -> bool:
        return len(given.response) < 3

    assert run_verifier(name, {}, Input("ab")) == Check(True)
    with pytest.raises(VerifierError, match="takes no arguments"):
        run_verifier(name, {"min": 1}, Input("ab"))
    assert short(Input("abc"), VerifierArgs()) is False


def test_arguments_typed_by_a_local_class_work(name: str) -> None:
    class Local(VerifierArgs):
        inner: Times

    @verifier(name, Local)
    def local(given: Input, args: Local) -> bool:
        return args.inner.word in given.response

    assert run_verifier(name, {"inner": {"word": "b"}}, Input("abc")).met
    assert local(Input(""), Local(inner=Times(word="x"))) is False


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "argument 'word'"),
        ({"word": ""}, "argument 'word'"),
        ({"word": "a", "times": 0}, "argument 'times'"),
        ({"word": "a", "times": "many"}, "argument 'times'"),
        ({"word": "a", "tmes": 2}, "argument 'tmes': there is no such argument; did you mean 'times'"),
        ({"word": "a", "times": float("nan")}, "argument 'times'"),
    ],
)
def test_wrong_arguments_are_named(name: str, args: Mapping[str, object], message: str) -> None:
    @verifier(name, Times)
    def never(given: Input, args: Times) -> bool:
        raise AssertionError("must not run")

    with pytest.raises(VerifierError, match=message) as caught:
        run_verifier(name, args, Input("a"))
    assert "word, times" in caught.value.hint
    assert name in str(caught.value)
    assert never.__name__ == "never"


def test_the_position_in_a_list_is_named() -> None:
    with pytest.raises(VerifierError, match=r"argument 'phrases\.1'"):
        run_verifier("required", {"phrases": ["a", 3]}, Input("a"))


def test_an_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(VerifierError, match="no_comma") as caught:
        run_verifier("no_comma", {}, Input("a"))
    assert "punctuation:no_comma" in caught.value.hint
    with pytest.raises(VerifierError) as caught:
        get_verifier("sentence")
    assert "sentences" in caught.value.hint
    with pytest.raises(VerifierError) as caught:
        get_verifier("qqqqqqqqqqq")
    assert "verifier_names" in caught.value.hint


def test_an_exception_in_a_verifier_is_never_a_verdict(name: str) -> None:
    @verifier(name)
    def broken(given: Input, args: VerifierArgs) -> bool:
        raise KeyError("oops")

    with pytest.raises(VerifierError, match="oops") as caught:
        run_verifier(name, {}, Input("a"))
    assert name in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
    assert broken.__name__ == "broken"


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), UnicodeError("x"), AssertionError("x")])
def test_other_exceptions_too(name: str, error: Exception) -> None:
    @verifier(name)
    def broken(given: Input, args: VerifierArgs) -> bool:
        raise error

    with pytest.raises(VerifierError) as caught:
        run_verifier(name, {}, Input("a"))
    assert caught.value.__cause__ is error
    assert broken.__name__ == "broken"


def test_an_undecided_verifier_names_itself_and_keeps_its_hint(name: str) -> None:
    @verifier(name)
    def undecided(given: Input, args: VerifierArgs) -> bool:
        if given.prompt:
            raise MissingExtraError("spam", extra="local")
        raise VerifierError("cannot tell", hint="try again")

    with pytest.raises(VerifierError, match=f"verifier '{name}': cannot tell") as caught:
        run_verifier(name, {}, Input("a"))
    assert caught.value.hint == "try again"
    with pytest.raises(VerifierError, match="spam") as caught:
        run_verifier(name, {}, Input("a", "prompt"))
    assert "pip install" in caught.value.hint
    assert undecided.__name__ == "undecided"


@pytest.mark.parametrize("result", [None, 1, "yes", 0.5])
def test_a_result_of_the_wrong_type_is_refused(name: str, result: object) -> None:
    @verifier(name)
    def odd(given: Input, args: VerifierArgs) -> bool:
        return cast("bool", result)

    with pytest.raises(VerifierError, match="must return a Check or True or False"):
        run_verifier(name, {}, Input("a"))
    assert odd.__name__ == "odd"


def test_coroutines_are_refused(name: str) -> None:
    async def later(given: Input, args: VerifierArgs) -> bool:
        await asyncio.sleep(0)
        return True

    with pytest.raises(ConfigError, match="coroutine"):
        verifier(name)(later)  # pyright: ignore[reportArgumentType]  # what a user may try

    @verifier(name)
    def hidden(given: Input, args: VerifierArgs) -> bool:
        return cast("bool", later(given, args))

    with pytest.raises(VerifierError, match="coroutine"):
        run_verifier(name, {}, Input("a"))
    assert hidden.__name__ == "hidden"


def test_a_taken_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="exists already"):

        @verifier("words")
        def other(given: Input, args: VerifierArgs) -> bool:  # pyright: ignore[reportUnusedFunction]  # refused
            return True


def test_blank_names_and_other_argument_classes_are_refused() -> None:
    with pytest.raises(ConfigError, match="needs a name"):
        verifier(" ")
    with pytest.raises(ConfigError, match="VerifierArgs"):
        verifier("x", dict)  # pyright: ignore[reportArgumentType]  # what a user may try


def test_the_same_function_may_be_registered_again(tmp_path: Path, name: str) -> None:
    """A reloaded module, and a script that is imported under its module name as well, replace their verifiers."""
    script = tmp_path / "mine.py"
    script.write_text(
        "from rubricate.judges.verifiers import Input, VerifierArgs, verifier\n"
        f"@verifier({name!r})\n"
        "def mine(given: Input, args: VerifierArgs) -> bool:\n"
        "    return True\n"
    )
    import importlib.util

    for module_name in ("__main__x", "mine", "mine"):
        spec = importlib.util.spec_from_file_location(module_name, script)
        assert spec is not None and spec.loader is not None
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert run_verifier(name, {}, Input("")).met


def test_importing_a_built_in_module_twice_is_harmless() -> None:
    import importlib

    before = verifier_names()
    importlib.reload(sys.modules["rubricate.judges.verifiers.length"])
    importlib.reload(sys.modules["rubricate.judges.verifiers.ifeval"])
    assert verifier_names() == before


@pytest.mark.parametrize(
    ("met", "score"), [(True, 0.5), (False, 1.0), (True, 1.5), (False, -0.1), (False, float("nan"))]
)
def test_a_score_agrees_with_met(met: bool, score: float) -> None:
    with pytest.raises(ValueError, match="score"):
        Check(met, score=score)


def test_checks_and_inputs_pickle() -> None:
    check = Check(False, "why", 0.25, 3)
    assert pickle.loads(pickle.dumps(check)) == check
    given = Input("r", "p", "ref", "stop")
    assert pickle.loads(pickle.dumps(given)) == given


def test_threads_share_the_verifiers() -> None:
    texts = [f"This is sentence number {n}. And this is another one." for n in range(24)]

    def run(text: str) -> tuple[bool, bool, bool]:
        given = Input(text)
        return (
            run_verifier("sentences", {"min": 2, "max": 2}, given).met,
            run_verifier("language", {"language": "en"}, given).met,
            run_verifier(
                "length_constraints:number_sentences", {"num_sentences": 3, "relation": "less than"}, given
            ).met,
        )

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(run, texts)) == {(True, True, True)}


HEAVY = ("nltk", "langdetect", "jsonschema", "punkt", "regex", "yaml", "transformers", "torch")


def test_the_import_registers_the_built_in_verifiers_and_loads_nothing_heavy() -> None:
    """In a fresh process, from the registry's package alone."""
    program = (
        "import sys\n"
        "import pydantic, rubricate.errors, rubricate.narrow\n"
        "import types, time, pathlib, rubricate\n"
        "judges = types.ModuleType('rubricate.judges')\n"
        "judges.__path__ = [str(pathlib.Path(rubricate.__file__).parent / 'judges')]\n"
        "sys.modules['rubricate.judges'] = judges\n"
        "start = time.process_time()\n"
        "import rubricate.judges.verifiers as v\n"
        "spent = time.process_time() - start\n"
        f"print(len(v.verifier_names()), [m for m in {HEAVY!r} if m in sys.modules], spent)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, _, rest = done.stdout.partition(" ")
    loaded, _, seconds = rest.rpartition(" ")
    assert int(count) >= 55
    assert loaded == "[]"
    assert float(seconds) < 0.5, "seconds of CPU; about 0.05 on a quiet machine"
