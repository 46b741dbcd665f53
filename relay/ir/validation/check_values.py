"""The validator of block-free expressions: operand types, and the types of their targets."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never

from relay.errors import RelayError
from relay.ir.derivative import gradient_type
from relay.ir.dims import ANY, DimExpr
from relay.ir.expr import (
    Ascribe,
    Assert,
    Atom,
    Attempt,
    AxisSize,
    BindDim,
    Breakpoint,
    Call,
    CatchesError,
    Constant,
    Construct,
    EndAttempt,
    Expr,
    Extent,
    Function,
    Global,
    Grad,
    If,
    Lambda,
    Loop,
    MakeTuple,
    Match,
    OpCall,
    Print,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Rethrow,
    Shadow,
    StackGet,
    StackLength,
    StackNew,
    StackPrefix,
    StackPush,
    StackSet,
    Static,
    Var,
)
from relay.ir.surface import SurfaceExpr
from relay.ir.traverse import blocks
from relay.ir.types import (
    BOOL,
    INT32,
    INT64,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    scalar,
    show,
)
from relay.ir.validation.check_scopes import INDICES, Scopes

OperatorType: TypeAlias = Callable[[OpCall, Sequence[Type]], Type]


def _no_operators(call: OpCall, types: Sequence[Type]) -> Type:
    raise KeyError(call.operator)


_operator_type: OperatorType = _no_operators


def use_operators(operator_type: OperatorType) -> None:
    """Set how operators are typed: the type of a call for operands of known types, or KeyError if there is no such
    operator, or TypeMismatch. `relay.operator`, which lies above this package, does it when it is imported."""
    global _operator_type
    _operator_type = operator_type


class Values(Scopes, abc.ABC):
    """The types that expressions give."""

    @abc.abstractmethod
    def function(self, function: Function) -> None:
        """Check the function of a lambda."""

    def simple_types(self, expression: Expr) -> tuple[Type, ...]:
        """The types of the targets."""
        match expression:
            case Var() | Constant() | Global() | Static():
                return (self.atom(expression),)
            case OpCall() as call:
                return (self.operator(call),)
            case Call(function, arguments):
                if self.core and not isinstance(function, Global):
                    raise self.fail("a call of a function value in the core")
                callee = self.atom(function, callee=True)
                if not isinstance(callee, FunctionType):
                    raise self.fail(f"a call of {show(callee)}, which is not a function")
                self.check_equal_types(f"the call of {_name(function)}", self.atoms(arguments), callee.parameters)
                return (callee.result,)
            case MakeTuple(items):
                return (TupleType(self.atoms(items)),)
            case Project(value, index):
                whole = self.atom(value)
                if not isinstance(whole, TupleType) or not 0 <= index < len(whole.items):
                    raise self.fail(f"{show(whole)} has no component {index}")
                return (whole.items[index],)
            case Lambda(function):
                if self.core:
                    raise self.fail("a Lambda in the core")
                self.function(function)
                return (function.type,)
            case Grad(function) as grad:
                if self.core:
                    raise self.fail("a Grad in the core")
                differentiated = self.atom(function)
                if not isinstance(differentiated, FunctionType):
                    raise self.fail(f"grad of {show(differentiated)}")
                try:
                    return (gradient_type(differentiated, grad),)
                except RelayError as error:
                    raise self.fail(f"grad of {show(differentiated)}: {error.message}") from error
            case RefNew(value):
                return (RefType(self.atom(value)),)
            case RefRead(reference):
                return (self.content(reference),)
            case RefWrite(reference, value):
                self.check_equal_types("`write`", (self.atom(value),), (self.content(reference),))
                return ()
            case Shadow(reference, sweep, initial):
                self.content(reference)
                self.content(sweep)
                return (RefType(self.atom(initial)),)
            case Assert(condition):
                self.scalar_bool("`assert`", self.atom(condition))
                return ()
            case Print(pieces, values, formats):
                for value in values:
                    if not isinstance(type_ := self.atom(value), TensorType):
                        raise self.fail(f"`print` of {show(type_)}, which is not a tensor")
                if not len(pieces) - 1 == len(values) == len(formats):
                    raise self.fail("a Print whose parts do not match")
                return ()
            case Attempt() | EndAttempt() | CatchesError() | Rethrow() if self.structured:
                raise self.fail(f"a {type(expression).__name__} in the structured form")
            case Attempt():
                return (scalar(BOOL), scalar(INT32), TensorType(INT32, (ANY,)))
            case EndAttempt(failed):
                self.scalar_bool("`unprotect`", self.atom(failed))
                return ()
            case CatchesError(error):
                self.check_equal_types("`catches`", (self.atom(error),), (scalar(INT32),))
                return (scalar(BOOL),)
            case Rethrow(error):
                self.check_equal_types("`rethrow`", (self.atom(error),), (scalar(INT32),))
                return ()
            case Breakpoint():
                if self.core:
                    raise self.fail("a Breakpoint in the core")
                return ()
            case Construct(definition, name, arguments):
                if name not in [c.name for c in definition.constructors]:
                    raise self.fail(f"{definition.name} has no constructor {name}")
                fields = definition.constructors[definition.index(name)].fields
                self.check_equal_types(f"the fields of {name}", self.atoms(arguments), fields)
                return (DataType(definition),)
            case StackNew(element):
                return (StackType(element),)
            case StackPush(stack, value):
                element_type = self.element(stack)
                self.check_equal_types("`push`", (self.atom(value),), (element_type,))
                return (StackType(element_type),)
            case StackSet(stack, position, value):
                element_type = self.element(stack)
                self.index("the index of a set", self.atom(position))
                self.check_equal_types("`set`", (self.atom(value),), (element_type,))
                return (StackType(element_type),)
            case StackPrefix(stack, length):
                self.index("the length of a prefix", self.atom(length))
                return (StackType(self.element(stack)),)
            case StackGet(stack, position):
                self.index("the index of a get", self.atom(position))
                return (self.element(stack),)
            case StackLength(stack):
                self.element(stack)
                return (scalar(INT64),)
            case Extent(dim) as extent:
                self.dim(dim, f"the extent {dim}")
                if dim is ANY or extent.type not in INDICES:
                    raise self.fail(f"the extent {dim} as {extent.base}")
                return (extent.type,)
            case BindDim(dim, size):
                self.check_equal_types("a size", (self.atom(size),), (scalar(INT64),))
                if dim in self._made_here:
                    raise self.fail(f"{dim} is defined twice")
                self._made_here.add(dim)
                return ()
            case AxisSize(value, axis):
                tensor = self.atom(value)
                if not isinstance(tensor, TensorType) or not 0 <= axis < tensor.rank:
                    raise self.fail(f"the size of axis {axis} of {show(tensor)}")
                return (scalar(INT64),)
            case Ascribe():
                raise self.fail("an Ascribe has one target")
            case If() | Match() | Loop():
                raise AssertionError(f"{type(expression).__name__} has {len(tuple(blocks(expression)))} blocks")
            case _:
                if isinstance(expression, SurfaceExpr):
                    raise self.fail(f"{type(expression).__name__} belongs to the surface IR")
                assert_never(expression)

    def operator(self, call: OpCall) -> Type:
        """The type that the operator's relation gives."""
        types = self.atoms(call.arguments)
        for name, value in call.attributes.items():
            for dim in value if isinstance(value, tuple) else (value,):
                if isinstance(dim, TypeId | DimExpr):
                    self.dim(dim, f"{name} of {call.operator}")
        try:
            return _operator_type(call, types)
        except KeyError:
            raise self.fail(f"there is no operator {call.operator!r}") from None
        except Exception as error:  # an operator's rule may raise anything for an attribute that it is not made for
            message = error.message if isinstance(error, RelayError) else "the attributes do not fit"
            given = (
                *map(show, types),
                *(f"{name}={_attribute_text(value)}" for name, value in call.attributes.items()),
            )
            raise self.fail(f"{call.operator}({', '.join(given)}): {message}") from error

    def content(self, reference: Atom) -> Type:
        type_ = self.atom(reference)
        if not isinstance(type_, RefType):
            raise self.fail(f"{show(type_)} is used as a reference")
        return type_.content

    def element(self, stack: Atom) -> Type:
        type_ = self.atom(stack)
        if not isinstance(type_, StackType):
            raise self.fail(f"{show(type_)} is used as a stack")
        return type_.element


def _attribute_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | None) else repr(value)


def _name(atom: Atom) -> str:
    return f"@{atom.name}" if isinstance(atom, Global) else repr(atom)
