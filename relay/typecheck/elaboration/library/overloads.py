"""Overloads: the meaning of Python's callables in programs, in one table from a callable, and kinds of values, to an
implementation.

    len, np.hstack, math.gcd, Particle.energy          ->   overloads, those of users first
    np.ndarray.shape, list.__getitem__, Grid.total     ->   of attributes, subscripts and properties, too

An implementation is a function written in the language (`relay/library`, and what `relay.overload` decorates), which is
elaborated, differentiated and compiled as any other, or a rule on abstract values, for what must be decided at compile
time. This file has only the table and does not depend on the checker: files beside it fill it, `overload_calls.py` uses
it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from relay.errors import Span
from relay.ir.annotations.annotation import Ref
from relay.ir.definition import Definition
from relay.ir.intrinsic import Intrinsic
from relay.operator import Operator
from relay.support.locks import Lock
from relay.typecheck.elaboration.abstract_values import AbstractValue, Context, TypedBlockBuilder

if TYPE_CHECKING:
    from relay.typecheck.elaboration.checker import Checker

PythonFunction = Callable[..., object]
Keywords = Sequence[tuple[str, AbstractValue]]


@attrs.frozen(eq=False)
class Call:
    """A call for a rule: its place, arguments and result."""

    checker: Checker
    context: Context
    out: TypedBlockBuilder
    function: object
    arguments: Sequence[AbstractValue]
    keywords: Keywords
    span: Span | None
    described: Sequence[str] = ()
    bound: int = 0  # arguments that are not written in the call, as the value of a method

    @property
    def site(self) -> tuple[Checker, TypedBlockBuilder, Span | None]:
        """The place of the call."""
        return self.checker, self.out, self.span

    def apply(self, operator: str, *operands: AbstractValue) -> AbstractValue:
        """An operator of Python's syntax."""
        engine = self.checker.engine
        return engine.apply_operator(self.checker, self.out, operator, list(operands), {}, self.span, [])


Rule = Callable[..., AbstractValue]
"""A rule takes the call and its arguments, as its own signature has them: (call, iterable, start=None)."""


@functools.cache
def positional_counts(rule: Rule) -> tuple[int, float]:
    """The numbers of positional arguments that a rule needs, and takes at most."""
    parameters = parameters_of(rule)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return sum(p.default is p.empty for p in positional), math.inf if is_open else len(positional)


@functools.cache
def parameters_of(rule: Rule) -> tuple[inspect.Parameter, ...]:
    """The parameters of a rule after the call."""
    return tuple(inspect.signature(rule).parameters.values())[1:]


@attrs.frozen
class Member:
    """An attribute or method of a class that Python's own class does not have, as `x.at` of JAX's arrays."""

    owner: type
    name: str
    is_called: bool = attrs.field(default=False, eq=False)


def is_attribute(function: object) -> bool:
    """True if the table's entry is read as `value.name`, and not called: a property, or a field of a C class."""
    if isinstance(function, Member):
        return not function.is_called
    return inspect.isdatadescriptor(function)


@attrs.define(eq=False)
class LibraryFunction:
    """A function of Relay's own that is written in the language. It is translated when it is first called."""

    python: PythonFunction
    _definition: Definition | None = None

    @property
    def __relay__(self) -> Definition:
        """Its surface IR."""
        if self._definition is None:
            self._definition = _translate(self.python)
        return self._definition


class DecoratedFunction(Protocol):
    """A function of the language, as users decorate it. Its meaning can change until it is first called."""

    __relay__: Any


@attrs.frozen(eq=False)
class Overload:
    """One meaning of a callable. The implementation is a rule, or has a definition in the language, `__relay__`.
    `owner`: the module and name of the user's function; None for Relay's own."""

    function: object
    name: str  # as programs write it
    implementation: Rule | LibraryFunction | DecoratedFunction
    owner: tuple[str, str] | None = None
    arity: int | None = None  # of a rule that can be passed on as a function: how many arguments it is called with

    @property
    def is_written(self) -> bool:
        """True if it is written in the language."""
        return not isinstance(self.implementation, FunctionType)

    @property
    def definition(self) -> Definition | None:
        """The function in the language, if it is one."""
        found = getattr(self.implementation, "__relay__", None)
        return found if isinstance(found, Definition) else None

    @property
    def place(self) -> str:
        """The place of the implementation: `module.function`."""
        if self.owner is not None:
            return ".".join(self.owner)
        found = self.implementation.python if isinstance(self.implementation, LibraryFunction) else self.implementation
        return f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"


Table = dict[object, tuple[Overload, ...]]
_table: Table = {}
_scoped: ContextVar[Table | None] = ContextVar("overloads of files that are read", default=None)
_lock = Lock()
_translate: Callable[[PythonFunction], Definition]


def use_translation(translate: Callable[[PythonFunction], Definition]) -> None:
    """Say how functions that are written in the language are translated."""
    global _translate
    _translate = translate


@contextlib.contextmanager
def scope(table: Table) -> Iterator[None]:
    """While files are read together: users' overloads go to this table, where those count that are in it."""
    token = _scoped.set(table)
    try:
        yield
    finally:
        _scoped.reset(token)


def _entries_of(key: object) -> tuple[Overload, ...] | None:
    """The tables' entries for a key. Raises TypeError for one without a hash."""
    scoped = _scoped.get()
    found = None if not scoped else scoped.get(key)
    return _table.get(key) if found is None else found


def find(function: object) -> tuple[Overload, ...]:
    """The overloads of a callable, in the order in which they are tried; none for all others."""
    try:
        found = _entries_of(function)
    except TypeError:  # it has no hash
        found = _entries_of(_key(function))
    if found is not None:
        return found
    name = getattr(function, "__relay_builtin__", None)
    return () if name is None else _entries_of(Intrinsic(name)) or ()


def _key(function: object) -> object:
    """The key of a callable: itself, or, as a function of a C library has no hash, its identity."""
    try:
        hash(function)
    except TypeError:
        return "identity", id(function)
    return function


def add(overload: Overload, *, of_user: bool = False) -> None:
    """Enter an overload: a user's one comes before Relay's, and replaces that of the same name in the same module, as
    when a cell of a notebook is run again."""
    scoped = _scoped.get()
    with _lock:
        known = [o for o in find(overload.function) if o.owner is None or o.owner != overload.owner]
        position = sum(o.owner is not None for o in known) if overload.owner is not None else len(known)
        known.insert(position, overload)
        table = scoped if of_user and scoped is not None else _table
        table[_key(overload.function)] = tuple(known)


def implements(*functions: object, name: str | None = None, arity: int | None = None) -> Callable[[Rule], Rule]:
    """Decorator: the rule for calls of these callables. With an arity it is a function of that many arguments, which
    programs can pass on."""

    def decorate(rule: Rule) -> Rule:
        for function in functions:
            add(Overload(function, name or callable_name(function), rule, None, arity))
        return rule

    return decorate


def library_function(*functions: object) -> Callable[[PythonFunction], LibraryFunction]:
    """Decorator: what these callables mean, in the language; without any, a function that others call. A callable that
    this version of a library does not have is None."""

    def decorate(python: PythonFunction) -> LibraryFunction:
        implementation = LibraryFunction(python)
        for function in functions:
            if function is not None:
                add(Overload(function, callable_name(function), implementation))
        return implementation

    return decorate


_SHORT_NAMES = {"builtins": "", "numpy": "np", "numpy.linalg": "np.linalg", "__main__": "", Ref.__module__: "relay"}


def callable_name(function: object) -> str:
    """The name of a callable in programs: `len`, `math.gcd`, `np.linalg.solve`, `Particle.energy`."""
    if isinstance(function, property):
        function = function.fget
    if isinstance(function, Member):
        return f"{callable_name(function.owner)}.{function.name}"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if not isinstance(name, str):
        return repr(function)
    owner = getattr(function, "__objclass__", None)
    module = getattr(function if owner is None else owner, "__module__", None) or ""
    if type(function).__name__ == "ufunc":
        module = "numpy"
    short = _SHORT_NAMES.get(module, module)
    return f"{short}.{name}" if (short and inspect.isroutine(function)) or short.startswith(("np", "relay")) else name


def arity(value: object) -> int | None:
    """The number of arguments of a callable as a function that is passed on; None if it cannot be."""
    if isinstance(value, Operator):
        return len(value.operands)
    return next((o.arity for o in find(value) if o.arity is not None), None)


def is_function(value: object) -> bool:
    """True if a Python object is an operator, or a function of a library, that programs can pass on."""
    return isinstance(value, Operator) or arity(value) is not None


def method(cls: type, name: str) -> tuple[Overload, ...]:
    """The overloads of a method or attribute of a Python class."""
    member = getattr(cls, name, None)
    try:
        return _entries_of(Member(cls, name) if member is None else member) or ()
    except TypeError:  # the default of a field, which has no hash
        return ()


def members(cls: type) -> list[str]:
    """The names of attributes and methods of a Python class that have overloads, attributes first."""
    extra = [key.name for key in _table if isinstance(key, Member) and key.owner is cls]
    found = {name: method(cls, name) for name in (*dir(cls), *extra)}
    return sorted((n for n, known in found.items() if known), key=lambda n: not is_attribute(found[n][0].function))


def entries() -> list[Overload]:
    """All overloads, in the order of their names."""
    return sorted((o for known in list(_table.values()) for o in known), key=lambda o: o.name)
