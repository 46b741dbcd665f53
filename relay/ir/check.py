"""Whether a module is well formed: what every pass may rely on, and must leave behind.

    typed        every variable is bound once, in scope where it is used, and typed with a known type; every expression
                 has exactly the type of its targets; every path of a block ends as its surroundings demand; symbolic
                 dims are extents of the entry's arguments
    core         and: no lambda, no grad, no function types; calls go to module functions; derivatives may be pending
    structured   and: the arms of an If or Match either all yield, or it stands last in its block (before Dead) and all
                 leave the innermost loop, or outside of loops the function; nothing leaves several constructs at once

A violation is an InternalError: a pass made it, not the user. (Where the user wrote the module as text, the parser
makes it the user's error.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

import attrs

from relay.errors import InternalError, RelayError, Span
from relay.ir.derivative import cotangent_type, derivative_type, gradient_type
from relay.ir.dims import ANY, Dim, DimExpr, MadeDim, variables
from relay.ir.expr import (
    Annotated,
    Apply,
    Ascribe,
    Assert,
    Atom,
    Attribute,
    AxisSize,
    BindDim,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Counter,
    CustomGradient,
    Dead,
    Derivative,
    Exit,
    Expr,
    Extent,
    ForEach,
    Function,
    Global,
    Grad,
    If,
    Index,
    IndexUpdate,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Module,
    Next,
    OpCall,
    PatternMatch,
    Print,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    SetAttribute,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Static,
    Unpack,
    Var,
    Yield,
)
from relay.ir.extents import symbolic_dims
from relay.ir.facts import assuming
from relay.ir.intrinsic import Intrinsic
from relay.ir.traverse import blocks, walk
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
OperatorType: TypeAlias = Callable[[OpCall, Sequence[Type]], Type]
_INDICES = (scalar(INT32), scalar(INT64))


def _no_operators(call: OpCall, types: Sequence[Type]) -> Type:
    raise KeyError(call.operator)


_operator_type: OperatorType = _no_operators


def use_operators(operator_type: OperatorType) -> None:
    """Say how operators are typed: by the type of a call for operands of known types, or KeyError if there is no such
    operator, or TypeMismatch. `relay.operator`, which lies above this package, does it when it is imported."""
    global _operator_type
    _operator_type = operator_type


class Violation(InternalError):
    """What is wrong, as text without the excuse, and near which place."""

    def __init__(self, violation: str, span: Span | None) -> None:
        super().__init__(violation)
        self.violation = violation
        self.span = span


def check(module: Module, stage: Stage = "typed") -> None:
    """Raise InternalError unless the module is well formed at this stage."""
    if module.entry not in module.functions:
        raise InternalError(f"the entry {module.entry} is no function of the module")
    checker = _Checker(module, stage)
    with assuming(module.where):
        checker.assumptions()
        for definition in module.data:
            checker.definition(definition)
        for name, function in module.functions.items():
            if name != function.name:
                raise InternalError(f"the function {function.name} is in the module as {name}")
            if isinstance(function, Derivative):
                checker.derivative(function)
            else:
                checker.where = name
                checker.function(function)


@attrs.frozen
class _Surroundings:
    """What the terminators of a block may do: the types of a Yield (None: it may not yield), and of Next (None: it is a
    function) and Exit for each label around it; the innermost of these is `innermost` (None: no Next or Exit here)."""

    yields: tuple[Type, ...] | None
    labels: Mapping[LoopLabel, tuple[tuple[Type, ...] | None, tuple[Type, ...]]]
    innermost: LoopLabel | None


class _Checker:
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
        self._made: set[MadeDim] = set()  # the dims that the function at hand makes
        self._made_here: set[MadeDim] = set()  # those of them that are in scope
        self._in_data = False

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
        """A dim is a number in every run."""
        for variable in variables(dim):
            if isinstance(variable, MadeDim):
                if self._in_data:
                    raise self.fail(f"{where} in a data type mentions {variable}, which the run makes")
                if variable in self._made and variable not in self._made_here:
                    raise self.fail(f"{variable} in {where} is not in scope")
            elif variable not in self._dims:
                raise self.fail(f"{variable} in {where} is the extent of no argument of {self.module.entry}")

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
                self.known(field)
        self._in_data = around

    def known(self, type_: Type) -> None:
        """A type is one of run-time values at this stage."""
        if type_ in self._known:
            return
        match type_:
            case TensorType(base, shape):
                if not isinstance(base, BaseType):
                    raise self.fail(f"{show(type_)} has variables")
                if type_.axes is not None:
                    raise self.fail(f"{show(type_)} has names of axes")
                for dim in shape:
                    if not isinstance(dim, int):
                        self.dim(dim, show(type_))
            case TupleType(items, form):
                if form is not None:
                    raise self.fail(f"{show(type_)} is a structure of Python")
                for item in items:
                    self.known(item)
            case FunctionType(parameters, result, where):
                if where:
                    raise self.fail(f"{show(type_)} is the type of a polymorphic function")
                if self.core:
                    raise self.fail(f"the function type {show(type_)} in the core")
                for part in (*parameters, result):
                    self.known(part)
            case RefType(content):
                self.known(content)
            case StackType(element):
                self.known(element)
            case DataType(definition):
                if definition not in self._declared:
                    raise self.fail(f"the data type {definition.name} does not belong to the module")
            case QuantifiedType() | TypeId() | Unknown():
                raise self.fail(f"{show(type_)} is not the type of a run-time value")
            case _:
                assert_never(type_)
        if not _mentions_made(type_):
            self._known.add(type_)

    def same(self, what: str, found: Sequence[Type], wanted: Sequence[Type]) -> None:
        """Two sequences of types are equal."""
        if len(found) != len(wanted):
            raise self.fail(f"{what}: {len(found)} values where {len(wanted)} are wanted")
        for position, (f, w) in enumerate(zip(found, wanted, strict=True)):
            if f is not w and f != w:
                raise self.fail(f"{what}: value {position} is {show(f)} where {show(w)} is wanted")

    # ---- variables and atoms

    def bind(self, variables: Iterable[Var]) -> None:
        """New variables come into scope."""
        for var in variables:
            if var in self.bound:
                raise self.fail(f"{var!r} is bound twice")
            if var.type is None:
                raise self.fail(f"{var!r} has no type")
            self.known(var.type)
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
                return function.type
            case Static():
                raise self.fail("Static belongs to the surface IR")
            case _:
                assert_never(atom)

    def atoms(self, atoms: Iterable[Atom]) -> tuple[Type, ...]:
        return tuple(self.atom(a) for a in atoms)

    def scalar_bool(self, what: str, type_: Type) -> None:
        self.same(what, (type_,), (scalar(BOOL),))

    def index(self, what: str, type_: Type) -> None:
        if type_ not in _INDICES:
            raise self.fail(f"{what} is {show(type_)}, not int32 or int64")

    # ---- functions

    def function(self, function: Function) -> None:
        """A function of the module, or of a lambda, whose surroundings' variables are visible."""
        self.span = function.span
        if function.result is None:
            raise self.fail(f"{function.name} has no result type")
        around = self._made  # to a lambda, these are its callers'
        self._made = {b.value.dim for b in walk(function.body) if isinstance(b.value, BindDim)}
        self.known(function.result)
        self.new_label(function.label)
        inside = _Surroundings(None, {function.label: (None, (function.result,))}, function.label)
        self.block(function.body, inside, function.parameters)
        if isinstance(function.rule, CustomGradient):
            self.rule(function, function.rule)
        self._made = around

    def rule(self, function: Function, rule: CustomGradient) -> None:
        """The functions that a rule names have the types that it needs."""
        found = [self.module.functions.get(name) for name in function.rule_functions]
        if None in found:
            raise self.fail(f"the rule of {function.name} names functions that there are not")
        types = function.type.parameters
        seed = cotangent_type(function.type.result)
        gradients = tuple(map(cotangent_type, types))
        saved: Type = TupleType(types)
        if len(found) == 2:
            forward = found[1].type  # type: ignore[union-attr]
            if not isinstance(forward.result, TupleType) or len(forward.result.items) != 2:
                raise self.fail(f"@{rule.forward} does not return a result and what it saved")
            saved = forward.result.items[1]
            expected = FunctionType(types, TupleType((function.type.result, saved)))
            self.same(f"the type of @{rule.forward}", (forward,), (expected,))
        expected = FunctionType((saved, seed), gradients[0] if len(gradients) == 1 else TupleType(gradients))
        self.same(f"the type of @{rule.backward}", (found[0].type,), (expected,))  # type: ignore[union-attr]

    def derivative(self, derivative: Derivative) -> None:
        """A pending derivative: its type is that of the gradient of the function."""
        self.where, self.span = derivative.name, derivative.span
        if not self.core:
            raise self.fail("a pending derivative before the core")
        of = self.module.functions.get(derivative.of)
        if of is None:
            raise self.fail(f"there is no function @{derivative.of}")
        if derivative.grad.wrt is None:
            raise self.fail("a pending derivative that does not say with respect to which parameters")
        try:
            expected = derivative_type(of.type, derivative.grad)
        except RelayError as error:
            raise self.fail(error.message) from None
        if derivative.type == expected:
            return
        raise self.fail(f"{show(derivative.type)} is no derivative of {show(of.type)}")

    # ---- blocks

    def block(self, block: Block, around: _Surroundings, variables: Sequence[Var] = ()) -> None:
        """A block that binds `variables` at its start. They and its own variables are out of scope after it."""
        self.bind(variables)
        lambdas_until = 0
        for position, binding in enumerate(block.bindings):
            if isinstance(binding.value, Lambda):
                if position >= lambdas_until:  # the first of a group, which sees all of the group
                    lambdas_until = position
                    while lambdas_until < len(block.bindings) and isinstance(
                        block.bindings[lambdas_until].value, Lambda
                    ):
                        self.bind(block.bindings[lambdas_until].targets)
                        lambdas_until += 1
                self.binding(binding, around)
            else:
                self.binding(binding, around)
                self.bind(binding.targets)
                last = position + 1 == len(block.bindings) and isinstance(block.terminator, Dead)
                if self.structured and not last and not self.may_end(binding.value):
                    raise self.fail(f"something follows an {type(binding.value).__name__} that never ends")
        self.terminator(block, around)
        self.visible.difference_update(variables)
        for binding in block.bindings:
            self.visible.difference_update(binding.targets)
            if isinstance(binding.value, BindDim):
                self._made_here.discard(binding.value.dim)

    def terminator(self, block: Block, around: _Surroundings) -> None:
        if not isinstance(block.terminator, Dead):
            self.span = block.terminator.span or self.span
        match block.terminator:
            case Yield(values):
                if around.yields is None:
                    raise self.fail("a Yield outside of an arm")
                self.same("a Yield", self.atoms(values), around.yields)
            case Next(label, values):
                parameters, _ = self.leave("Next", label, around)
                if parameters is None:
                    raise self.fail(f"a Next to the function {label.name}")
                self.same(f"the Next of {label.name}", self.atoms(values), parameters)
            case Exit(label, values):
                _, results = self.leave("Exit", label, around)
                self.left.add(label)
                self.same(f"the Exit of {label.name}", self.atoms(values), results)
            case Dead():
                if not block.bindings or self.may_end(block.bindings[-1].value):
                    raise self.fail("Dead after something that may end")
            case other:
                assert_never(other)

    def leave(
        self, what: str, label: LoopLabel, around: _Surroundings
    ) -> tuple[tuple[Type, ...] | None, tuple[Type, ...]]:
        """The types of Next and Exit for a label."""
        found = around.labels.get(label)
        if found is None:
            raise self.fail(f"{what} with the label {label.name}, which is not around it")
        if self.structured and label is not around.innermost:
            raise self.fail(f"{what} with the label {label.name} leaves several constructs at once")
        return found

    def may_end(self, expression: Expr) -> bool:
        """Whether execution can go on behind an expression (which has been checked already)."""
        match expression:
            case If(arms, orelse):
                return any(isinstance(b.terminator, Yield) for b in (*(a.body for a in arms), orelse))
            case Match(_, match_arms):
                return any(isinstance(a.body.terminator, Yield) for a in match_arms)
            case Loop(label, counter=counter):
                return counter is not None or label in self.left
            case Assert(Constant(value) | Static(value)):
                return bool(value)
            case Print(fails=fails):
                return not fails
            case Apply(Static(Intrinsic("assert")), (Constant(value) | Static(value), *_)):
                return bool(value)
            case _:
                return True

    def binding(self, binding: Binding, around: _Surroundings) -> None:
        """The expression has the type of its targets, which are not in scope yet."""
        self.span = binding.value.span or self.span
        wanted = []
        for target in binding.targets:
            if target.type is None:
                raise self.fail(f"{target!r} has no type")
            wanted.append(target.type)
        targets = tuple(wanted)
        match binding.value:
            case If() | Match() as branch:
                self.branch(branch, targets, around)
            case Loop() as loop:
                self.loop(loop, targets, around)
            case Ascribe(value) if len(targets) == 1:
                self.ascribed(self.atom(value), targets[0])
            case other:
                found = self.simple(other)
                name = ", ".join(f"%{t.name}" for t in binding.targets) or "an effect"
                self.same(f"{type(other).__name__} for {name}", found, targets)

    def ascribed(self, found: Type, wanted: Type) -> None:
        """Two types of one tensor differ in dims that the run makes only."""
        if (
            not isinstance(found, TensorType)
            or not isinstance(wanted, TensorType)
            or found.base != wanted.base
            or found.rank != wanted.rank
            or not all(
                a == b or a is ANY or b is ANY or _is_made(a) or _is_made(b)
                for a, b in zip(found.shape, wanted.shape, strict=True)
            )
        ):
            raise self.fail(f"a {show(found)} as {show(wanted)}")

    # ---- expressions with blocks

    def branch(self, branch: If | Match, targets: tuple[Type, ...], around: _Surroundings) -> None:
        inside = attrs.evolve(around, yields=targets)
        match branch:
            case If(arms, orelse):
                bodies: list[Block] = [*(a.body for a in arms), orelse]
                for arm in arms:
                    # A condition may leave too, except in the structured form.
                    no_exit = None if self.structured else around.innermost
                    labels = {} if self.structured else around.labels
                    self.block(arm.condition, _Surroundings((scalar(BOOL),), labels, no_exit))
                    self.block(arm.body, inside)
                self.block(orelse, inside)
            case Match(value, match_arms):
                bodies = [a.body for a in match_arms]
                type_ = self.atom(value)
                if not isinstance(type_, DataType):
                    raise self.fail(f"a Match on {show(type_)}")
                wanted = [c.name for c in type_.definition.constructors]
                if sorted(a.constructor for a in match_arms) != sorted(wanted):
                    found = ", ".join(a.constructor for a in match_arms)
                    raise self.fail(f"a Match on {show(type_)} with arms for {found}; wanted {', '.join(wanted)}")
                for match_arm in match_arms:
                    constructor = type_.definition.constructors[type_.definition.index(match_arm.constructor)]
                    types = tuple(f.type for f in match_arm.fields if f.type is not None)
                    self.same(f"the fields of {constructor.name}", types, constructor.fields)
                    self.block(match_arm.body, inside, match_arm.fields)
        if self.structured:
            yielding = {isinstance(b.terminator, Yield) for b in bodies if not isinstance(b.terminator, Dead)}
            if len(yielding) > 1:
                raise self.fail("some arms yield and others leave")
            if yielding == {False} and targets:
                raise self.fail("no arm yields, but there are targets")

    def loop(self, loop: Loop, targets: tuple[Type, ...], around: _Surroundings) -> None:
        initial = self.atoms(loop.initial)
        bound = loop.parameters
        if loop.counter is not None:
            count = self.atom(loop.counter.count)
            self.index(f"the count of {loop.label.name}", count)
            self.counter(loop.counter, count)
            bound = (*bound, loop.counter.index)
        parameters = tuple(p.type for p in loop.parameters if p.type is not None)
        self.same(f"the initial values of {loop.label.name}", initial, parameters)
        if loop.counter is not None:
            self.same(f"the results of {loop.label.name}", parameters, targets)
        self.new_label(loop.label)
        labels = {**around.labels, loop.label: (parameters, targets)}
        self.block(loop.body, _Surroundings(None, labels, loop.label), bound)

    def counter(self, counter: Counter, count: Type) -> None:
        if counter.index.type != count:
            found = "nothing" if counter.index.type is None else show(counter.index.type)
            raise self.fail(f"the index {counter.index!r} is {found}, its count {show(count)}")

    # ---- expressions without blocks

    def simple(self, expression: Expr) -> tuple[Type, ...]:
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
                    raise self.fail(f"a call of {show(callee)}")
                self.same(f"the call of {_name(function)}", self.atoms(arguments), callee.parameters)
                return (callee.result,)
            case MakeTuple(items):
                return (TupleType(self.atoms(items)),)
            case Project(value, index):
                whole = self.atom(value)
                if not isinstance(whole, TupleType) or not 0 <= index < len(whole.items):
                    raise self.fail(f"component {index} of {show(whole)}")
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
                self.same("a write", (self.atom(value),), (self.content(reference),))
                return ()
            case Assert(condition):
                self.scalar_bool("an Assert", self.atom(condition))
                return ()
            case Print(pieces, values, formats):
                for value in values:
                    if not isinstance(type_ := self.atom(value), TensorType):
                        raise self.fail(f"a Print of {show(type_)}")
                if not len(pieces) - 1 == len(values) == len(formats):
                    raise self.fail("a Print whose parts do not match")
                return ()
            case Construct(definition, name, arguments):
                if name not in [c.name for c in definition.constructors]:
                    raise self.fail(f"{definition.name} has no constructor {name}")
                fields = definition.constructors[definition.index(name)].fields
                self.same(f"the fields of {name}", self.atoms(arguments), fields)
                return (DataType(definition),)
            case StackNew(element):
                return (StackType(element),)
            case StackPush(stack, value):
                element_type = self.element(stack)
                self.same("a push", (self.atom(value),), (element_type,))
                return (StackType(element_type),)
            case StackGet(stack, position):
                self.index("the index of a get", self.atom(position))
                return (self.element(stack),)
            case StackLength(stack):
                self.element(stack)
                return (scalar(INT64),)
            case Extent(dim) as extent:
                self.dim(dim, f"the extent {dim}")
                if dim is ANY or extent.type not in _INDICES:
                    raise self.fail(f"the extent {dim} as {extent.base}")
                return (extent.type,)
            case BindDim(dim, size):
                self.same("a size", (self.atom(size),), (scalar(INT64),))
                if dim in self._made_here:
                    raise self.fail(f"{dim} is made twice")
                self._made_here.add(dim)
                return ()
            case AxisSize(value, axis):
                tensor = self.atom(value)
                if not isinstance(tensor, TensorType) or not 0 <= axis < tensor.rank:
                    raise self.fail(f"the size of axis {axis} of {show(tensor)}")
                return (scalar(INT64),)
            case Ascribe():
                raise self.fail("an Ascribe has one target")
            case (
                Apply() | Attribute() | SetAttribute() | Index() | IndexUpdate() | Annotated() | Unpack() | ForEach()
                | PatternMatch()
            ):  # fmt: skip
                raise self.fail(f"{type(expression).__name__} belongs to the surface IR")
            case If() | Match() | Loop():
                raise AssertionError(f"{type(expression).__name__} has {len(tuple(blocks(expression)))} blocks")
            case _:
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
            message = error.message if isinstance(error, RelayError) else str(error)
            raise self.fail(
                f"{call.operator}({', '.join(map(show, types))}) with {dict(call.attributes)}: {message}"
            ) from error

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


def _name(atom: Atom) -> str:
    return f"@{atom.name}" if isinstance(atom, Global) else repr(atom)


def _is_made(dim: Dim) -> bool:
    return any(isinstance(v, MadeDim) for v in variables(dim))


def _mentions_made(type_: Type) -> bool:
    """Whether a dim that the run makes stands in a type."""
    found: list[bool] = []

    def look(dim: Dim) -> Dim:
        found.append(_is_made(dim))
        return dim

    map_dims(type_, look)
    return any(found)
