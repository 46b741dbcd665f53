"""Caught errors as exits: an error in a `try` leaves a loop, and a function called there returns it as data.

    failed, error, text = attempt             rest: loop R {
    targets = if failed block H else block B    error, text = loop E { B, where `yield` leaves R and an error leaves E }
                                                H, where `yield` leaves R }

    call f(a, ..) in B                        match f_caught(a, ..) { Succeeded(x) -> x, Failed(error, text) -> exit E }

An error is the number of the place where it is raised. The places are numbered by their classes, so that to ask for a
class is to compare with a few numbers. Texts are passed on if any is made at run time, or is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from relay.errors import CompileError, InternalError, Span
from relay.errors.raised import catches
from relay.ir.builder import BlockBuilder
from relay.ir.dims import ANY
from relay.ir.expr import (
    Arm,
    Ascribe,
    Assert,
    Atom,
    Attempt,
    Binding,
    Block,
    Call,
    CatchesError,
    Constant,
    Construct,
    CustomGradient,
    Dead,
    Derivative,
    EndAttempt,
    Exit,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    Match,
    MatchArm,
    Module,
    OpCall,
    Print,
    Rethrow,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_function, map_blocks
from relay.ir.traverse import all_blocks, terminator_operands
from relay.ir.types import BOOL, INT32, Constructor, DataDefinition, DataType, FunctionType, TensorType, Type, scalar
from relay.transform.core.error_places import ErrorPlaces
from relay.transform.core.rebuilding import with_body, with_functions
from relay.transform.module_pass import module_pass

SUCCEEDED, FAILED = "Succeeded", "Failed"
TEXT_TYPE = TensorType(INT32, (ANY,))


@module_pass
def catch_errors(module: Module) -> Module:
    """The first-order module in which nothing catches errors any more. Raises CompileError where a derivative that
    may fail is called in a `try`."""
    return _ErrorExits(module).run()


@attrs.frozen(eq=False)
class _Catcher:
    """The place to which errors lead: a label, with the error's atoms or, for a function, its result as data."""

    label: LoopLabel
    outcome: DataDefinition | None = None


@attrs.frozen(eq=False)
class _Surroundings:
    """The surroundings of a block: where its errors lead, and where they lead once an `Attempt` has ended; the label
    that its `yield` leaves, if it leaves one; and, in a function whose result is data, its label."""

    catcher: _Catcher | None
    outside: Mapping[Atom, _Catcher | None] = attrs.field(factory=dict)
    yields: LoopLabel | None = None
    function: _Catcher | None = None
    function_label: LoopLabel | None = None

    def of_inner_block(self) -> _Surroundings:
        """The same for a block that is inside of one, and yields to it."""
        return self if self.yields is None else attrs.evolve(self, yields=None)


class _ErrorExits:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.places = ErrorPlaces(module)
        self.functions: dict[str, Function | Derivative] = {}
        self.caught: dict[str, FunctionType] = {}  # the functions that return errors, by what they are made of
        self.names: dict[str, str] = {}
        self.pending: list[str] = []
        self.outcomes: list[tuple[Type, DataDefinition]] = []
        self.taken = {*module.functions, *(d.name for d in module.data)}

    def run(self) -> Module:
        """The module, with functions that return their errors."""
        for name, function in self.module.functions.items():
            self.functions[name] = function
            if isinstance(function, Function):
                self.functions[name] = with_body(function, self.block(function.body, _Surroundings(None)))
        while self.pending:
            name = self.pending.pop()
            self.functions[self.names[name]] = self._returning_errors(name)
        return with_functions(self.module, self.functions, [definition for _, definition in self.outcomes])

    # ---- functions that return their errors

    def _caught_function(self, name: str, span: Span | None) -> Global:
        """A function that returns its error, by the name of what it is made of."""
        function = self.module.functions[name]
        if isinstance(function, Derivative) or isinstance(function.rule, CustomGradient):
            raise CompileError(
                f"a derivative is called in a `try`, and {_source_name(self.module, name)} may fail",
                span,
                help="take the derivative of a function that has the `try` in it",
            )
        if name not in self.names:
            assert function.result is not None
            self.names[name] = self._name(f"{name}_caught")
            outcome = DataType(self._outcome(function.result, name))
            self.caught[name] = FunctionType(function.type.parameters, outcome)
            self.pending.append(name)
        return Global(self.names[name], self.caught[name], span)

    def _returning_errors(self, name: str) -> Function:
        function = self.module.functions[name]
        assert isinstance(function, Function)
        copy = copy_function(function)
        result = self.caught[name].result
        assert isinstance(result, DataType)
        catcher = _Catcher(copy.label, result.definition)
        body = self.block(copy.body, _Surroundings(catcher, function=catcher, function_label=copy.label))
        label, made = copy.label, self.names[name]
        return Function(made, copy.parameters, body, label, result, span=copy.span, rule=copy.rule)

    def _outcome(self, result: Type, name: str) -> DataDefinition:
        """The data type of a result or an error."""
        for known, definition in self.outcomes:
            if known == result:
                return definition
        fields = (scalar(INT32), TEXT_TYPE) if self.places.have_texts else (scalar(INT32),)
        constructors = Constructor(SUCCEEDED, (result,)), Constructor(FAILED, fields)
        definition = DataDefinition(self._name(f"{name}_outcome"), constructors)
        self.outcomes.append((result, definition))
        return definition

    def _name(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    # ---- blocks

    def block(self, block: Block, around: _Surroundings) -> Block:
        """The block with exits in place of the errors that lead to a catcher."""
        out = BlockBuilder()
        position = 0
        while position < len(block.bindings) and out.is_open:
            binding = block.bindings[position]
            position += 1
            match binding.value:
                case Attempt() as attempt:
                    branch = next(n for n in range(position, len(block.bindings)) if _is_of(block.bindings[n], binding))
                    out.items += block.bindings[position:branch]
                    self._attempt(binding.targets, attempt, block.bindings[branch], around, out)
                    position = branch + 1
                case EndAttempt(failed) if failed in around.outside:
                    around = attrs.evolve(around, catcher=around.outside[failed])
                case EndAttempt():
                    pass
                case Call(Global()) as call if self._returns_data(block, position, around):
                    self._tail_call(call, around, out)
                case _:
                    self._binding(binding, around, out)
        if out.is_open:
            self._end(block.terminator, around, out)
        return out.block()

    def _end(self, terminator: Terminator, around: _Surroundings, out: BlockBuilder) -> None:
        match terminator:
            case Yield(values, span) if around.yields is not None:
                out.terminator = Exit(around.yields, values, span)
            case Exit(label, (value,), span) if around.function is not None and label is around.function_label:
                outcome = around.function.outcome
                assert outcome is not None
                made = out.assign(Construct(outcome, SUCCEEDED, (value,), span), DataType(outcome), "outcome", span)
                out.terminator = Exit(label, (made,), span)
            case _:
                out.terminator = terminator

    def _returns_data(self, block: Block, position: int, around: _Surroundings) -> bool:
        """True if the binding before a position is a call in tail position, of a function that may fail."""
        call, end = block.bindings[position - 1], block.terminator
        if around.function is None or around.catcher is not around.function or position != len(block.bindings):
            return False
        returned = isinstance(end, Exit) and end.label is around.function_label and end.values[0] is call.targets[0]
        assert isinstance(call.value, Call) and isinstance(call.value.function, Global)
        return returned and self.places.may_fail(call.value.function.name)

    def _tail_call(self, call: Call, around: _Surroundings, out: BlockBuilder) -> None:
        """A call whose outcome is that of the function."""
        assert isinstance(call.function, Global) and around.function_label is not None
        function = self._caught_function(call.function.name, call.span)
        type_ = self.caught[call.function.name].result
        outcome = out.assign(Call(function, call.arguments, call.span), type_, "outcome", call.span)
        out.terminator = Exit(around.function_label, (outcome,), call.span)

    def _binding(self, binding: Binding, around: _Surroundings, out: BlockBuilder) -> None:
        value, catcher = binding.value, around.catcher
        match value:
            case Assert(condition, span=span) if catcher is not None:
                place = self.places.number(value)
                if isinstance(condition, Constant) and not condition.value:
                    self._fail(catcher, place, None, span, out)
                    return
                failing = BlockBuilder()
                self._fail(catcher, place, None, span, failing)
                arm = Arm(Block((), Yield((condition,), span)), Block((), Yield((), span)))
                out.perform(If((arm,), failing.block(), span))
            case Print(values=values, fails=True, span=span) if catcher is not None:
                self._fail(catcher, self.places.number(value), values[0] if values else None, span, out)
            case Rethrow(error, span):
                self._rethrow(error, catcher, span, out)
            case CatchesError(error, names, span):
                out.items.append(Binding(binding.targets, self._asked_class(error, names.split(), span, out)))
            case Call(Global(name), arguments, span) if catcher is not None and self.places.may_fail(name):
                function = self._caught_function(name, span)
                outcome = out.assign(Call(function, arguments, span), self.caught[name].result, "outcome", span)
                self._take(binding.targets, outcome, catcher, span, out)
            case _:
                inner = around.of_inner_block()
                out.items.append(Binding(binding.targets, map_blocks(value, lambda b: self.block(b, inner))))

    def _take(
        self, targets: tuple[Var, ...], outcome: Var, catcher: _Catcher, span: Span | None, out: BlockBuilder
    ) -> None:
        """The result that a call has returned; its error goes on to the catcher."""
        result = Var("result", targets[0].type, span)
        error = Var("error", scalar(INT32), span)
        text = Var("text", TEXT_TYPE, span)
        failing = BlockBuilder()
        self._leave(catcher, error, text, span, failing)
        arms = (
            MatchArm(SUCCEEDED, (result,), Block((), Yield((result,), span))),
            MatchArm(FAILED, (error, text) if self.places.have_texts else (error,), failing.block()),
        )
        out.emit(targets, Match(outcome, arms, span))

    # ---- attempts

    def _attempt(
        self, targets: tuple[Var, ...], attempt: Attempt, binding: Binding, around: _Surroundings, out: BlockBuilder
    ) -> None:
        """A body, and what follows an error in it, in two loops that run once."""
        branch = binding.value
        assert isinstance(branch, If)
        failed, error, text = targets
        (arm,) = branch.arms
        whole, errors = LoopLabel("try"), LoopLabel("error")
        outside = {**around.outside, failed: around.catcher}
        body = attrs.evolve(around, catcher=_Catcher(errors), outside=outside, yields=whole)
        self.places.note(error, text, branch.orelse)
        tried = self.block(branch.orelse, body)
        if not _leaves(tried, errors):
            tried = self.block(branch.orelse, attrs.evolve(body, catcher=around.catcher))
            out.emit(binding.targets, Loop(whole, (), (), tried, None, attempt.span))
            return
        handled = self.block(arm.body, attrs.evolve(around, yields=whole))
        inner = Loop(errors, (), (), tried, None, attempt.span)
        found = (error, text) if self.places.have_texts else (error,)
        both = Block((Binding(found, inner), *handled.bindings), handled.terminator)
        out.emit(binding.targets, Loop(whole, (), (), both, None, attempt.span))
        if not _leaves(both, whole):
            out.terminator = Dead()

    def _asked_class(self, error: Atom, names: Sequence[str], span: Span | None, out: BlockBuilder) -> Atom:
        """The atom that tells whether an error is of one of the classes."""
        ranges = self.places.ranges(error, lambda cls: catches(cls, names))
        if ranges is None:
            return Constant(np.array(True), span)

        def bind(operator: str, *operands: Atom) -> Var:
            return out.assign(OpCall(operator, operands, {}, span), scalar(BOOL), "asked", span)

        found: Atom = Constant(np.array(False), span)
        for first, last in ranges:
            inside = bind("greater_equal", error, _number(first, span))
            within = bind("logical_and", inside, bind("less_equal", error, _number(last, span)))
            found = bind("logical_or", found, within)
        return found

    # ---- leaving

    def _fail(self, catcher: _Catcher, number: int, made: Atom | None, span: Span | None, out: BlockBuilder) -> None:
        """Leave for a catcher, with the error of a place, and the text that is made there at run time, if it is."""
        text: Atom = Constant(np.array([], np.int32), span)
        if self.places.have_texts:
            known = np.array([*map(ord, self.places[number].text)], np.int32)
            text = out.assign(Ascribe(made or Constant(known, span), span), TEXT_TYPE, "text", span)
        self._leave(catcher, _number(number, span), text, span, out)

    def _leave(self, catcher: _Catcher, error: Atom, text: Atom, span: Span | None, out: BlockBuilder) -> None:
        values = (error, text) if self.places.have_texts else (error,)
        if catcher.outcome is not None:
            made = Construct(catcher.outcome, FAILED, values, span)
            values = (out.assign(made, DataType(catcher.outcome), "outcome", span),)
        out.terminator = Exit(catcher.label, values, span)

    def _rethrow(self, error: Atom, catcher: _Catcher | None, span: Span | None, out: BlockBuilder) -> None:
        """Let an error go on: to a catcher, or to the end of the program, where its place tells what it says."""
        if not isinstance(error, Var):
            raise InternalError("an error in an atom")
        text = self.places.text(error)
        if catcher is not None:
            self._leave(catcher, error, text, span, out)
            return
        arms: list[Arm] = []
        for number in self.places.possible(error):
            condition = BlockBuilder()
            asked = OpCall("equal", (error, _number(number, span)), {}, span)
            holds = condition.assign(asked, scalar(BOOL), "asked", span)
            arms.append(Arm(condition.block(Yield((holds,), span)), self.places[number].failing(text)))
        if arms:
            last = arms.pop().body
            if arms:
                out.perform(If(tuple(arms), Block((), Yield((), span)), span))
            out.items += last.bindings  # an If of which no arm goes on is none in the structured form
        else:
            out.perform(Assert(Constant(np.array(False), span), "an error", span))
        out.terminator = Dead()


def _number(number: int, span: Span | None) -> Constant:
    return Constant(np.array(number, np.int32), span)


def _is_of(binding: Binding, attempt: Binding) -> bool:
    """True if a binding is the If of an `Attempt`."""
    if not isinstance(binding.value, If) or not binding.value.arms:
        return False
    return attempt.targets[0] in terminator_operands(binding.value.arms[0].condition.terminator)


def _leaves(block: Block, label: LoopLabel) -> bool:
    """True if something in a block leaves the loop of this label."""
    return any(isinstance(b.terminator, Exit) and b.terminator.label is label for b in all_blocks(block))


def _source_name(module: Module, name: str) -> str:
    function = module.functions[name]
    return _source_name(module, function.of) if isinstance(function, Derivative) else name
