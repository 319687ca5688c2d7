"""Attempts to get out of the sandbox, or to use up the machine, through the language that checks are written in."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rubricate.judges.sandbox import CheckFailure, run_check, unsupported_reason

pytestmark = pytest.mark.skipif(bool(unsupported_reason()), reason=unsupported_reason() or "a sandbox is there")

FORBIDDEN, ERROR = CheckFailure.FORBIDDEN, CheckFailure.ERROR
TIMEOUT, MEMORY, CRASH = CheckFailure.TIMEOUT, CheckFailure.MEMORY, CheckFailure.CRASH


@dataclass(frozen=True)
class Attempt:
    """What is tried in the body of the check (or as a whole source), and how it may end."""

    name: str
    body: str
    ends: tuple[CheckFailure, ...] = (FORBIDDEN,)
    says: str = ""
    whole: bool = False

    @property
    def source(self) -> str:
        if self.whole:
            return self.body
        lines = "\n".join(f"    {line}" for line in self.body.strip().splitlines())
        return f"def verify_requirement(text):\n{lines}\n"


ESCAPES = [
    Attempt("class walk", "return len(().__class__.__bases__[0].__subclasses__()) > 0", says="__subclasses__"),
    Attempt("frames of a generator", "g = (x for x in text)\nreturn g.gi_frame is not None", says="gi_frame"),
    Attempt("frame by another attribute", "g = (x for x in text)\ng.send(None)\nreturn True", says="generator"),
    Attempt("format string walks attributes", 'return "{0.__class__}".format(text) != ""', says="format"),
    Attempt("format of the class", "f = str.format\nreturn f('{0.__class__}', text) != ''", says="format"),
    Attempt("format_map", 'return "{a.__class__}".format_map({"a": text}) != ""', says="format_map"),
    Attempt("bases of a class by mro", "return len(str.mro()) == 2", says="mro"),
    Attempt("type", "return type('X', (), {})() is not None", (ERROR,), "NameError"),
    Attempt("a class with a lying method", "class A:\n    def __bool__(self):\n        return True\nreturn A()"),
    Attempt("metaclass", "class A(metaclass=str):\n    pass\nreturn True"),
    Attempt("getattr", "return getattr(text, '__class__') is str", (ERROR,), "NameError"),
    Attempt("eval", "return eval('1 == 1')", says="Eval"),
    Attempt("exec", "exec('x = 1')\nreturn True", says="Exec"),
    Attempt("eval under another name", "e = [eval]\nreturn e[0]('True')", (ERROR,), "NameError"),
    Attempt("compile", "return compile('1', 'x', 'eval') is not None", (ERROR,), "NameError"),
    Attempt("open", "return len(open('/etc/passwd').read()) > 0", (ERROR,), "NameError"),
    Attempt("builtins", "return __builtins__ is not None", says="__builtins__"),
    Attempt("builtins by import", "import builtins\nreturn True", says="builtins"),
    Attempt("changing builtins", "import re\nre.compile = None\nreturn True", says="change"),
    Attempt("changing a function", "import json\njson.dumps.x = 1\nreturn True", says="change"),
    Attempt("os", "import os\nreturn os.system('id') == 0", says="import of os"),
    Attempt("os from a module", "import re\nreturn re.sys.modules['os'] is not None", says="re.sys"),
    Attempt("codecs from json", "import json\nreturn json.codecs.open is not None", says="json.codecs"),
    Attempt("os from a module, by from", "from json import codecs\nreturn True", says="json.codecs"),
    Attempt("formatter of string", "import string\nreturn string.Formatter() is not None", says="Formatter"),
    Attempt("socket", "import socket\nreturn True", says="socket"),
    Attempt("ctypes", "import ctypes\nreturn True", says="ctypes"),
    Attempt("importlib", "import importlib\nreturn True", says="importlib"),
    Attempt("pickle", "import pickle\nreturn pickle.loads(b'cos\\nsystem\\n(S\"id\"\\ntR.') == 0", says="pickle"),
    Attempt("threads", "import threading\nreturn True", says="threading"),
    Attempt("signals", "import signal\nsignal.alarm(1)\nreturn True", says="signal"),
    Attempt("exit handlers", "import atexit\nreturn True", says="atexit"),
    Attempt("garbage collector", "import gc\nreturn len(gc.get_objects()) > 0", says="gc"),
    Attempt("operator's attrgetter", "import operator\nreturn True", says="operator"),
    Attempt("environment", "from os import environ\nreturn bool(environ)", says="os"),
    Attempt("globals of a function", "import re\nreturn re.compile.__globals__ is not None", says="__globals__"),
    Attempt("traceback", "try:\n    1 / 0\nexcept Exception as e:\n    return e.with_traceback(None) is not None"),
    Attempt("name error's object", "try:\n    ''.x\nexcept AttributeError as e:\n    return e.obj == ''"),
    Attempt("SystemExit", "raise SystemExit", (ERROR,), "NameError"),
    Attempt("a codec that is a module", "return text.encode('idna') == b'x'", says="encodings"),
    Attempt("the clock", "import datetime\nreturn datetime.date.today().year > 2000", says="clock"),
    Attempt("decorator", "@len\ndef f():\n    return 1\nreturn True", (ERROR,), "TypeError"),
    Attempt("exception groups", "try:\n    pass\nexcept* ValueError:\n    pass\nreturn True", says="TryStar"),
    Attempt("async", "async def verify_requirement(text):\n    return True", says="Async", whole=True),
    Attempt(
        "a class for json to call",
        "import json\nreturn json.dumps({}, cls=lambda **k: k) == ''",
        (ERROR,),
        "AttributeError",
    ),
    Attempt("print's owner", "p = print\nreturn p.x is None", says="method"),
    Attempt("a scanner of re", "import re\nreturn re.compile('a').scanner('a') is re.compile('a').scanner('a').x"),
    Attempt(
        "a class by a factory",
        "import collections\nreturn collections.defaultdict(list).default_factory.mro() == 1",
    ),
    Attempt("import of everything", "from math import *\nreturn True", says="imports"),
    Attempt("a module in a module", "import collections.abc\nreturn True", says="collections.abc"),
    Attempt("import on load", "import subprocess\ndef verify_requirement(text):\n    return True", whole=True),
]

EXHAUSTION = [
    Attempt("endless loop", "while True:\n    pass", (TIMEOUT,)),
    Attempt("endless loop on load", "while True:\n    pass", (TIMEOUT,), whole=True),
    Attempt("catastrophic backtracking", "import re\nreturn bool(re.match('(a+)+$', 'a' * 64 + 'b'))", (TIMEOUT,)),
    Attempt("a power without end", "return 10 ** 10 ** 10 > 0", (TIMEOUT, MEMORY)),
    Attempt("factorial", "import math\nreturn math.factorial(10 ** 9) > 0", (TIMEOUT, MEMORY)),
    Attempt("memory in one piece", "return len('x' * 10 ** 10) > 0", (MEMORY,)),
    Attempt("memory bit by bit", "x = []\nwhile True:\n    x.append(' ' * 10 ** 6)", (MEMORY,)),
    Attempt("memory by a format", "return len('%2000000000d' % 1) > 0", (MEMORY,)),
    Attempt("memory by doubling", "x = 'x'\nwhile True:\n    x += x", (MEMORY,)),
    Attempt("deep recursion", "def f(n):\n    return f(n + 1)\nreturn f(0)", (ERROR,), "RecursionError"),
    Attempt("deep nesting", f"return {'(' * 5000}1{')' * 5000} == 1", (MEMORY, CheckFailure.SOURCE)),
    Attempt("deep data", "import json\nreturn json.loads('[' * 10 ** 6) == 1", (ERROR, CRASH)),
    Attempt("huge whole number as text", "return len(str(10 ** 5000)) > 0", (ERROR,), "ValueError"),
    Attempt("endless iterator", "import itertools\nreturn sum(itertools.count()) > 0", (TIMEOUT,)),
    Attempt("memory by an f-string", 'return len(f"{text:>{10 ** 10}}") > 0', (MEMORY,)),
    Attempt("nested pattern", "import re\nreturn re.compile('(' * 5000 + ')' * 5000) is None", (ERROR, CRASH)),
    Attempt("output flood", "while True:\n    print(text * 1000)", (TIMEOUT,)),
]

SWALLOWING = [
    Attempt("memory", "try:\n    x = 'x' * 10 ** 10\nexcept:\n    return False\nreturn True", (MEMORY,)),
    Attempt("memory, by name", "try:\n    'x' * 10 ** 10\nexcept Exception:\n    return False", (MEMORY,)),
    Attempt("recursion", "def f():\n    f()\ntry:\n    f()\nexcept Exception:\n    return False", (ERROR,)),
    Attempt("a refusal", "try:\n    import os\nexcept:\n    return False"),
    Attempt(
        "a refusal, in a chain", "try:\n    import os\nexcept ValueError:\n    pass\nexcept:\n    return False"
    ),
    Attempt(
        "a missing name", "try:\n    return nltk.x\nexcept Exception:\n    return False", (ERROR,), "NameError"
    ),
    Attempt("finally", "try:\n    import os\nfinally:\n    return False", says="finally"),
    Attempt(
        "finally in a loop", "for i in 'a':\n    try:\n        import os\n    finally:\n        break\nreturn False"
    ),
    Attempt(
        "a generator that is dropped",
        "def g():\n    try:\n        yield 1\n    finally:\n        ' ' * 10 ** 10\n"
        "for x in g():\n    break\nreturn False",
        (ERROR,),
        "nobody",
    ),
    Attempt(
        "another error out of finally",
        "try:\n    try:\n        'a' * 10 ** 11\n    finally:\n        raise ValueError\n"
        "except ValueError:\n    return True",
        (MEMORY,),
    ),
    Attempt(
        "another error, from nothing",
        "try:\n    try:\n        'a' * 10 ** 11\n    finally:\n        raise ValueError from None\n"
        "except ValueError:\n    return True",
        (MEMORY,),
    ),
    Attempt(
        "another error out of a handler's expression",
        "def f():\n    f()\ntry:\n    try:\n        f()\n    except (1 / 0):\n        pass\n"
        "except ZeroDivisionError:\n    return True",
        (ERROR,),
    ),
    Attempt(
        "another error out of a generator's finally",
        "def g():\n    try:\n        yield 'a' * 10 ** 11\n    finally:\n        1 / 0\n"
        "try:\n    return list(g()) == []\nexcept ZeroDivisionError:\n    return True",
        (MEMORY,),
    ),
    Attempt("context manager", "with text:\n    import os\nreturn False", says="With"),
]


def check(attempt: Attempt, seconds: float) -> None:
    result = run_check(attempt.source, "a text", seconds=seconds)
    assert result.met is None
    assert result.failure in attempt.ends, result
    assert attempt.says in result.message, result


@pytest.mark.parametrize("attempt", ESCAPES, ids=lambda attempt: attempt.name)
def test_a_way_out_is_closed(attempt: Attempt) -> None:
    check(attempt, 30.0)


@pytest.mark.parametrize("attempt", EXHAUSTION, ids=lambda attempt: attempt.name)
def test_exhaustion_is_cut(attempt: Attempt) -> None:
    check(attempt, 0.4 if TIMEOUT in attempt.ends else 30.0)


@pytest.mark.parametrize("attempt", SWALLOWING, ids=lambda attempt: attempt.name)
def test_what_is_refused_or_used_up_cannot_be_swallowed(attempt: Attempt) -> None:
    check(attempt, 30.0)


RESULTS = {
    "a number": "return 1",
    "a text": "return 'True'",
    "nothing": "pass",
    "a match": "import re\nreturn re.search('a', text)",
    "a list": "return [True]",
    "a generator": "return (x for x in text)",
}


@pytest.mark.parametrize("body", RESULTS.values(), ids=RESULTS.keys())
def test_only_true_and_false_are_verdicts(body: str) -> None:
    result = run_check(Attempt("", body).source, "a text", seconds=30.0)
    assert (result.met, result.failure) == (None, CheckFailure.BAD_RESULT)
