"""Equality of programs up to names, and a hash that respects it.

A program is written as a sequence of bytes in which every bound thing is a number, given where it is first met: the
variables and labels of each function, the type variables, the data types, the functions of the module, beginning with
the entry. Two programs are equal if these sequences are. So the names, the places in the source, and the order of the
functions and data types that the entry reaches do not matter; constructors, operators, attributes, types and the bytes
of constants do. Symbolic dims are numbered in the order of the entry's parameters.

Of an untyped program the names that Python sees count: of global names, attributes and parameters, and the values that
Python knows at compile time. Objects of Python count by their place in a module.

A solver's variables are outside of it, and objects of Python that have no place in a module: InternalError.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, assert_never

import numpy as np

from relay.errors import InternalError
from relay.ir.dims import Dim, substitute, variables
from relay.ir.expr import (
    Atom,
    AttributeValue,
    Block,
    Constant,
    Dead,
    Derivative,
    Exit,
    Expr,
    Function,
    Global,
    Grad,
    Module,
    Next,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.intrinsic import Intrinsic
from relay.ir.node import ByClass, Field, Form, Role, in_field, in_scope_order
from relay.ir.sizes.extents import extents, symbolic_dims
from relay.ir.types import (
    AnyDim,
    BaseType,
    DataDefinition,
    DataType,
    DimExpr,
    FunctionType,
    Kind,
    QuantifiedType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
)

VERSION = b"relay alpha 2\n"
"""Stands before everything that is hashed; a new one for every change of what the hash depends on."""


def alpha_equal(a: Module | Function, b: Module | Function) -> bool:
    """True if two modules, or two functions that mention the same functions, are equal up to names. Linear in their
    size."""
    return type(a) is type(b) and _serialize(a) == _serialize(b)


def alpha_hash(part: Module | Function) -> str:
    """The same for alpha-equal modules (or functions) and, but for chance, for no others: 64 hexadecimal digits.

    It depends on nothing else: not on names, the source, the process or the machine. Linear in the size.
    """
    digest = hashlib.sha256(VERSION)
    for piece in _serialize(part):
        digest.update(piece)
    return digest.hexdigest()


def data_in_order(module: Module) -> list[DataDefinition]:
    """The data types of a module, in an order that is the same for alpha-equal modules."""
    serializer = _Serializer()
    serializer.module(module)
    return serializer.data_types


def _serialize(part: Module | Function) -> list[bytes]:
    serializer = _Serializer()
    if isinstance(part, Module):
        serializer.module(part)
    else:
        for identifier in extents([p.type for p in part.parameters if p.type is not None]):
            serializer.identify(identifier)
        serializer.function(part)
    return serializer.pieces


class _Numbers:
    """Numbers for things by identity (types: by structure), in the order of asking."""

    def __init__(self) -> None:
        self.of: dict[Hashable, int] = {}

    def __getitem__(self, thing: Hashable) -> int:
        return self.of.setdefault(thing, len(self.of))


class _Serializer:
    """Appends pieces. Each says how many parts follow or ends with a mark, so that different programs differ."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._variables, self._labels = _Numbers(), _Numbers()
        self._types, self._data, self._identifiers = _Numbers(), _Numbers(), _Numbers()
        self._functions: dict[str, int] | None = None  # None: a lone function, which mentions others by their names
        self._defined: frozenset[str] = frozenset()
        self._order: list[str] = []
        self._writers: dict[Role, Callable[[Any], object]] = {
            Role.VARIABLE: self.bind,
            Role.BLOCK: self.block,
            Role.PART: self.node,
            Role.TYPE: self.type,
            Role.LABEL: lambda label: self.put(self._labels[label]),
            Role.DIM: lambda dim: self.put(self._dim(dim)),
            Role.NEW_DIM: lambda dim: self.put("wide" if dim.is_wide else "narrow", self.identify(dim)),
            Role.DATA: lambda definition: self.put(self.data(definition)),
        }

    def put(self, *words: str | int) -> None:
        """One line of words."""
        self.pieces.append((" ".join(map(str, words)) + "\n").encode("utf-8", "surrogatepass"))

    @property
    def data_types(self) -> list[DataDefinition]:
        """Those that were met, in their order."""
        return [definition for definition in self._data.of if isinstance(definition, DataDefinition)]

    def identify(self, identifier: TypeId) -> int:
        """The number of a type variable."""
        return self._identifiers[identifier]

    # ---- declarations

    def module(self, module: Module) -> None:
        """The functions in the order in which the entry reaches them, the others, and then the other data types."""
        self._functions, self._defined = {}, frozenset(module.functions)
        entry = module.functions[module.entry]
        if isinstance(entry, Derivative) or not (entry.signature or entry.result is None):  # it is typed
            for identifier in symbolic_dims(module):
                self.identify(identifier)
        done = 0
        for name in (module.entry, *module.functions):
            self._callee(name)
            while done < len(self._order):
                self._definition(module.functions.get(self._order[done]))
                done += 1
        for definition in module.data:
            self.data(definition)
        for text in sorted(f"{self._dim(c.left)} {c.relation} {self._dim(c.right)}" for c in module.where):
            self.put("where", text)

    def _definition(self, function: Function | Derivative | None) -> None:
        match function:
            case None:
                self.put("missing")
            case Derivative(_, of, type_, grad):
                self.type(type_)
                self.put("derivative", self._callee(of), *_options(grad))
            case Function():
                self._variables, self._labels = _Numbers(), _Numbers()
                self.function(function)
                if function.rule is not None:
                    named = [self._callee(n) for n in function.rule_functions]
                    self.put("rule", type(function.rule).__name__, getattr(function.rule, "depth", 0), *named)

    def _callee(self, name: str) -> int | str:
        if self._functions is None or name not in self._defined:
            return json.dumps(name)
        number = self._functions.get(name)
        if number is None:
            number = self._functions[name] = len(self._order)
            self._order.append(name)
        return number

    def function(self, function: Function) -> None:
        """A function or lambda."""
        self.put("function", len(function.parameters), self._labels[function.label])
        if function.result is not None:
            self.type(function.result)
        for parameter in function.parameters:
            self.bind(parameter)
        for parameter, python in zip(function.parameters, function.signature, strict=False):
            self.put("parameter", json.dumps(parameter.name), python.kind, python.static)
            self.atoms(() if python.default is None else (python.default,))
        self.block(function.body)

    def data(self, definition: DataDefinition) -> int:
        """The number of a data type, whose constructors are written where it is first met."""
        if definition in self._data.of:
            return self._data[definition]
        number = self._data[definition]
        self.put("data", number, len(definition.parameters), len(definition.constructors))
        for identifier in definition.parameters:
            self.put(self._identifiers[identifier], identifier.kind.value)
        for constructor in definition.constructors:
            self.put("constructor", len(constructor.fields), json.dumps(constructor.name))
            for field in constructor.fields:
                self.type(field)
        return number

    # ---- types

    def type(self, type_: Type) -> None:
        """A type: its number, after its structure where it is first met."""
        if type_ in self._types.of:
            self.put("type", self._types[type_])
            return
        match type_:
            case TensorType(base, shape):
                self.put("tensor", self._argument(base), *map(self._argument, shape))
            case TupleType(items):
                self.put("tuple", len(items))
                self._each_type(items)
            case FunctionType(parameters, result, where):
                self.put("fn", len(parameters), json.dumps([str(c) for c in where]))
                self._each_type((*parameters, result))
            case QuantifiedType(identifiers, body):
                self.put("forall", *(f"{self._identifiers[i]}:{i.kind.value}" for i in identifiers))
                self.type(body)
            case RefType(content):
                self.put("ref")
                self.type(content)
            case StackType(element):
                self.put("stack")
                self.type(element)
            case DataType(definition, arguments):
                self.put("data type", self.data(definition), len(arguments))
                for argument in arguments:
                    match argument:
                        case tuple():
                            self.put("shape", *map(self._argument, argument))
                        case int() | BaseType() | AnyDim() | DimExpr():
                            self.put("argument", self._argument(argument))
                        case _:
                            self.type(argument)
            case TypeId():
                self.put("variable", self._argument(type_))
            case Unknown():
                raise InternalError(f"the type variable {type_.name} was never solved")
            case _:
                assert_never(type_)
        self._types[type_]

    def _each_type(self, types: Iterable[Type]) -> None:
        for type_ in types:
            self.type(type_)

    def _argument(self, argument: object) -> str:
        """A dim or an element type."""
        match argument:
            case TypeId(_, kind):
                return f"{kind.value}:{self._identifiers[argument]}"
            case Unknown(_, name):
                raise InternalError(f"the type variable {name} was never solved")
            case DimExpr():
                return self._dim(argument)
            case _:
                return str(argument)

    def _dim(self, dim: Dim) -> str:
        """A dim with numbers as the names of its variables."""
        for variable in sorted(variables(dim), key=lambda v: v.name):
            if isinstance(variable, Unknown):
                raise InternalError(f"the type variable {variable.name} was never solved")
            self.identify(variable)
        named = substitute(dim, lambda v: TypeId(f"d{self._identifiers[v]}", Kind.Dim))
        return str(named).replace(" ", "")

    # ---- variables and atoms

    def bind(self, var: Var) -> None:
        """A variable where it is bound."""
        self.put("bind", self._variables[var])
        if var.type is not None:
            self.type(var.type)

    def atoms(self, atoms: Iterable[Atom]) -> None:
        """Operands in order."""
        words: list[str] = []
        for atom in atoms:
            match atom:
                case Var():
                    words.append(f"%{self._variables[atom]}")
                case Global(name):
                    words.append(f"@{self._callee(name)}")
                case Constant(value):
                    words.append(f"#{self._constant(value)}")
                case Static(value):
                    words.append(f"${_static_text(value)}")
                case _:
                    assert_never(atom)
        self.put("atoms", *words)

    def _constant(self, array: np.ndarray) -> str:
        """An array by its bytes, or if these are many their digest. One that is there twice is like two equal ones."""
        data = _little_endian(array)
        content = data.hex() if len(data) <= 32 else hashlib.sha256(data).hexdigest()
        return f"{array.dtype.name}{array.shape}{content}".replace(" ", "")

    # ---- blocks and expressions

    def block(self, block: Block) -> None:
        """Its bindings and its end. A group of lambdas is bound before them, since they see each other."""
        self.put("block", len(block.bindings))
        for binding in block.bindings:
            self.expression(binding.value)
            self.put("targets", len(binding.targets))
            for target in binding.targets:
                self.bind(target)
        self._terminator(block.terminator)

    def _terminator(self, terminator: Terminator) -> None:
        match terminator:
            case Yield(values):
                self.put("yield")
            case Next(label, values):
                self.put("next", self._labels[label])
            case Exit(label, values):
                self.put("exit", self._labels[label])
            case Dead():
                values = ()
                self.put("dead")
            case _:
                assert_never(terminator)
        self.atoms(values)

    def expression(self, expression: Expr) -> None:
        """One expression with the blocks inside it."""
        self.node(expression)

    def node(self, node: Any) -> None:
        """An expression, or a part of one: what kind it is, its attributes, how many of each thing follow, and these in
        the order of scope."""
        if isinstance(node, Atom):
            self.put("atom")
            self.atoms((node,))
        elif isinstance(node, Function):
            self.function(node)
        else:
            name, described, written = _PLANS[node.__class__]
            self.put(name, *[self._summary(field, getattr(node, field.name)) for field in described])
            for field in written:
                self._field(field.role, in_field(field.form, getattr(node, field.name)))

    def _summary(self, field: Field, value: Any) -> str | int:
        """The description of a field at the beginning of a node's pieces."""
        match field.role, field.form:
            case Role.ATTRIBUTES, _:
                return self._attributes(value)
            case Role.ATTRIBUTE, _:
                return self._attribute(value)
            case _, Form.NAMED:
                return json.dumps([name for name, _ in value])
            case _, Form.OPTIONAL:
                return value is not None
            case _:
                return len(value)

    def _field(self, role: Role, items: Sequence[Any]) -> None:
        if role is Role.ATOM:
            self.atoms(items)
            return
        write = self._writers[role]
        for item in items:
            write(item)

    def _attributes(self, attributes: Mapping[str, AttributeValue]) -> str:
        """Attributes by name; their order has no meaning."""
        return ", ".join(f"{json.dumps(name)}={self._attribute(attributes[name])}" for name in sorted(attributes))

    def _attribute(self, value: AttributeValue) -> str:
        match value:
            case bool() | None:
                return str(value)
            case int():
                return str(int(value))
            case float():
                return float(value).hex() if value == value else "nan"
            case str():
                return json.dumps(str(value))
            case BaseType(name):
                return name
            case TypeId() | DimExpr():
                return self._dim(value)
            case tuple():
                return f"({' '.join(map(self._attribute, value))})"
            case _:
                assert_never(value)


def _static_text(value: object) -> str:
    """A value that Python knows, by its type and text; an object by its place in a module."""
    match value:
        case None | bool() | int() | str() | Intrinsic() | BaseType():
            return json.dumps([type(value).__name__, str(value)])
        case float():
            return json.dumps(["float", value.hex() if value == value else "nan"])
        case _ if value is Ellipsis:
            return "..."
        case tuple():
            return f"({','.join(map(_static_text, value))})"
        case _:
            place = f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', None)}"
            if "None" in place or "<" in place:
                raise InternalError(f"{value!r} has no place in a module by which programs could be compared")
            return json.dumps(["object", place])


def _little_endian(array: np.ndarray) -> bytes:
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.byteswap()
    return array.tobytes()


def _plan(cls: type) -> tuple[str, tuple[Field, ...], tuple[Field, ...]]:
    """The name of a class of nodes, the fields that are described at its beginning, and those that are written then."""
    told = tuple(field for field in in_scope_order(cls) if field.role is not Role.PLACE)
    attributes = (Role.ATTRIBUTE, Role.ATTRIBUTES)
    described = tuple(field for field in told if field.role in attributes or field.form is not Form.ONE)
    return cls.__name__, described, tuple(field for field in told if field.role not in attributes)


_PLANS = ByClass(_plan)


def _options(grad: Grad) -> tuple[str, ...]:
    return tuple(map(str, grad.options))
