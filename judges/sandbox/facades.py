"""The modules that untrusted checks may import: façades with chosen functions, never the modules themselves.

This module runs inside the sandbox's interpreter and imports the standard library alone. A real module leads to
others (`re.sys` once did), so that a check sees only objects without any attribute that is not listed here.
"""

from __future__ import annotations

import codecs
import collections
import datetime
import functools
import itertools
import json
import math
import re
import string
import textwrap
import unicodedata
from collections.abc import Mapping

__all__ = ["CLOCKS", "Facade", "facades", "preload"]


class Facade:
    """What a check gets for a module: read-only, with the listed names as its only public attributes."""

    __slots__ = ()


class _Hint:
    """Stands for the names of `typing`, which a check needs for nothing but its annotations."""

    __slots__ = ()

    def __getitem__(self, item: object) -> _Hint:
        return self


_RE = """
    A ASCII I IGNORECASE M MULTILINE S DOTALL U UNICODE X VERBOSE NOFLAG Pattern Match error
    compile escape findall finditer fullmatch match search split sub subn
"""
_STRING = """
    ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable punctuation
    whitespace
"""
_COLLECTIONS = "Counter OrderedDict defaultdict deque"
_DATETIME = "MAXYEAR MINYEAR UTC date datetime time timedelta timezone"
_UNICODEDATA = """
    bidirectional category combining decimal decomposition digit east_asian_width is_normalized lookup mirrored
    name normalize numeric unidata_version
"""
_ITERTOOLS = """
    accumulate chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse groupby
    islice pairwise permutations product repeat starmap takewhile tee zip_longest
"""
_TEXTWRAP = "dedent fill indent shorten wrap"
_TYPING = """
    Any Callable Dict Iterable Iterator List Mapping Match Optional Pattern Sequence Set Tuple Union
"""

CLOCKS = frozenset({"now", "today", "utcnow"})
"""Methods of dates that read the clock. A check that uses them would not say the same tomorrow."""

_CODECS = (
    "ascii cp1252 iso8859_1 iso8859_15 utf_16 utf_16_be utf_16_le utf_32 utf_8 utf_8_sig unicode_escape".split()
)


def preload() -> None:
    """Load what the standard library would load at a later first use."""
    for name in _CODECS:
        codecs.lookup(name)
    datetime.datetime.strptime("2001", "%Y")
    collections.Counter("a").most_common(1)


def facades() -> dict[str, Facade]:
    """New façades by module name, so that nothing that one check may do to them reaches the next."""
    return {
        "collections": _facade("collections", _chosen(collections, _COLLECTIONS)),
        "datetime": _facade("datetime", _chosen(datetime, _DATETIME)),
        "functools": _facade("functools", {"reduce": functools.reduce}),
        "itertools": _facade("itertools", _chosen(itertools, _ITERTOOLS)),
        "json": _facade(
            "json", {"JSONDecodeError": json.JSONDecodeError, "dumps": json.dumps, "loads": json.loads}
        ),
        "math": _facade("math", {name: getattr(math, name) for name in dir(math) if name[0] != "_"}),
        "re": _facade("re", _chosen(re, _RE)),
        "string": _facade("string", _chosen(string, _STRING)),
        "textwrap": _facade("textwrap", _chosen(textwrap, _TEXTWRAP)),
        "typing": _facade("typing", dict.fromkeys(_TYPING.split(), _Hint())),
        "unicodedata": _facade("unicodedata", _chosen(unicodedata, _UNICODEDATA)),
    }


def _chosen(module: object, names: str) -> dict[str, object]:
    return {name: getattr(module, name) for name in names.split()}


def _facade(name: str, members: Mapping[str, object]) -> Facade:
    # Functions written in Python would bind to the façade as methods do.
    wrapped = {key: staticmethod(value) if callable(value) else value for key, value in members.items()}
    made: type[Facade] = type(name, (Facade,), {"__slots__": (), **wrapped})
    return made()
