"""Functions that are built value by value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relay.errors import CompileError, InternalError, TypeMismatch
from relay.errors.raised import asserted_message
from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    Block,
    Call,
    Counter,
    Dead,
    Derivative,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    Module,
    Next,
    Print,
    Terminator,
    Var,
    Yield,
)
from relay.ir.types import BOOL, INT32, BaseType, TensorType, Type, base_of_dtype, scalar, show
from relay.ir.validation.check import check
from relay.operator import Emitter, Value
from relay.text.type_parser import parse_type

_Bodies = Callable[..., "Value | Sequence[Value]"]


class FunctionBuilder:
    """A function that is being built. Values are of this builder only; what is computed inside of a block of control
    flow may be used there only.

    Methods raise TypeMismatch for values and types that do not fit.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._emitter = Emitter()
        self._parameters: list[Var] = []
        self._called: dict[str, Function | Derivative] = {}

    # ---- what a function is made of

    def parameter(self, name: str, type_: Type | str) -> Value:
        """A parameter, of a type or the text of one: `Tensor[float32, (3,)]`."""
        found = parse_type(type_, f"<the type of {name}>") if isinstance(type_, str) else type_
        variable = Var(name, found)
        self._parameters.append(variable)
        return self._emitter.value(variable)

    def constant(self, value: Any, dtype: BaseType | str | None = None) -> Value:
        """A number or array; Python's numbers are of float32 or int32 unless a dtype is given."""
        array = np.asarray(value)
        if dtype is None and not isinstance(value, np.ndarray | np.generic):
            dtype = {"f": "float32", "i": "int32"}.get(array.dtype.kind)
        base = dtype if isinstance(dtype, BaseType) else base_of_dtype(np.dtype(dtype or array.dtype))
        if base is None:
            raise TypeMismatch(f"there are no constants of {array.dtype}: {value!r}")
        return self._emitter.constant(array, base)

    def call(self, function: Module, *arguments: Value | float) -> Value:
        """A call of the entry of a finished module, which becomes part of this one. Raises CompileError where two
        modules have different functions of one name, or data types."""
        if function.data or function.where:
            raise CompileError(f"{function.entry} has data types or assumes sizes; such modules are not called")
        for name, other in function.functions.items():
            if self._called.setdefault(name, other) is not other or name == self.name:
                raise CompileError(f"two functions are named {name}")
        type_ = function.functions[function.entry].type
        if len(arguments) != len(type_.parameters):
            raise TypeMismatch(f"{function.entry} takes {len(type_.parameters)} arguments, found {len(arguments)}")
        atoms = []
        for position, (argument, wanted) in enumerate(zip(arguments, type_.parameters, strict=True)):
            value = self._value(argument, wanted)
            if value.type != wanted:
                raise TypeMismatch(
                    f"argument {position + 1} of {function.entry} must be {show(wanted)}, found {show(value.type)}"
                )
            atoms.append(value.atom)
        return self._emitter.bind(Call(Global(function.entry, type_), tuple(atoms)), type_.result)

    def pack(self, *values: Value) -> Value:
        """Several values as one, which unpacks: `a, b = t`."""
        return self._emitter.tuple(values)

    def expression(self, value: Expr, *types: Type) -> tuple[Value, ...]:
        """The results of any expression of the representation, of these types."""
        targets = tuple(Var("t", t) for t in types)
        self._emitter.emit(targets, value)
        return tuple(self._emitter.value(t) for t in targets)

    def check(self, condition: Value, message: str) -> None:
        """Stop the program with an ExecutionError unless a rank-0 bool holds."""
        self._emitter.perform(Assert(self._condition(condition), asserted_message(message)))

    def print(self, *parts: Value | str) -> None:
        """Print texts and values, with spaces between them."""
        pieces, values = [""], []
        for position, part in enumerate(parts):
            pieces[-1] += " " * (position > 0)
            if isinstance(part, str):
                pieces[-1] += part
            else:
                values.append(part.atom)
                pieces.append("")
        pieces[-1] += "\n"
        self._emitter.perform(Print(tuple(pieces), tuple(values), ("",) * len(values)))

    # ---- control flow

    def branch(self, condition: Value, then: _Bodies, orelse: _Bodies) -> Any:
        """The value that `then()` builds if the condition holds, and otherwise the one of `orelse()`; a tuple where
        they return several."""
        test = Block((), Yield((self._condition(condition),)))
        whole, several, types = self._block(then)
        other, _, found = self._block(orelse)
        if types != found:
            raise TypeMismatch(
                f"the arms have different types: {', '.join(map(show, types))} and {', '.join(map(show, found))}"
            )
        return self._results(If((Arm(test, whole),), other), types, several)

    def loop(self, count: Value | int, initial: Value | Sequence[Value], body: _Bodies) -> Any:
        """The state after `count` rounds: `body(i, *state)` builds a round, which returns the next state."""
        state, several = _states(initial)
        counted = self._value(count, scalar(INT32))
        if not isinstance(counted.type, TensorType) or counted.type.rank or counted.base != INT32:
            raise TypeMismatch(f"the count of a loop must be Tensor[int32, ()], found {show(counted.type)}")
        label, index = LoopLabel("loop"), Var("i", scalar(INT32))
        parameters = _parameters(state)
        inside = [self._emitter.value(p) for p in (index, *parameters)]
        types = [v.type for v in state]
        whole, _, found = self._block(lambda: body(*inside), lambda atoms: Next(label, atoms))
        _check_state(types, found)
        initials = tuple(v.atom for v in state)
        loop = Loop(label, parameters, initials, whole, Counter(index, counted.atom))
        return self._results(loop, types, several)

    def while_loop(self, condition: Callable[..., Value], initial: Value | Sequence[Value], body: _Bodies) -> Any:
        """The state when `condition(*state)` does not hold any more; `body(*state)` builds a round."""
        state, several = _states(initial)
        label, parameters = LoopLabel("loop"), _parameters(state)
        inside = [self._emitter.value(p) for p in parameters]
        types = [v.type for v in state]
        test, _, (found,) = self._block(lambda: condition(*inside))
        if found != scalar(BOOL):
            raise TypeMismatch(f"a condition must be Tensor[bool, ()], found {show(found)}")
        whole, _, after = self._block(lambda: body(*inside), lambda atoms: Next(label, atoms))
        _check_state(types, after)
        choice = If((Arm(test, whole),), Block((), Exit(label, parameters)))
        rounds = self._collect(lambda: self._emitter.perform(choice))
        loop = Loop(label, parameters, tuple(v.atom for v in state), Block(rounds, Dead()))
        return self._results(loop, types, several)

    # ---- the finished function

    def module(self, result: Value | Sequence[Value]) -> Module:
        """The finished program: a function that returns the result, a tuple of several. Raises CompileError where a
        value is used outside of the block that it is computed in, or belongs to another builder."""
        if not isinstance(result, Value):
            result = self.pack(*result)
        label = LoopLabel(self.name)
        body = Block(self._emitter.all_bindings(), Exit(label, (result.atom,)))
        function = Function(self.name, tuple(self._parameters), body, label, result.type)
        module = Module({self.name: function, **self._called}, self.name)
        try:
            check(module)
        except InternalError as error:
            raise CompileError(f"the function {self.name} is not well formed: {error.message}") from None
        return module

    # ---- inside

    def _value(self, given: Any, type_: Type) -> Value:
        if isinstance(given, Value):
            return given
        base = type_.base if isinstance(type_, TensorType) else None
        return self.constant(given, base if isinstance(base, BaseType) else None)

    def _condition(self, condition: Value) -> Atom:
        if condition.type != scalar(BOOL):
            raise TypeMismatch(f"a condition must be Tensor[bool, ()], found {show(condition.type)}")
        return condition.atom

    def _collect(self, write: Callable[[], object]) -> tuple[Any, ...]:
        """The bindings that a function writes, as those of a block of its own."""
        around, self._emitter.items = self._emitter.items, []
        try:
            write()
            return self._emitter.all_bindings()
        finally:
            self._emitter.items = around

    def _block(
        self, body: _Bodies, end: Callable[[tuple[Atom, ...]], Terminator] = Yield
    ) -> tuple[Block, bool, list[Type]]:
        """The block that a function builds, if it returns several values, and their types."""
        found: list[Value] = []
        several = False

        def write() -> None:
            nonlocal several
            made = body()
            several = not isinstance(made, Value)
            found.extend([made] if isinstance(made, Value) else made)

        bindings = self._collect(write)
        return Block(bindings, end(tuple(v.atom for v in found))), several, [v.type for v in found]

    def _results(self, value: Expr, types: Sequence[Type], several: bool) -> Any:
        made = self.expression(value, *types)
        return made if several else made[0]


def _states(initial: Value | Sequence[Value]) -> tuple[list[Value], bool]:
    return ([initial], False) if isinstance(initial, Value) else (list(initial), True)


def _parameters(state: Sequence[Value]) -> tuple[Var, ...]:
    return tuple(Var(v.atom.name if isinstance(v.atom, Var) else "state", v.type) for v in state)


def _check_state(wanted: Sequence[Type], found: Sequence[Type]) -> None:
    if list(wanted) != list(found):
        one, other = (", ".join(map(show, types)) for types in (wanted, found))
        raise TypeMismatch(f"the state of a loop keeps its types: it begins with {one}, and a round returns {other}")
