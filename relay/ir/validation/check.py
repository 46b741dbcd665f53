"""The IR validator: the invariants that every pass may rely on, and must preserve.

    typed        every variable is bound once, in scope where it is used, and typed with a known type; every expression
                 has exactly the type of its targets; every path of a block ends as its context demands; symbolic
                 dims are extents of the entry's arguments
    core         and: no lambda, no grad, no function types; calls go to module functions; derivatives may be pending
    structured   and: the arms of an If or Match either all yield, or it is the last one in its block (before Dead) and
                 all leave the innermost loop, or outside of loops the function; nothing leaves several
                 constructs at once

A violation is an InternalError: a pass made it, not the user. (Where the user wrote the module as text, the parser
makes it the user's error.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import attrs

from relay.errors import InternalError, RelayError
from relay.ir.derivative import cotangent_type, derivative_type
from relay.ir.dims import ANY
from relay.ir.expr import (
    Ascribe,
    Assert,
    BindDim,
    Binding,
    Block,
    Constant,
    Counter,
    CustomGradient,
    Dead,
    Derivative,
    Exit,
    Expr,
    Function,
    If,
    Lambda,
    Loop,
    LoopLabel,
    Match,
    Module,
    Next,
    Print,
    Rethrow,
    Static,
    Var,
    Yield,
)
from relay.ir.intrinsic import Intrinsic
from relay.ir.sizes.facts import assume_facts
from relay.ir.surface import Apply
from relay.ir.traverse import bodies, walk, yields
from relay.ir.types import (
    BOOL,
    DataType,
    FunctionType,
    TensorType,
    TupleType,
    Type,
    scalar,
    show,
)
from relay.ir.validation.check_scopes import Stage as Stage
from relay.ir.validation.check_scopes import Violation as Violation
from relay.ir.validation.check_scopes import is_made
from relay.ir.validation.check_values import Values
from relay.ir.validation.check_values import use_operators as use_operators


def check(module: Module, stage: Stage = "typed") -> None:
    """Raise InternalError unless the module is well formed at this stage."""
    if module.entry not in module.functions:
        raise InternalError(f"the entry {module.entry} is not a function of the module")
    checker = _Checker(module, stage)
    with assume_facts(module.where):
        checker.assumptions()
        checker.entry()
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
class _TerminatorTypes:
    """The types that the terminators of a block may have: those of a Yield (None: it may not yield), and of Next
    (None: it is a function) and Exit for each label around it; the innermost of these is `innermost` (None: no Next
    or Exit here)."""

    yields: tuple[Type, ...] | None
    labels: Mapping[LoopLabel, tuple[tuple[Type, ...] | None, tuple[Type, ...]]]
    innermost: LoopLabel | None
    purpose: str = "`yield`"  # what a Yield gives


class _Checker(Values):
    # ---- functions

    def function(self, function: Function) -> None:
        """A function of the module, or of a lambda, whose surroundings' variables are visible."""
        self.span = function.span
        if function.result is None:
            raise self.fail(f"{function.name} has no result type")
        around = self._made  # to a lambda, these are its callers'
        self._made = {b.value.dim for b in walk(function.body) if isinstance(b.value, BindDim)}
        self.check_type(function.result)
        self.new_label(function.label)
        inside = _TerminatorTypes(None, {function.label: (None, (function.result,))}, function.label)
        self.block(function.body, inside, function.parameters)
        if isinstance(function.rule, CustomGradient):
            self.rule(function, function.rule)
        self._made = around

    def rule(self, function: Function, rule: CustomGradient) -> None:
        """The functions that a rule names have the types that it needs."""
        found = [self.module.functions.get(name) for name in function.rule_functions]
        if None in found:
            raise self.fail(f"the rule of {function.name} names functions that do not exist")
        types = function.type.parameters
        result = function.type.result
        for _ in range(rule.depth):
            if not isinstance(result, TupleType) or not result.items:
                raise self.fail(f"the rule of {function.name} names a component that does not exist")
            result = result.items[0]
        seed = cotangent_type(result)
        gradients = tuple(map(cotangent_type, types))
        saved: Type = TupleType(types)
        if len(found) == 2:
            forward = found[1].type  # type: ignore[union-attr]
            if not isinstance(forward.result, TupleType) or len(forward.result.items) != 2:
                raise self.fail(f"@{rule.forward} does not return a result and what it saved")
            saved = forward.result.items[1]
            expected = FunctionType(types, TupleType((result, saved)))
            self.check_equal_types(f"the type of @{rule.forward}", (forward,), (expected,))
        expected = FunctionType((saved, seed), gradients[0] if len(gradients) == 1 else TupleType(gradients))
        self.check_equal_types(f"the type of @{rule.backward}", (found[0].type,), (expected,))  # type: ignore[union-attr]

    def derivative(self, derivative: Derivative) -> None:
        """A pending derivative: its type is that of the gradient of the function."""
        self.where, self.span = derivative.name, derivative.span
        if not self.core:
            raise self.fail("a derivative in a module of stage typed; say `stage core`, or leave the stage out")
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
        raise self.fail(f"{show(derivative.type)} is not a derivative of {show(of.type)}")

    # ---- blocks

    def block(self, block: Block, around: _TerminatorTypes, variables: Sequence[Var] = ()) -> None:
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
                if self.structured and not last and not self.may_end(binding.value) and not _fails(binding.value):
                    raise self.fail(f"something follows an {type(binding.value).__name__} that never ends")
        self.terminator(block, around)
        self.visible.difference_update(variables)
        for binding in block.bindings:
            self.visible.difference_update(binding.targets)
            if isinstance(binding.value, BindDim):
                self._made_here.discard(binding.value.dim)

    def terminator(self, block: Block, around: _TerminatorTypes) -> None:
        if not isinstance(block.terminator, Dead):
            self.span = block.terminator.span or self.span
        match block.terminator:
            case Yield(values):
                if around.yields is None:
                    raise self.fail("`yield` outside of an arm")
                self.check_equal_types(around.purpose, self.atoms(values), around.yields)
            case Next(label, values):
                parameters, _ = self.leave("next", label, around)
                if parameters is None:
                    raise self.fail(f"`next` to the function {label.name}")
                self.check_equal_types(f"`next '{label.name}`", self.atoms(values), parameters)
            case Exit(label, values):
                parameters, results = self.leave("exit", label, around)
                self.left.add(label)
                what = f"the result of {label.name}" if parameters is None else f"`exit '{label.name}`"
                self.check_equal_types(what, self.atoms(values), results)
            case Dead():
                last = block.bindings[-1].value if block.bindings else None
                if last is None or (self.may_end(last) and not _fails(last)):
                    raise self.fail("`dead` after something that may end")
            case other:
                assert_never(other)

    def leave(
        self, what: str, label: LoopLabel, around: _TerminatorTypes
    ) -> tuple[tuple[Type, ...] | None, tuple[Type, ...]]:
        """The types of Next and Exit for a label."""
        found = around.labels.get(label)
        if found is None:
            raise self.fail(f"`{what} '{label.name}`: no loop or function of this label is around it")
        if self.structured and label is not around.innermost:
            raise self.fail(f"`{what} '{label.name}` leaves several constructs at once")
        return found

    def may_end(self, expression: Expr) -> bool:
        """True if execution can continue after an expression (which has been checked already)."""
        match expression:
            case If() | Match():
                return bool(yields(expression))
            case Loop(label, counter=counter):
                return counter is not None or label in self.left
            case _:
                return True

    def binding(self, binding: Binding, around: _TerminatorTypes) -> None:
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
                self.check_ascription(self.atom(value), targets[0])
            case other:
                found = self.simple_types(other)
                name = ", ".join(f"%{t.name}" for t in binding.targets) or "a statement without `let`"
                self.check_equal_types(name, found, targets)

    def check_ascription(self, found: Type, wanted: Type) -> None:
        """Two types of one tensor differ in data-dependent dims only."""
        if (
            not isinstance(found, TensorType)
            or not isinstance(wanted, TensorType)
            or found.base != wanted.base
            or found.rank != wanted.rank
            or not all(
                a == b or a is ANY or b is ANY or is_made(a) or is_made(b)
                for a, b in zip(found.shape, wanted.shape, strict=True)
            )
        ):
            raise self.fail(f"a {show(found)} as {show(wanted)}")

    # ---- expressions with blocks

    def branch(self, branch: If | Match, targets: tuple[Type, ...], around: _TerminatorTypes) -> None:
        inside = attrs.evolve(around, yields=targets)
        match branch:
            case If(arms, orelse):
                for arm in arms:
                    # A condition may leave too, except in the structured form.
                    no_exit = None if self.structured else around.innermost
                    labels = {} if self.structured else around.labels
                    self.block(arm.condition, _TerminatorTypes((scalar(BOOL),), labels, no_exit, "the condition"))
                    self.block(arm.body, inside)
                self.block(orelse, inside)
            case Match(value, match_arms):
                type_ = self.atom(value)
                if not isinstance(type_, DataType):
                    raise self.fail(f"`match` on {show(type_)}, which is not a data type")
                wanted = [c.name for c in type_.definition.constructors]
                if sorted(a.constructor for a in match_arms) != sorted(wanted):
                    found = ", ".join(a.constructor for a in match_arms) or "none"
                    raise self.fail(f"`match` on {show(type_)}: expected arms for {', '.join(wanted)}, found {found}")
                for match_arm in match_arms:
                    constructor = type_.definition.constructors[type_.definition.index(match_arm.constructor)]
                    types = tuple(f.type for f in match_arm.fields if f.type is not None)
                    self.span = match_arm.fields[0].span if match_arm.fields else branch.span
                    self.check_equal_types(f"the fields of {constructor.name}", types, constructor.fields)
                    self.block(match_arm.body, inside, match_arm.fields)
        if self.structured:
            yielding = {isinstance(b.terminator, Yield) for b in bodies(branch) if not isinstance(b.terminator, Dead)}
            if len(yielding) > 1:
                raise self.fail("some arms yield and others leave")
            if yielding == {False} and targets:
                raise self.fail("no arm yields, but there are targets")

    def loop(self, loop: Loop, targets: tuple[Type, ...], around: _TerminatorTypes) -> None:
        initial = self.atoms(loop.initial)
        bound = loop.parameters
        if loop.counter is not None:
            count = self.atom(loop.counter.count)
            self.index(f"the count of {loop.label.name}", count)
            self.counter(loop.counter, count)
            bound = (*bound, loop.counter.index)
        parameters = tuple(p.type for p in loop.parameters if p.type is not None)
        self.check_equal_types(f"the initial values of {loop.label.name}", initial, parameters)
        if loop.counter is not None:
            self.check_equal_types(f"the results of {loop.label.name}", parameters, targets)
        self.new_label(loop.label)
        labels = {**around.labels, loop.label: (parameters, targets)}
        self.block(loop.body, _TerminatorTypes(None, labels, loop.label), bound)

    def counter(self, counter: Counter, count: Type) -> None:
        if counter.index.type != count:
            found = "nothing" if counter.index.type is None else show(counter.index.type)
            raise self.fail(f"the index {counter.index!r} is {found}, its count {show(count)}")


def _fails(expression: Expr) -> bool:
    """True for an assertion that fails: a block may end after it, but need not."""
    match expression:
        case Assert(Constant(value) | Static(value)):
            return not value
        case Print(fails=fails):
            return fails
        case Rethrow():
            return True
        case Apply(Static(Intrinsic("assert")), (Constant(value) | Static(value), *_)):
            return not value
        case _:
            return False
