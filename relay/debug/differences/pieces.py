"""Pieces of programs that can be run by themselves: the beginning of a block, for values that its variables once had.

A block is reached by a `Way`: its variables have the values that they had when the program came there. What is bound in
the block up to some place is a program with these as parameters.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import numpy as np

from relay.debug.differences.outcomes import FAILURES, Outcome, copy_values, interpreted_outcome
from relay.eval.frames import Activation, Frame
from relay.eval.interpreter import Machine, accept
from relay.eval.sizes import sizes_of
from relay.eval.tape import unbox
from relay.eval.values import Closure
from relay.ir.dims import TypeId
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Construct,
    Exit,
    Expr,
    Function,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Module,
    Next,
    Project,
    RefNew,
    StackNew,
    Var,
)
from relay.ir.rebuild import copy_function
from relay.ir.sizes.data_dependent import made_in_type
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.traverse import all_blocks, blocks, free_variables
from relay.ir.types import BOOL, DataType, RefType, StackType, TensorType, TupleType, Type, prune
from relay.transform.analysis.graph import call_graph, reachable_functions
from relay.transform.core.rebuilding import with_functions

PIECE = "piece"
"""The name of the entry of a piece."""


@attrs.frozen(eq=False)
class Piece:
    """A program and what it is run on."""

    module: Module
    arguments: Sequence[object]

    def fresh_module(self) -> Module:
        """The module, in which no variable is one of another module's."""
        main = self.module.main
        return with_functions(self.module, {**self.module.functions, main.name: copy_function(main)})

    def reference(self) -> Outcome:
        """The interpreter's outcome."""
        return interpreted_outcome(self.module, self.arguments)


@attrs.frozen(eq=False)
class Way:
    """The way by which the run of a program came to a block: the values of the variables that the block does not
    bind, and in words the rounds and calls that led there. `function` is the one that the block belongs to."""

    function: str
    block: Block
    values: Mapping[Var, object]
    words: tuple[str, ...] = ()


def piece_of(
    module: Module,
    sizes: Mapping[TypeId, int],
    values: Mapping[Var, object],
    bindings: Sequence[Binding],
    results: Sequence[Var],
) -> Piece:
    """The program of some bindings that gives some of the variables, as a tuple if there are several. `values` are
    those of the variables that it uses and does not bind."""
    label, span = LoopLabel(PIECE), bindings[-1].value.span if bindings else None
    if len(results) == 1:
        result, made = results[0], tuple(bindings)
    else:
        result = Var("results", TupleType(tuple(v.type for v in results if v.type is not None)))
        made = (*bindings, Binding((result,), MakeTuple(tuple(results), span)))
    body = Block(made, Exit(label, (result,)))
    parameters = list(free_variables(body))
    arguments = [values[v] for v in parameters]
    function = Function(PIECE, tuple(parameters), body, label, result.type, span=span)
    whole = Module({**module.functions, PIECE: function}, PIECE, module.data, module.where)
    needed = reachable_functions(whole, call_graph(whole))
    whole = with_functions(whole, {n: f for n, f in whole.functions.items() if n in needed})
    hidden = [dim for dim in sizes if dim not in symbolic_dims(whole)]
    if hidden:  # a parameter shows them
        shown = [Var(dim.name, TensorType(BOOL, (dim,))) for dim in hidden]
        function = Function(PIECE, (*parameters, *shown), body, label, result.type, span=span)
        whole = with_functions(whole, {**whole.functions, PIECE: function})
        arguments += [np.zeros(sizes[dim], np.bool_) for dim in hidden]
    return Piece(whole, arguments)


def may_pass(type_: Type | None) -> bool:
    """True if values of a type can be arguments and results of a piece."""
    pending, seen = [type_], set[object]()
    while pending:
        current = pending.pop()
        match None if current is None else prune(current):
            case TensorType() as tensor:
                if any(True for _ in made_in_type(tensor)):
                    return False
            case TupleType(items):
                pending += items
            case RefType(inner) | StackType(inner):
                pending.append(inner)
            case DataType(definition):
                if definition not in seen:
                    seen.add(definition)
                    pending += (field for c in definition.constructors for field in c.fields)
            case _:  # functions
                return False
    return True


def has_cells(type_: Type | None) -> bool:
    """True if values of a type can be written into."""
    pending, seen = [type_], set[object]()
    while pending:
        current = pending.pop()
        match None if current is None else prune(current):
            case RefType() | StackType():
                return True
            case TupleType(items):
                pending += items
            case DataType(definition):
                if definition not in seen:
                    seen.add(definition)
                    pending += (field for c in definition.constructors for field in c.fields)
            case _:
                pass
    return False


def leaves_block(value: Expr) -> bool:
    """True if a binding may leave its own block."""
    own: set[LoopLabel] = set()
    ends = []
    for block in (inner for b in blocks(value) for inner in all_blocks(b)):
        ends.append(block.terminator)
        for binding in block.bindings:
            match binding.value:
                case Loop(label):
                    own.add(label)
                case Lambda(function):
                    own.add(function.label)
    match value:
        case Loop(label):
            own.add(label)
        case Lambda(function):
            own.add(function.label)
    return any(isinstance(end, Next | Exit) and end.label not in own for end in ends)


def straight_part(block: Block) -> tuple[Binding, ...]:
    """The bindings at the beginning of a block that can be run by themselves."""
    return tuple(itertools.takewhile(lambda b: not leaves_block(b.value), block.bindings))


def is_copy(value: Expr) -> bool:
    """True if a binding computes nothing: it moves values, or combines them."""
    return isinstance(value, Atom | MakeTuple | Project | Construct | RefNew | StackNew | Lambda)


# ---- looking into a run


def values_in(piece: Piece) -> dict[Var, object]:
    """The first value of each variable of the entry of a piece, its inner blocks included. Empty if it fails."""
    found: dict[Var, object] = {}
    depth = 0

    class Environment(dict[Var, object]):
        def __setitem__(self, key: Var, value: object) -> None:
            super().__setitem__(key, value)
            found.setdefault(key, value)

        def update(self, changes: object = (), /, **_: object) -> None:
            for key, value in dict(changes).items():  # type: ignore[call-overload]
                self[key] = value

    def environment(variables: Mapping[Var, object]) -> dict[Var, object]:
        nonlocal depth
        depth += 1
        return Environment(variables) if depth == 1 else dict(variables)

    machine = _machine(piece)
    machine.environment = environment
    try:
        with np.errstate(all="ignore"):
            machine.enter(
                Closure(piece.module.main, {}, piece.module), accept(piece.module.main, copy_values(piece.arguments))
            )
            while machine.frames:
                machine.step()
    except Exception:  # of a program that is not a whole one: what it has computed so far
        pass
    return {var: unbox(value) for var, value in found.items()}


def ways_into(piece: Piece, inner: Iterable[Block], function: str, words: Sequence[str], most: int) -> Iterator[Way]:
    """The ways into some blocks of the entry of a piece, in the order of its run: this many of the first ones, and
    as many of the last."""
    wanted = {id(block): (block, tuple(free_variables(block))) for block in inner}
    wanted = {key: found for key, found in wanted.items() if all(may_pass(v.type) for v in found[1])}
    rounds: dict[int, int] = {}
    last: deque[Way] = deque(maxlen=most)
    machine = _machine(piece)
    count = 0
    try:
        with np.errstate(all="ignore"):
            machine.enter(
                Closure(piece.module.main, {}, piece.module), accept(piece.module.main, copy_values(piece.arguments))
            )
            while machine.frames:
                frame = machine.frames[0]
                if len(machine.frames) == 1 and isinstance(frame, Frame):
                    activation = frame.activations[-1]
                    key = id(activation.block)
                    if activation.position == 0 and key in wanted:
                        block, free = wanted[key]
                        rounds[key] = rounds.get(key, 0) + 1
                        if all(v in frame.environment for v in free):
                            way = Way(
                                function,
                                block,
                                _variable_values(frame, free),
                                _way_words(words, activation, rounds[key]),
                            )
                            count += 1
                            if count <= most:
                                yield way
                            else:
                                last.append(way)
                machine.step()
    except FAILURES:
        pass  # of a program that is not a whole one
    yield from last


def _variable_values(frame: Frame, variables: Sequence[Var]) -> dict[Var, object]:
    """The values of some variables of a frame, which nothing changes later."""
    values = copy_values([unbox(frame.environment[v]) for v in variables])
    return dict(zip(variables, values, strict=True))


def _way_words(words: Sequence[str], activation: Activation, number: int) -> tuple[str, ...]:
    """The words of a way into a block, with the round if it is that of a loop."""
    if activation.label is None:
        return tuple(words)
    span = None if activation.owner is None else activation.owner.value.span
    return (*words, f"round {number} of the loop" + ("" if span is None else f" at line {span.line}"))


def _machine(piece: Piece) -> Machine:
    main = piece.module.main
    return Machine(sizes=sizes_of(piece.module, main, accept(main, copy_values(piece.arguments))))
