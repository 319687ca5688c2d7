"""The second layer: RestrictedPython with its own policy, guards that go by type, and few builtins.

This module runs inside the sandbox's interpreter and imports the standard library and RestrictedPython alone.
What a guard refuses and what exhausts a limit cannot be swallowed: such a check has no verdict.
"""

from __future__ import annotations

import ast
import builtins
import collections
import datetime
import operator
import re
import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, NoReturn

from RestrictedPython.transformer import IOPERATOR_TO_STR, RestrictingNodeTransformer

from rubricate.judges.sandbox.facades import CLOCKS, Facade, facades

__all__ = ["Forbidden", "Guards", "SourceError", "compile_check"]


class Forbidden(BaseException):
    """The check tried what it must not. No Exception, so that `except Exception` does not swallow it."""


class SourceError(Exception):
    """The source is not Python."""


def _sign(operation: ast.operator) -> str:
    return next(sign for kind, sign in IOPERATOR_TO_STR.items() if isinstance(operation, kind))


class _Policy(RestrictingNodeTransformer):
    """RestrictedPython's rules without classes and context managers, with annotations and `a[key] += value`."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Refused: a verdict needs no classes, and most known ways out start with one."""
        self.not_allowed(node)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        """Refused: there is nothing to enter, and a context manager can swallow exceptions."""
        self.not_allowed(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """As an assignment; the annotation is dropped."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Items through a guard; the rest as RestrictedPython has it."""
        target = node.target
        if not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Slice):
            return super().visit_AugAssign(node)
        parts = [ast.Constant(_sign(node.op)), target.value, target.slice, node.value]
        call = ast.Call(ast.Name("_inplaceitem_", ast.Load()), [self.visit(part) for part in parts], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))

    def visit_Try(self, node: ast.Try) -> Any:
        """`finally` must not end what an exception has ended: `return` there would swallow a used-up limit."""
        for statement in node.finalbody:
            if any(isinstance(part, ast.Return | ast.Break | ast.Continue) for part in ast.walk(statement)):
                self.error(statement, "Leaving a finally block is not allowed.")
        return super().visit_Try(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        """Each handler begins by passing on what no check may swallow."""
        guarded = super().visit_ExceptHandler(node)
        call = ast.Expr(ast.Call(ast.Name("_pass_on_", ast.Load()), [], []))
        node.body.insert(0, ast.fix_missing_locations(ast.copy_location(call, node)))
        return guarded


def compile_check(source: str) -> CodeType:
    """The source as code that runs under `Guards`.

    Raises SourceError where it is not Python, and Forbidden, with the lines, where it uses what the policy refuses.
    """
    try:
        tree = ast.parse(source, "<check>")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise SourceError(f"{getattr(error, 'msg', 'it cannot be parsed')}, line {line or 1}") from None
    policy = _Policy()
    tree = policy.visit(tree)
    if policy.errors:
        raise Forbidden("; ".join(policy.errors[:3]))
    return compile(ast.fix_missing_locations(tree), "<check>", "exec", dont_inherit=True)


_BUILTINS = """
    abs all any ascii bin bool bytes callable chr complex dict divmod enumerate filter float frozenset hex int
    isinstance issubclass iter len list map max min next oct ord pow range repr reversed round set slice sorted str
    sum tuple zip
    ArithmeticError AssertionError AttributeError Exception FloatingPointError IndexError KeyError LookupError
    NotImplementedError OverflowError RuntimeError StopIteration TypeError UnicodeDecodeError UnicodeEncodeError
    UnicodeError ValueError ZeroDivisionError
""".split()

_PASSED_ON = (MemoryError, NameError, RecursionError, Forbidden)

_WRITABLE: frozenset[object] = frozenset(
    {
        list,
        dict,
        set,
        collections.Counter,
        collections.OrderedDict,
        collections.defaultdict,
        collections.deque,
    }
)
_EMPTY: dict[str, str] = {}
_INSTANCES: frozenset[object] = _WRITABLE | {
    bool,
    bytes,
    complex,
    float,
    frozenset,
    int,
    range,
    str,
    tuple,
    re.Match,
    re.Pattern,
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    type(_EMPTY.keys()),
    type(_EMPTY.values()),
    type(_EMPTY.items()),
}
_DATES = (datetime.date, datetime.datetime)
# Classes whose constructors a check may need; attributes of other classes lead to their methods and bases.
_CLASSES: frozenset[object] = frozenset(
    {bytes, dict, float, int, str, collections.Counter, *_DATES, datetime.time, datetime.timezone}
)

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    sign: getattr(operator, name)
    for sign, name in {
        "+=": "iadd",
        "-=": "isub",
        "*=": "imul",
        "/=": "itruediv",
        "%=": "imod",
        "**=": "ipow",
        "<<=": "ilshift",
        ">>=": "irshift",
        "|=": "ior",
        "^=": "ixor",
        "&=": "iand",
        "//=": "ifloordiv",
        "@=": "imatmul",
    }.items()
}


class _Silence:
    """Takes what a check prints to nowhere."""

    __slots__ = ()

    def __init__(self, _getattr_: object = None) -> None:
        return None

    def _call_print(self, *objects: object, **options: object) -> None:
        return None


class Guards:
    """What stands between one run of a check and the interpreter. `refused` keeps the first refusal."""

    def __init__(self) -> None:
        self.refused = ""
        self._modules: Mapping[str, Facade] = facades()

    def namespace(self) -> dict[str, object]:
        """Globals for one run."""
        known: dict[str, object] = {name: getattr(builtins, name) for name in _BUILTINS}
        known["__import__"] = self.import_module
        return {
            "__builtins__": known,
            "__name__": "check",
            "_apply_": _apply,
            "_getattr_": self.attribute,
            "_getitem_": operator.getitem,
            "_getiter_": _same,
            "_inplaceitem_": self.change_item,
            "_inplacevar_": _change,
            "_iter_unpack_sequence_": _same,
            "_pass_on_": _pass_on,
            "_print_": _Silence,
            "_unpack_sequence_": _same,
            "_write_": self.writable,
        }

    def refuse(self, what: str) -> NoReturn:
        """Remember and raise a refusal."""
        self.refused = self.refused or what
        raise Forbidden(what)

    def import_module(
        self,
        name: str,
        globals: object = None,
        locals: object = None,
        fromlist: tuple[str, ...] | list[str] | None = (),
        level: int = 0,
    ) -> Facade:
        """The façade of a module."""
        if type(fromlist) is list and name in sys.modules:
            # Only the library's C code passes a list. It takes the module from `sys.modules`, not what is returned.
            return Facade()
        found = self._modules.get(name) if type(name) is str and level == 0 else None
        if found is None:
            self.refuse(f"import of {name}")
        for member in fromlist or ():
            if member not in vars(type(found)):
                self.refuse(f"import of {name}.{member}")
        return found

    def attribute(self, owner: object, name: str) -> object:
        """An attribute, where the owner is of a type that is known to lead nowhere."""
        kind: object = type(owner)
        if type(name) is not str or name.startswith("_"):
            self.refuse("a private attribute")
        if isinstance(owner, Facade):
            if name not in vars(type(owner)):
                self.refuse(f"{type(owner).__name__}.{name}")
            return getattr(owner, name)
        if kind is type and owner in _CLASSES and not hasattr(type, name):  # `mro` leads to the bases
            kind = owner
        elif kind not in _INSTANCES:
            self.refuse(f"attribute {name} of an object of type {type(owner).__name__}")
        if kind is str and name in {"format", "format_map"}:
            self.refuse(f"str.{name}; use an f-string")
        if kind in _DATES and name in CLOCKS:
            self.refuse(f"the clock, by {name}")
        return getattr(owner, name)

    def writable(self, owner: object) -> object:
        """The owner of an item that is to be set or deleted. No attribute can be set: these types have none."""
        if type(owner) not in _WRITABLE:
            self.refuse(f"a change of an object of type {type(owner).__name__}")
        return owner

    def change_item(self, sign: str, owner: Any, key: object, value: object) -> None:
        """`owner[key] += value`, each part evaluated once."""
        self.writable(owner)
        owner[key] = _OPERATORS[sign](owner[key], value)


def _apply(function: Callable[..., object], *args: object, **kwargs: object) -> object:
    return function(*args, **kwargs)


def _same(iterable: object, *rest: object) -> object:
    # Iteration and unpacking need no guard: nothing that a check can hold yields what it may not have.
    return iterable


def _change(sign: str, value: object, by: object) -> object:
    return _OPERATORS[sign](value, by)


def _pass_on() -> None:
    # An error raised out of `finally`, or of a handler's own expression, has what it took the place of as context.
    error, seen = sys.exc_info()[1], set[int]()
    while error is not None and id(error) not in seen:
        if isinstance(error, _PASSED_ON):
            raise error
        seen.add(id(error))
        error = error.__context__
