"""Unrolling of loops that fill lists: a copy of the body for each iteration.

A loop over known elements that makes lists longer or shorter is elaborated once, as all loops are: its lists grow, have
elements of one type, and their lengths are followed. It is copied, round by round, where that costs little, and where
nothing else has a type:

    few rounds of a small body         rounds * bindings <= FEW_BINDINGS, if each round changes its lists alike
    everything is known before         rounds * bindings <= EVALUATED: this computes, and writes nothing
    each round has its own parameters  `layers[i]` of a tuple or list, so that the copies are as many as the items
    many known numbers, or texts       a loop counts or reads them (`known_sequences.py`), unless that costs little
    the rounds differ in their types   it is elaborated once, that fails, and elaboration starts again with copies
                                       (`Decisions.copied`), of at most MOST_ROUNDS rounds; loops over
                                       `reversed(range(n))` with a known n may differ, too, and loops over a known
                                       range that fill no list, if these are at most MOST_UNROLLED rounds
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FunctionType

import attrs

from relay.errors import RelayError
from relay.ir.definition import Definition
from relay.ir.dims import ANY, Dim
from relay.ir.expr import (
    Atom,
    Block,
    Constant,
    Dead,
    Exit,
    Expr,
    Global,
    If,
    Lambda,
    Loop,
    MakeTuple,
    Next,
    OpCall,
    Project,
    Static,
    Var,
    Yield,
)
from relay.ir.intrinsic import Intrinsic
from relay.ir.sizes.facts import mentions_made
from relay.ir.surface import Annotated, Apply, Attribute, ForEach, Index, PatternMatch, Unpack
from relay.ir.traverse import all_blocks, blocks, operands
from relay.ir.types import TupleType, prune
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    Context,
    DependsOnPoison,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Number,
    PythonObject,
    Range,
    Tuple,
    Zip,
    dim_of,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow.trip_counts import may_run_backward, parts
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.expressions.atoms import atom_entity, handed_entities
from relay.typecheck.elaboration.library import undecorated
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.relations import steps
from relay.typecheck.unification import is_known

FEW_BINDINGS = 64
"""The largest number of bindings in copies of a loop's body that need not be copied."""

EVALUATED = 4096
"""The same of bodies of which everything is known at compile time."""

MOST_ROUNDS = 256
"""Of how many rounds a loop is copied whose rounds differ in their types; in nested loops, MOST_COPIES."""

MOST_UNROLLED = 64
"""The same of a loop that fills no list: its rounds have variables of other types, or read items of other types."""

MOST_COPIES = 1024

_RESIZING = ("append", "spread", "insert", "pop", "__next__", "clear", "remove", "update")
_NUMBERS = (builtins.abs, builtins.min, builtins.max, builtins.int, builtins.float, builtins.bool, builtins.round)
_COMPUTING = (*_NUMBERS, builtins.len, builtins.range, builtins.divmod, builtins.pow, *vars(math).values())

HUGE = 10**6
"""A weight that is not counted further."""

DEEPEST = 40
"""Through how many calls a weight is counted."""


def is_copied(checker: Checker, context: Context, node: ForEach, iterable: AbstractValue) -> bool:
    """True if a loop that changes lists, or goes through numbers backwards, gets a copy of its body for each round."""
    must = node.label in checker.decisions.copied
    if not node.resized and not (isinstance(iterable, Range) and iterable.reversed):
        has_numbers = any(isinstance(part, Range) for part in parts(iterable))
        count = count_of(checker, iterable, ask=must) if has_numbers else None
        if count is None or not 0 < count <= MOST_UNROLLED or count * checker.frame.copies > MOST_COPIES:
            return False
        checker.unrollable.add(node.label)
        return must
    rounds = count_of(checker, iterable, ask=must)
    if rounds is None:
        if not must and _is_symbolic(iterable):
            checker.uncopied.add(node.label)
        return False
    copies = rounds * checker.frame.copies
    possible = rounds <= MOST_ROUNDS and copies <= MOST_COPIES
    if must or not possible:
        return possible
    if not node.resized:
        checker.uncopied.add(node.label)
        return False
    flow = StaticFlow(context, node, iterable)
    if flow.chooses:
        return True
    bindings = copies * (weight(checker, context, node.body) + _weight_of_element(iterable))
    if flow.regular and bindings <= (EVALUATED if flow.everything_known else FEW_BINDINGS):
        return True
    checker.uncopied.add(node.label)
    return False


@contextmanager
def uncopied_body(checker: Checker, node: ForEach) -> Iterator[None]:
    """While the body of a loop is elaborated that might be copied: mistakes in it may come from that it is not."""
    if node.label not in checker.uncopied and node.label not in checker.unrollable:
        yield
        return
    with checker.at_frame(attrs.evolve(checker.frame, filling=(*checker.frame.filling, node.label))):
        yield


def rounds(checker: Checker, count: int) -> AbstractContextManager[None]:
    """While this many copies of a body are elaborated."""
    return checker.at_frame(attrs.evolve(checker.frame, copies=checker.frame.copies * max(1, count)))


def count_of(checker: Checker, entity: AbstractValue, *, ask: bool = True) -> int | None:
    """The largest number of elements of a `for`; None if it is not known. `ask`: a symbolic size becomes the number
    that it is in the call at hand."""
    counts: list[int] = []
    for part in parts(entity):
        match part:
            case Range(Number() as start, Number() as stop, step):
                first, last = dim_of(start), dim_of(stop)
                if ask or (isinstance(first, int) and isinstance(last, int)):
                    counts.append(len(range(int(start.specialize()), int(stop.specialize()), step)))
                else:
                    return None
            case _ if (dim := _extent(part)) is not None:
                number = dim if isinstance(dim, int) else checker.hints.number(dim) if ask else None
                if number is not None:
                    counts.append(number)
                elif not ask:
                    return None
    return min(counts, default=None)


def rounds_of(iterable: AbstractValue) -> Dim | None:
    """The number of rounds as a dim, if it is known."""
    found: list[Dim] = []
    for part in parts(iterable):
        match part:
            case Range(Number() as start, Number() as stop, step):
                first, last = dim_of(start), dim_of(stop)
                if first is None or last is None or may_run_backward(start, stop):
                    return None
                found.append(steps(first, last, step))
            case Range(_, PythonObject(None), _):
                pass
            case _:
                dim = _extent(part)
                if dim is None or dim is ANY or mentions_made(dim):
                    return None
                found.append(dim)
    numbers = [d for d in found if isinstance(d, int)]
    if found and len(numbers) == len(found):
        return min(numbers)
    return found[0] if found and all(d == found[0] for d in found) else None


def _extent(part: AbstractValue) -> Dim | None:
    match part:
        case Tuple(items):
            return len(items)
        case PythonObject(str() as text):
            return len(text)
        case DynamicValue(_, type_) if isinstance(known := prune(type_), TupleType):
            return len(known.items)
        case DynamicValue() if dynamic_lists.is_growing(part):
            return part.length.absolute if part.length is not None else None
        case DynamicValue():
            tensor = tensor_type(part)
            return tensor.shape[0] if tensor is not None and is_known(tensor.shape) and tensor.shape else None
        case _:
            return None


def _is_symbolic(iterable: AbstractValue) -> bool:
    """True if the number of rounds is a size of an argument."""
    return any(isinstance(p, Range) or not isinstance(_extent(p), int | None) for p in parts(iterable))


# ---- costs


def weight(checker: Checker, context: Context, block: Block, depth: int = 0) -> int:
    """The number of bindings in a block, with those of the functions that it calls."""
    total = 0
    for inside in all_blocks(block):
        for binding in inside.bindings:
            match binding.value:
                case Var() | Constant() | Static() | Global() | Attribute() | Annotated() | Project() | Unpack():
                    pass
                case Apply(function):
                    total += 1 + _weight_of_call(checker, context, function, depth)
                case _:
                    total += 1
    return min(total, HUGE)


def _weight_of_element(iterable: AbstractValue) -> int:
    """The number of bindings that take an element, and put the parts of its replacement together again."""
    return 2 * sum(isinstance(p, DynamicValue) for p in parts(iterable))


def _weight_of_call(checker: Checker, context: Context, function: Atom, depth: int) -> int:
    entity, times = _meaning(context, function), 1
    while isinstance(entity, DerivativeFunction):
        entity, times = entity.of, 3 * times
    if depth > DEEPEST:
        return 0
    if isinstance(entity, LocalFunction):
        code, inner = entity.function, entity.context
    else:
        try:
            definition = _definition_of(entity)
            if definition is None:
                return 0
            code, inner = definition.function, Context({}, {}, definition.scope)
        except RelayError:  # which is reported where it is called
            return 0
    if code not in checker.module.weights:
        checker.module.weights[code] = 0  # of what calls itself
        checker.module.weights[code] = weight(checker, inner, code.body, depth + 1)
    return min(times * checker.module.weights[code], HUGE)


def _definition_of(entity: AbstractValue | None) -> Definition | None:
    """That of a global function, decorated or plain, which is read as if it were decorated."""
    if isinstance(entity, GlobalFunction):
        return entity.definition
    function = entity.value if isinstance(entity, PythonObject) else None
    if not isinstance(function, FunctionType) or hasattr(function, "__relay__") or not undecorated.is_read(function):
        return None
    return undecorated.definition(function)


def _meaning(context: Context, atom: Atom) -> AbstractValue | None:
    """The meaning of a surface atom, or None: inside of the loop's body it is not known yet."""
    if isinstance(atom, Var):
        around: Context | None = context
        while around is not None and atom not in around.environment:
            around = around.outer
        return None if around is None else around.environment[atom]
    try:
        return atom_entity(context, atom)
    except (RelayError, DependsOnPoison):
        return None


class StaticFlow:
    """The parts of a loop's body that are static if the number of the round is. `regular`: so is which list changes
    a round makes. `everything_known`: so is all of it. `chooses`: it is the index of an item of a structure."""

    def __init__(self, context: Context, node: ForEach, iterable: AbstractValue) -> None:
        self.context = context
        self.regular = True
        self.chooses = False
        self._known: set[Var] = set()
        self._rows: dict[Var, list[bool]] = {}  # of elements of zips: which of their parts are known
        if isinstance(iterable, Zip):
            self._rows[node.element] = [_is_known(p) for p in iterable.items]
        if _is_known(iterable):
            self._known.add(node.element)
        entities = handed_entities(context, node.initial)
        self._known.update(p for p, e in zip(node.parameters, entities, strict=True) if _is_known(e))
        self.everything_known = self._block(node.body, True)

    def is_known(self, atom: Atom) -> bool:
        """True if an atom of the body is static."""
        if isinstance(atom, Var) and atom in self._known:
            return True
        entity = _meaning(self.context, atom)
        return entity is not None and _is_known(entity)

    def _block(self, block: Block, certain: bool) -> bool:
        """True if everything in a block is known, and its results too. `certain`: it is known whether it runs."""
        everything = True
        for binding in block.bindings:
            known = self._binding(binding.targets, binding.value)
            if known:
                self._known.update(binding.targets)
            everything = everything and known
        match block.terminator:
            case Next(_, values) | Exit(_, values):
                self.regular = self.regular and certain
            case Yield(values):
                pass
            case Dead():
                values = ()
        return everything and all(map(self.is_known, values))

    def _binding(self, targets: tuple[Var, ...], value: Expr) -> bool:
        match value:
            case Apply(Static(Intrinsic()), arguments, keywords):
                return all(map(self.is_known, (*arguments, *(v for _, v in keywords))))
            case Apply(function, arguments, keywords):
                callee = _meaning(self.context, function)
                computes = isinstance(callee, PythonObject) and any(callee.value is f for f in _COMPUTING)
                return computes and all(map(self.is_known, (*arguments, *(v for _, v in keywords))))
            case Unpack(Var() as whole) if whole in self._rows and len(targets) == len(self._rows[whole]):
                self._known.update(t for t, known in zip(targets, self._rows[whole], strict=True) if known)
                return all(self._rows[whole])
            case If(arms, orelse):
                return self._if([(arm.condition, arm.body) for arm in arms], orelse)
            case ForEach(_, element, iterable, parameters, initial, body):
                if self.is_known(iterable):
                    self._known.add(element)
                self._known.update(p for p, i in zip(parameters, initial, strict=True) if self.is_known(i))
                return self._block(body, True) and self.is_known(iterable)
            case Loop() | PatternMatch() | Lambda():
                if any(map(_resizes, blocks(value))):
                    self.regular = False
                return False
            case Index(whole, (Var() as position,)) if self.is_known(position) and self._is_structure(whole):
                self.chooses = True
                return False
            case OpCall() | MakeTuple() | Index() | Project() | Unpack() | Attribute() | Var() | Constant() | Static():
                return all(map(self.is_known, operands(value)))
            case _:
                return False

    def _is_structure(self, atom: Atom) -> bool:
        entity = _meaning(self.context, atom)
        return isinstance(entity, Tuple) and not _is_known(entity)

    def _if(self, arms: list[tuple[Block, Block]], orelse: Block) -> bool:
        certain = everything = True
        for condition, body in (*arms, (None, orelse)):
            if condition is not None:
                certain = self._block(condition, certain) and certain
            everything = self._block(body, certain) and everything
            if not certain and _resizes(body):
                self.regular = False
        return everything and certain


def _is_known(entity: AbstractValue) -> bool:
    """True if an entity is known at compile time."""
    match entity:
        case Number() | PythonObject():
            return True
        case Range(start, stop):
            return _is_known(start) and _is_known(stop)
        case Tuple(items) | Zip(items):
            return len(items) <= MOST_ROUNDS and all(map(_is_known, items))
        case _:
            return isinstance(entity, FUNCTIONS) or is_constant_bool(entity) is not None


def _resizes(block: Block) -> bool:
    """True if a block changes lists."""
    for inside in all_blocks(block):
        for binding in inside.bindings:
            match binding.value:
                case Apply(Static(Intrinsic(name))) if name in _RESIZING:
                    return True
    return False
