"""Closures that programs return to Python.

Such a function is its code, which the checker knows, and the values that it has captured, which the program has
computed (`typecheck/elaboration/closures/returned_functions.py`). It is elaborated at the types of each call, like any
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
from relay.support import python_mode
from relay.typecheck.elaboration.abstract_values import GlobalFunction, PythonObject
from relay.typecheck.elaboration.closures.returned_closures import ClosureClass, calling_code, unwrap_closure
from relay.typecheck.elaboration.closures.returned_functions import (
    ChosenFunctionNode,
    ClosureNode,
    DeclaredFunctionNode,
    GradientNode,
    LinkedScope,
    Node,
    PartNode,
    RecursiveClosureNode,
    StaticNode,
    StructureNode,
    ValueNode,
)
from relay.typecheck.elaboration.derivatives.template_scopes import TemplateScope
from relay.typecheck.elaboration.values.labels import is_label
from relay.typecheck.elaboration.values.objects import position_of


class ClosureOwner(Protocol):
    """The owner of a returned function, which knows how to call it."""

    __name__: str

    def make_once(self, key: object, make: Callable[[], Definition]) -> Any:
        """A decorated function that is made of this one; the same one each time."""
        ...


_NOTHING: Mapping[str, object] = MappingProxyType({})


@attrs.frozen(eq=False, repr=False)
class ReturnedFunction:
    """A function that a program has returned. It may be called, differentiated, and passed to decorated functions."""

    maker: ClosureOwner
    node: Node
    values: tuple[Any, ...]  # what it has captured, as Python has it
    types: tuple[Type, ...]
    interpreted: bool = False
    _calls: dict[tuple[object, ...], Any] = attrs.field(factory=dict)  # shared by all that are alike but for the values

    __relay_returned__ = True

    @property
    def __relay_closure__(self) -> Any:
        """The value that it is in programs, if it was selected at run time; None for others."""
        return self.values[0] if isinstance(self.node, ChosenFunctionNode) else None

    @property
    def __name__(self) -> str:
        return _name(self.node) or self.maker.__name__

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it: compiled, or on the interpreter if that has returned it.

        Raises TypeCheckError for arguments that it cannot take, ExecutionError for what can be found only at run time.
        """
        __tracebackhide__ = True
        call = self._calls.get((len(arguments), *keywords))
        if call is None:
            call = self._calls[len(arguments), *keywords] = self._calling_function(len(arguments), tuple(keywords))
        return (call.interpret if self.interpreted and python_mode.active.get() is None else call)(
            self, *arguments, **keywords
        )

    def interpret(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it on the reference interpreter."""
        __tracebackhide__ = True
        return self._calling_function(len(arguments), tuple(keywords)).interpret(self, *arguments, **keywords)

    def with_node(self, node: Node) -> ReturnedFunction:
        """Another function of the same captured values."""
        return attrs.evolve(self, node=node, calls={})

    def _calling_function(self, count: int, keywords: tuple[str, ...]) -> Any:
        code = _code(self.node)
        names = [p.name for p in code.function.parameters] if code is not None else []
        parameters = tuple(names[i] if i < len(names) else f"x{i}" for i in range(count))
        if {*parameters} & {*keywords} or not all(n.isidentifier() for n in parameters):
            parameters = tuple(f"x{i}__" for i in range(count))
        listed = [*parameters, *(["*", *keywords] if keywords else [])]
        given = [*parameters, *(f"{k}={k}" for k in keywords)]
        return self.wrapper_function(self.__name__, listed, "{}" + f"({', '.join(given)})")

    def wrapper_function(
        self, name: str, parameters: Sequence[str], expression: str, scope: Mapping[str, object] = _NOTHING
    ) -> Any:
        """The decorated function (f, *parameters) that returns an expression, in which {} is f."""
        own = identifier(name)
        own = f"{own}__" if own in parameters or own in scope else own
        body = f"    return {expression.format(own)}\n"
        return self.maker.make_once(
            ("about", name, *parameters, body),
            lambda: text_definition(identifier(name), ", ".join([own, *parameters]), body, scope),
        )

    def positions(self, wrt: Sequence[int | str]) -> tuple[int, ...]:
        """The positions of parameters that are given by positions or names. Raises FrontendError."""
        code = _code(self.node)
        if code is None:
            return tuple(position_of(PythonObject(None), w, None) for w in wrt)
        return tuple(position_of(GlobalFunction(Definition(code.function, TemplateScope({}))), w, None) for w in wrt)

    def __repr__(self) -> str:
        return f"<relay function {self.__name__}, returned by {self.maker.__name__}>"


def text_definition(name: str, parameters: str, body: str, scope: Mapping[str, object]) -> Definition:
    """A function of the language of this text."""
    text = f"def {name}({parameters}):\n{body}"
    code = next(iter(lower_text(text, f"<relay.{name}>", {}).values())).function
    return Definition(code, TemplateScope(scope))


def identifier(name: str) -> str:
    """A name that Python takes."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else "function"


def _code(node: Node) -> ClosureNode | None:
    while isinstance(node, DeclaredFunctionNode | GradientNode):
        node = node.function if isinstance(node, DeclaredFunctionNode) else node.of
    return node if isinstance(node, ClosureNode) else None


def _name(node: Node) -> str | None:
    code = _code(node)
    return code.name if code is not None and code.name.isidentifier() else None


# ---- functions that are selected at run time


def closure_class(
    definition: DataDefinition, program: Module, applied: str | None, effects: frozenset[str], maker: ClosureOwner
) -> ClosureClass:
    """The classes of the values of a data type that stands for functions: an object holds the captured variables of
    one of them, and is called through a `ReturnedFunction`."""
    definition.constructors = tuple(
        attrs.evolve(c, names=tuple(f"captured{i}" for i in range(len(c.fields)))) for c in definition.constructors
    )
    names = {c.name: c.names for c in definition.constructors}
    made = {name: type(name, (), {"__relay_constructor__": name}) for name in names}
    calls: dict[tuple[object, ...], Any] = {}
    types: tuple[Type, ...] = (DataType(definition),)

    def function(captured: Any, interpreted: bool) -> ReturnedFunction:
        return ReturnedFunction(maker, ChosenFunctionNode(0), (captured,), types, interpreted, calls)

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
    """The construction of a program's result from the values that it returns."""

    make: Callable[[tuple[Any, ...], ClosureOwner, bool], Any]

    def __call__(self, values: Any, maker: ClosureOwner, interpreted: bool = False) -> Any:
        """The functions, and what else the result holds. `values`: a tuple, or None if there are none."""
        return self.make(values or (), maker, interpreted)


def result_of(node: Node, type_: Type) -> Result:
    """The result that is known as `node`, of a program that returns values of the types of a tuple."""
    assert isinstance(type_, TupleType)
    closures: dict[int, ClosureNode] = {}
    _collect(node, closures)
    return Result(_maker(node, closures, type_.items))


def _maker(
    node: Node, closures: dict[int, ClosureNode], types: Sequence[Type]
) -> Callable[[tuple[Any, ...], ClosureOwner, bool], Any]:
    if isinstance(node, ValueNode):
        position = node.position
        return lambda values, maker, interpreted: values[position]
    if isinstance(node, StructureNode):
        parts, form = [_maker(item, closures, types) for item in node.items], node.form

        def structure(values: tuple[Any, ...], maker: ClosureOwner, interpreted: bool) -> Any:
            items = tuple(part(values, maker, interpreted) for part in parts)
            return build(form, items)

        return structure
    if isinstance(node, StaticNode) and isinstance(node.entity, PythonObject) and is_label(node.entity.value):
        label = node.entity.value
        return lambda values, maker, interpreted: label
    positions: dict[int, int] = {}
    own = _detach_node(node, closures, frozenset(), positions)
    chosen, captured = tuple(positions), tuple(types[p] for p in positions)
    calls: dict[tuple[object, ...], Any] = {}
    return lambda values, maker, interpreted: ReturnedFunction(
        maker, own, tuple(unwrap_closure(values[p]) for p in chosen), captured, interpreted, calls
    )


def _collect(node: Node, closures: dict[int, ClosureNode]) -> None:
    if isinstance(node, ClosureNode):
        closures[node.number] = node
    for part in _parts(node):
        _collect(part, closures)


def _parts(node: Node) -> Sequence[Node]:
    match node:
        case StructureNode(items):
            return items
        case ClosureNode(captured=captured, scope=scope):
            named = scope.found if isinstance(scope, LinkedScope) else ()
            return [*(inside for _, inside in captured), *(inside for _, inside in named)]
        case GradientNode(of):
            return (of,)
        case DeclaredFunctionNode(function):
            return (function,)
        case PartNode(_, parts):
            return parts
        case ValueNode() | ChosenFunctionNode() | StaticNode() | RecursiveClosureNode():
            return ()
    raise InternalError(f"{node!r} is not a part of a result")


def _detach_node(
    node: Node, closures: dict[int, ClosureNode], inside: frozenset[int], positions: dict[int, int]
) -> Node:
    """A part by itself: with only the values that it needs, and the functions that it calls elsewhere in the result."""

    def detach(part: Node) -> Node:
        return _detach_node(part, closures, inside, positions)

    match node:
        case ValueNode(position):
            return ValueNode(positions.setdefault(position, len(positions)))
        case ChosenFunctionNode(position):
            return ChosenFunctionNode(positions.setdefault(position, len(positions)))
        case RecursiveClosureNode(number) if number not in inside:
            return detach(closures[number])
        case StaticNode() | RecursiveClosureNode():
            return node
        case StructureNode(items, form):
            return StructureNode(tuple(map(detach, items)), form)
        case GradientNode(of):
            return attrs.evolve(node, of=detach(of))
        case DeclaredFunctionNode(function):
            return attrs.evolve(node, function=detach(function))
        case PartNode(_, parts):
            return attrs.evolve(node, parts=tuple(map(detach, parts)))
        case ClosureNode(number=number, captured=captured, scope=scope):
            inside = inside | {number}
            if isinstance(scope, LinkedScope):
                scope = LinkedScope(tuple((n, detach(o)) for n, o in scope.found), scope.others)
            return attrs.evolve(node, captured=tuple((v, detach(o)) for v, o in captured), scope=scope)
    raise InternalError(f"{node!r} is not a part of a result")
