"""Scopes of a module under validation: types, variables and labels, each bound once, used in scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, assert_never

from relay.errors import InternalError, Span
from relay.ir.dims import DataDependentDim, Dim, variables
from relay.ir.expr import (
    Atom,
    Constant,
    Global,
    LoopLabel,
    Module,
    Static,
    Var,
)
from relay.ir.sizes.data_dependent import given_sizes
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.types import (
    BOOL,
    INT32,
    INT64,
    BaseType,
    DataDefinition,
    DataType,
    FunctionType,
    QuantifiedType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    map_dims,
    scalar,
    show,
)

Stage: TypeAlias = Literal["typed", "core", "structured"]
INDICES = (scalar(INT32), scalar(INT64))


class Violation(InternalError):
    """A violation, as text without the excuse, and the place that it is near to."""

    def __init__(self, violation: str, span: Span | None) -> None:
        super().__init__(violation)
        self.violation = violation
        self.span = span


class Scopes:
    """Types, variables, labels and operands of a module under check."""

    def __init__(self, module: Module, stage: Stage) -> None:
        self.module = module
        self.core = stage != "typed"
        self.structured = stage == "structured"
        self.where = ""
        self.span: Span | None = None  # the place of what is being checked
        self.bound: set[Var] = set()
        self.labels: set[LoopLabel] = set()
        self.visible: set[Var] = set()
        self.left: set[LoopLabel] = set()  # loops with an Exit
        self._known: set[Type] = set()
        self._declared = set(module.data)
        self._dims = set(symbolic_dims(module))
        self._made: set[DataDependentDim] = set()  # the dims that the function at hand makes
        self._made_here: set[DataDependentDim] = set()  # those of them that are in scope
        self._in_data = False
        self._given = given_sizes(module)  # the sizes that each function has from its callers

    def fail(self, message: str) -> Violation:
        return Violation(f"in {self.where}: {message}", self.span)

    # ---- types

    def assumptions(self) -> None:
        """The symbolic dims have different names, and the module assumes something of them only."""
        self.where = self.module.entry
        names: set[str] = set()
        for variable in self._dims:
            if variable.name in names:
                raise self.fail(f"two symbolic dims are named {variable.name}")
            names.add(variable.name)
        for constraint in self.module.where:
            self.span = constraint.span
            self.dim(constraint.left, str(constraint))
            self.dim(constraint.right, str(constraint))

    def dim(self, dim: Dim, where: str) -> None:
        """A dim is a number whenever the program runs."""
        for variable in variables(dim):
            if isinstance(variable, DataDependentDim):
                if self._in_data:
                    raise self.fail(f"{where} in a data type mentions {variable}, which is data-dependent")
                if variable in self._made and variable not in self._made_here:
                    raise self.fail(f"{variable} in {where} is not in scope")
            elif variable not in self._dims:
                raise self.fail(f"{variable} in {where} is the extent of no argument of {self.module.entry}")

    def entry(self) -> None:
        """Nobody gives the entry data-dependent sizes."""
        for dim in self._given[self.module.entry]:
            raise self.fail(f"{dim}, which @{self.module.entry} uses or passes on, is never defined")

    def definition(self, definition: DataDefinition) -> None:
        """The field types of a data type."""
        self.where, self.span = definition.name, None
        if sum(d is definition for d in self.module.data) > 1:
            raise self.fail("the data type is there twice")
        if len({c.name for c in definition.constructors}) < len(definition.constructors):
            raise self.fail("two constructors have one name")
        if definition.parameters:  # no value is of this type, only of those that are made of it
            return
        around, self._in_data = self._in_data, True
        for constructor in definition.constructors:
            if constructor.names and len(set(constructor.names)) != len(constructor.fields):
                raise self.fail(f"the fields of {constructor.name} have not one name each")
            for field in constructor.fields:
                self.check_type(field)
        self._in_data = around

    def check_type(self, type_: Type) -> None:
        """A type is one of run-time values at this stage."""
        if isinstance(type_, TensorType) and type_.axes is not None:
            raise self.fail(f"{show(type_)} has names of axes")
        if type_ in self._known:
            return
        match type_:
            case TensorType(base, shape):
                if not isinstance(base, BaseType):
                    raise self.fail(f"{show(type_)} has variables")
                for dim in shape:
                    if not isinstance(dim, int):
                        self.dim(dim, show(type_))
            case TupleType(items, form):
                if form is not None:
                    raise self.fail(f"{show(type_)} is a structure of Python")
                for item in items:
                    self.check_type(item)
            case FunctionType(parameters, result, where):
                if where:
                    raise self.fail(f"{show(type_)} is the type of a polymorphic function")
                if self.core:
                    raise self.fail(f"the function type {show(type_)} in the core")
                for part in (*parameters, result):
                    self.check_type(part)
            case RefType(content):
                self.check_type(content)
            case StackType(element):
                self.check_type(element)
            case DataType(definition):
                if definition not in self._declared:
                    raise self.fail(f"the data type {definition.name} does not belong to the module")
            case QuantifiedType() | TypeId() | Unknown():
                raise self.fail(f"{show(type_)} is not the type of a run-time value")
            case _:
                assert_never(type_)
        if not _mentions_made(type_):
            self._known.add(type_)

    def check_equal_types(self, what: str, found: Sequence[Type], wanted: Sequence[Type]) -> None:
        """Two sequences of types are equal."""
        if len(found) != len(wanted):
            raise self.fail(f"{what}: expected {len(wanted)} value{'s' * (len(wanted) != 1)}, found {len(found)}")
        for position, (f, w) in enumerate(zip(found, wanted, strict=True)):
            if f is not w and f != w:
                place = f", value {position}" if len(found) > 1 else ""
                raise self.fail(f"{what}{place}: expected {show(w)}, found {show(f)}")

    # ---- variables and atoms

    def bind(self, variables: Iterable[Var]) -> None:
        """New variables come into scope."""
        for var in variables:
            if var in self.bound:
                raise self.fail(f"{var!r} is bound twice")
            if var.type is None:
                raise self.fail(f"{var!r} has no type")
            self.check_type(var.type)
            self.bound.add(var)
            self.visible.add(var)

    def new_label(self, label: LoopLabel) -> None:
        if label in self.labels:
            raise self.fail(f"the label {label.name} belongs to two loops or functions")
        self.labels.add(label)

    def atom(self, atom: Atom, callee: bool = False) -> Type:
        """The type of an operand."""
        match atom:
            case Var(_, type_):
                if atom not in self.visible:
                    state = "used out of its scope" if atom in self.bound else "not bound before it is used"
                    raise self.fail(f"{atom!r} is {state}")
                assert type_ is not None
                return type_
            case Constant():
                return atom.type
            case Global(name):
                if self.core and not callee:
                    raise self.fail(f"@{name} is used as a value in the core")
                function = self.module.functions.get(name)
                if function is None:
                    raise self.fail(f"there is no function @{name}")
                for dim in self._given[name]:
                    self.dim(dim, f"what @{name} is given")
                return function.type
            case Static():
                raise self.fail("Static belongs to the surface IR")
            case _:
                assert_never(atom)

    def atoms(self, atoms: Iterable[Atom]) -> tuple[Type, ...]:
        return tuple(self.atom(a) for a in atoms)

    def scalar_bool(self, what: str, type_: Type) -> None:
        self.check_equal_types(what, (type_,), (scalar(BOOL),))

    def index(self, what: str, type_: Type) -> None:
        if type_ not in INDICES:
            raise self.fail(f"{what} is {show(type_)}, not int32 or int64")


def is_made(dim: Dim) -> bool:
    return any(isinstance(v, DataDependentDim) for v in variables(dim))


def _mentions_made(type_: Type) -> bool:
    """True if a type mentions a data-dependent dim."""
    found: list[bool] = []

    def look(dim: Dim) -> Dim:
        found.append(is_made(dim))
        return dim

    map_dims(type_, look)
    return any(found)
