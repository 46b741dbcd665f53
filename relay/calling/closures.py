"""Functions that programs have returned to Python.

Such a function is its code, which the checker knows, and the values that it has captured, which the run has computed
(`typecheck/elaboration/closures/returned_functions.py`). It is elaborated at the types of each call, like any
other; where it is an argument of a program, the captured values are.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import attrs

from relay.errors import InternalError
from relay.frontend.lower import lower_text
from relay.ir.definition import Definition
from relay.ir.expr import Module
from relay.ir.structure import build
from relay.ir.types import DataDefinition, DataType, TupleType, Type
from relay.typecheck.elaboration.abstract_values import GlobalFunction, Object
from relay.typecheck.elaboration.closures.returned_closures import ClosureClass, calling_code, plain
from relay.typecheck.elaboration.closures.returned_functions import (
    Again,
    Applied,
    Closure,
    Declared,
    Gradient,
    Known,
    Names,
    Node,
    Part,
    Structure,
    Value,
)
from relay.typecheck.elaboration.derivatives.templates import Bound
from relay.typecheck.elaboration.values.objects import position_of


class Maker(Protocol):
    """What has returned a function, and knows how to call it."""

    __name__: str

    def make_once(self, key: object, make: Callable[[], Definition]) -> Any:
        """A decorated function that is made of this one; the same one each time."""
        ...


_NOTHING: Mapping[str, object] = MappingProxyType({})


@attrs.frozen(eq=False, repr=False)
class ReturnedFunction:
    """A function that a program has returned. It may be called, differentiated, and passed to decorated functions."""

    maker: Maker
    node: Node
    values: tuple[Any, ...]  # what it has captured, as Python has it
    types: tuple[Type, ...]
    interpreted: bool = False
    _calls: dict[tuple[object, ...], Any] = attrs.field(factory=dict)  # shared by all that are alike but for the values

    __relay_returned__ = True

    @property
    def __relay_closure__(self) -> Any:
        """The value that it is in programs, if only a run has chosen it; None for others."""
        return self.values[0] if isinstance(self.node, Applied) else None

    @property
    def __name__(self) -> str:
        return _name(self.node) or self.maker.__name__

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it: compiled, or on the interpreter if that has returned it.

        Raises TypeCheckError for arguments that it cannot take, ExecutionError for what only the run can find.
        """
        __tracebackhide__ = True
        call = self._calls.get((len(arguments), *keywords))
        if call is None:
            call = self._calls[len(arguments), *keywords] = self._applied(len(arguments), tuple(keywords))
        return (call.interpret if self.interpreted else call)(self, *arguments, **keywords)

    def interpret(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it on the reference interpreter."""
        __tracebackhide__ = True
        return self._applied(len(arguments), tuple(keywords)).interpret(self, *arguments, **keywords)

    def with_node(self, node: Node) -> ReturnedFunction:
        """Another function of the same captured values."""
        return attrs.evolve(self, node=node, calls={})

    def _applied(self, count: int, keywords: tuple[str, ...]) -> Any:
        code = _code(self.node)
        names = [p.name for p in code.function.parameters] if code is not None else []
        parameters = tuple(names[i] if i < len(names) else f"x{i}" for i in range(count))
        if {*parameters} & {*keywords} or not all(n.isidentifier() for n in parameters):
            parameters = tuple(f"x{i}__" for i in range(count))
        listed = [*parameters, *(["*", *keywords] if keywords else [])]
        given = [*parameters, *(f"{k}={k}" for k in keywords)]
        return self.about(self.__name__, listed, "{}" + f"({', '.join(given)})")

    def about(
        self, name: str, parameters: Sequence[str], expression: str, scope: Mapping[str, object] = _NOTHING
    ) -> Any:
        """The decorated function (f, *parameters) that returns an expression, in which {} is f."""
        own = identifier(name)
        own = f"{own}__" if own in parameters or own in scope else own
        body = f"    return {expression.format(own)}\n"
        return self.maker.make_once(
            ("about", name, *parameters, body),
            lambda: written(identifier(name), ", ".join([own, *parameters]), body, scope),
        )

    def positions(self, wrt: Sequence[int | str]) -> tuple[int, ...]:
        """The positions of parameters that are given by positions or names. Raises FrontendError."""
        code = _code(self.node)
        if code is None:
            return tuple(position_of(Object(None), w, None) for w in wrt)
        return tuple(position_of(GlobalFunction(Definition(code.function, Bound({}))), w, None) for w in wrt)

    def __repr__(self) -> str:
        return f"<relay function {self.__name__}, returned by {self.maker.__name__}>"


def written(name: str, parameters: str, body: str, scope: Mapping[str, object]) -> Definition:
    """A function of the language of this text."""
    text = f"def {name}({parameters}):\n{body}"
    code = next(iter(lower_text(text, f"<relay.{name}>", {}).values())).function
    return Definition(code, Bound(scope))


def identifier(name: str) -> str:
    """A name that Python takes."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else "function"


def _code(node: Node) -> Closure | None:
    while isinstance(node, Declared | Gradient):
        node = node.function if isinstance(node, Declared) else node.of
    return node if isinstance(node, Closure) else None


def _name(node: Node) -> str | None:
    code = _code(node)
    return code.name if code is not None and code.name.isidentifier() else None


# ---- functions that a run has chosen


def closure_class(
    definition: DataDefinition, program: Module, applied: str | None, effects: frozenset[str], maker: Maker
) -> ClosureClass:
    """The classes of the values of a data type that stands for functions: an object holds what one of them has
    captured, and is called through a `ReturnedFunction`."""
    definition.constructors = tuple(
        attrs.evolve(c, names=tuple(f"captured{i}" for i in range(len(c.fields)))) for c in definition.constructors
    )
    names = {c.name: c.names for c in definition.constructors}
    made = {name: type(name, (), {"__relay_constructor__": name}) for name in names}
    calls: dict[tuple[object, ...], Any] = {}
    types: tuple[Type, ...] = (DataType(definition),)

    def function(captured: Any, interpreted: bool) -> ReturnedFunction:
        return ReturnedFunction(maker, Applied(0), (captured,), types, interpreted, calls)

    owner = ClosureClass(
        definition,
        object,
        made,
        names,
        dict.fromkeys(names, MappingProxyType({})),
        {},
        lambda: None,
        program=program,
        applied=applied,
        code=None if applied is None else calling_code(program, applied),
        effects=effects,
        function=function,
    )
    for cls in made.values():
        cls.__relay_data__ = owner  # type: ignore[attr-defined]
    return owner


# ---- how results are made


@attrs.frozen(eq=False)
class Result:
    """How the result of a program is made of the values that it returns."""

    make: Callable[[tuple[Any, ...], Maker, bool], Any]

    def __call__(self, values: Any, maker: Maker, interpreted: bool = False) -> Any:
        """The functions, and what else the result holds. `values`: a tuple, or None if there are none."""
        return self.make(values or (), maker, interpreted)


def result_of(node: Node, type_: Type) -> Result:
    """The result that is known as `node`, of a program that returns values of the types of a tuple."""
    assert isinstance(type_, TupleType)
    closures: dict[int, Closure] = {}
    _collect(node, closures)
    return Result(_maker(node, closures, type_.items))


def _maker(
    node: Node, closures: dict[int, Closure], types: Sequence[Type]
) -> Callable[[tuple[Any, ...], Maker, bool], Any]:
    if isinstance(node, Value):
        position = node.position
        return lambda values, maker, interpreted: values[position]
    if isinstance(node, Structure):
        parts, form = [_maker(item, closures, types) for item in node.items], node.form

        def structure(values: tuple[Any, ...], maker: Maker, interpreted: bool) -> Any:
            items = tuple(part(values, maker, interpreted) for part in parts)
            return items if form is None else build(form, items)

        return structure
    positions: dict[int, int] = {}
    own = _alone(node, closures, frozenset(), positions)
    chosen, captured = tuple(positions), tuple(types[p] for p in positions)
    calls: dict[tuple[object, ...], Any] = {}
    return lambda values, maker, interpreted: ReturnedFunction(
        maker, own, tuple(plain(values[p]) for p in chosen), captured, interpreted, calls
    )


def _collect(node: Node, closures: dict[int, Closure]) -> None:
    if isinstance(node, Closure):
        closures[node.number] = node
    for part in _parts(node):
        _collect(part, closures)


def _parts(node: Node) -> Sequence[Node]:
    match node:
        case Structure(items):
            return items
        case Closure(captured=captured, scope=scope):
            named = scope.found if isinstance(scope, Names) else ()
            return [*(inside for _, inside in captured), *(inside for _, inside in named)]
        case Gradient(of):
            return (of,)
        case Declared(function):
            return (function,)
        case Part(_, parts):
            return parts
        case Value() | Applied() | Known() | Again():
            return ()
    raise InternalError(f"{node!r} is no part of a result")


def _alone(node: Node, closures: dict[int, Closure], inside: frozenset[int], positions: dict[int, int]) -> Node:
    """A part by itself: with the values that it needs only, and what it calls that stands elsewhere in the result."""

    def alone(part: Node) -> Node:
        return _alone(part, closures, inside, positions)

    match node:
        case Value(position):
            return Value(positions.setdefault(position, len(positions)))
        case Applied(position):
            return Applied(positions.setdefault(position, len(positions)))
        case Again(number) if number not in inside:
            return alone(closures[number])
        case Known() | Again():
            return node
        case Structure(items, form):
            return Structure(tuple(map(alone, items)), form)
        case Gradient(of):
            return attrs.evolve(node, of=alone(of))
        case Declared(function):
            return attrs.evolve(node, function=alone(function))
        case Part(_, parts):
            return attrs.evolve(node, parts=tuple(map(alone, parts)))
        case Closure(number=number, captured=captured, scope=scope):
            inside = inside | {number}
            if isinstance(scope, Names):
                scope = Names(tuple((n, alone(o)) for n, o in scope.found), scope.others)
            return attrs.evolve(node, captured=tuple((v, alone(o)) for v, o in captured), scope=scope)
    raise InternalError(f"{node!r} is no part of a result")
