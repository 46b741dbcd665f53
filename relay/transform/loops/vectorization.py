"""Loop vectorization: a counted loop whose rounds are independent becomes calls on all rounds at once.

    loop for i < n (out = zeros(n)) { x = index(xs, i); y = tanh(x); out' = index_update(out, i, y); next out' }

    out' = tanh(xs)

A loop is vectorized if each round writes one row of its arrays, the one at the counter, reads no other of them, and has
no effect but assertions. Its body is evaluated once, for all rounds: what does not depend on the round stays as it is,
calls of operators become one call by their batching rules (`relay/operator/batching`), loops inside that all rounds run
equally often stay loops, with rows of all rounds as their parameters, and so do branches that all rounds take alike.
Where rounds take different branches, and these are cheap, both are computed and a `where` chooses; what is read at an
index only under a condition is read at index 0 where that does not hold. Assertions hold if they do in all rounds.

Where a body has something else, or arrays of all rounds would be too large, the loop stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import attrs

from relay.errors import CompileError, RelayError, Span
from relay.ir.dims import Dim
from relay.ir.expr import (
    Binding,
    Block,
    Call,
    Derivative,
    Expr,
    Function,
    Global,
    Loop,
    Module,
    Next,
    OpCall,
    Var,
)
from relay.ir.rebuild import map_blocks, rebind, rebuild_block
from relay.ir.sizes.data_dependent import bound_dims
from relay.ir.traverse import walk
from relay.operator import Undetermined
from relay.transform.aggregates.sums import flatten_sums_within
from relay.transform.analysis.lanes import BATCHED, NoLanes, lane_loop, prefers_lanes
from relay.transform.analysis.loop_analysis import likely, runs_all, with_body_block
from relay.transform.core.rebuilding import map_bodies, with_functions
from relay.transform.loops.batched_derivatives import BatchedDerivatives
from relay.transform.loops.carried_rows import exchanged_loops, with_carried_rows, with_one_end
from relay.transform.loops.collected_reductions import collected_reductions
from relay.transform.loops.compaction import CompactedRounds, runs_active
from relay.transform.loops.failures import has_failures, with_assertions
from relay.transform.loops.partition import finds_places
from relay.transform.loops.recomputation import is_round
from relay.transform.loops.rounds import Limits, Unsupported
from relay.transform.module_pass import pass_about

MAX_SIZE = 1 << 26
"""The most bytes that an array of all rounds may have."""

FEWEST_TERMS = 32
"""The rounds of a loop that adds up numbers from which on its terms are computed at once: fewer are often unrolled."""


@pass_about(Loop)
def vectorize_loops(module: Module, will_be_differentiated: bool = False, max_size: int = MAX_SIZE) -> Module:
    """The module with loops of independent rounds computed for all rounds at once, where arrays of all rounds have at
    most `max_size` bytes.

    Both arms of a cheap branch are computed where rounds differ. If a derivative follows, `will_be_differentiated`,
    none comes out of the arm that is not taken, where it may not be finite.
    """
    pending = any(isinstance(f, Derivative) for f in module.functions.values())
    shielded = will_be_differentiated and pending
    derivatives = BatchedDerivatives(module, _examples_together(max_size)) if will_be_differentiated else None

    def change(function: Function) -> Block:
        return _block(function.body, Limits(function.body, True, max_size, pending, derivatives, shielded))

    made = map_bodies(module, change)
    if derivatives is None or not derivatives.made:
        return made
    return with_functions(made, {**made.functions, **derivatives.made})


def _examples_together(max_size: int) -> Callable[[Loop, Var, Block], Block]:
    """The evaluation of a loop over the examples of a function that will be differentiated, whose results are those of
    a block that is around it."""

    def vectorized(loop: Loop, results: Var, around: Block) -> Block:
        whole = Block((*around.bindings, Binding((results,), loop)), around.terminator)
        limits = Limits(whole, False, max_size, is_early=True)
        plain = _plain_loop(whole.bindings[-1])
        if _runs_in_lanes(plain, limits):
            raise Unsupported("its derivative runs in lanes")
        outer = map_blocks(plain, lambda block: _block(block, limits))
        assert isinstance(outer, Loop)
        return Block((*around.bindings, *_vectorized_bindings(outer, (results,), limits)), around.terminator)

    return vectorized


@attrs.frozen
class Choice:
    """The choice for a loop of independent rounds, or for a branch or loop inside of it: a text, and the place in the
    source."""

    text: str
    span: Span | None


def choices_of(module: Module, will_be_differentiated: bool = False) -> list[Choice]:
    """The choices of `vectorize_loops` for the loops of a module, in the order of the source."""
    found: list[Choice] = []
    for loop in _remaining_loops(module, will_be_differentiated, found):
        found.append(
            Choice(f"the loop {loop.name} {f'stays: {loop.reason}' if loop.reason else 'runs in lanes'}", loop.span)
        )
    return sorted(dict.fromkeys(found), key=lambda choice: choice.span.line if choice.span is not None else 0)


@attrs.frozen
class RemainingLoop:
    """A loop that is not computed for all rounds at once: its name, where it is in the source, and why. Without a
    reason it is one whose rounds run in lanes."""

    name: str
    reason: str | None
    span: Span | None


def remaining_loops(module: Module) -> list[RemainingLoop]:
    """The loops of a structured module that `vectorize_loops` leaves, in order."""
    return _remaining_loops(module, True, [])


def _remaining_loops(module: Module, will_be_differentiated: bool, notes: list[Choice]) -> list[RemainingLoop]:
    """The same; what else is chosen goes to `notes`."""
    found: list[RemainingLoop] = []
    pending = any(isinstance(function, Derivative) for function in module.functions.values())
    shielded = will_be_differentiated and pending
    derivatives = BatchedDerivatives(module, _examples_together(MAX_SIZE)) if will_be_differentiated else None
    rounds = {name for name, f in module.functions.items() if isinstance(f, Function) and is_round(f)}
    for name, function in module.functions.items():
        if isinstance(function, Function) and name not in rounds:
            limits = Limits(function.body, True, MAX_SIZE, pending, derivatives, shielded)
            made = _block(function.body, limits)
            left = {b.value.label for b in walk(made) if isinstance(b.value, Loop)}
            notes += [Choice(text, span) for span, text in limits.notes]
            found += [RemainingLoop(loop.label.name, None, loop.span) for loop in limits.in_lanes]
            found += [
                RemainingLoop(o.label.name, None if _calls(o, rounds) else reason, o.span)
                for o, reason in limits.remaining
                if o.label in left and not finds_places(o) and not runs_active(o)
            ]
    return found


def _calls(loop: Loop, names: Set[str]) -> bool:
    """True if a loop calls one of some functions."""
    calls = [b.value for b in loop.body.bindings if isinstance(b.value, Call)]
    return any(isinstance(call.function, Global) and call.function.name in names for call in calls)


def _block(block: Block, limits: Limits) -> Block:
    bindings: list[Binding] = []
    for binding in block.bindings:
        if isinstance(binding.value, Loop) and _runs_in_lanes(binding.value, limits):
            bindings.append(binding)
            continue
        noted = len(limits.notes)
        value: Expr = map_blocks(binding.value, lambda inner: _block(inner, limits))
        if isinstance(value, Loop):
            value = with_one_end(value)
            try:
                bindings += _vectorized_bindings(value, binding.targets, limits)
                continue
            except Unsupported as error:
                made = _alternative_bindings(value, binding.targets, limits)
                made = made or _exchanged(binding, limits)
                if made is None and len(limits.notes) > noted:
                    made = _batched_outside(binding, limits)
                if made is not None:
                    bindings += made
                    continue
                _check_divergence(value, error, limits)
                limits.remaining.append((value, str(error)))
        bindings.append(rebind(binding, value))
    return rebuild_block(block, bindings, block.terminator)


def _batched_outside(binding: Binding, limits: Limits) -> list[Binding] | None:
    """A loop whose rounds hold loops with rounds that take different ways, computed for all rounds at once, while these
    loops stay; None where that is not possible, or where these have more rounds."""
    loop = binding.value
    assert isinstance(loop, Loop)
    inner = [b.value for b in walk(loop.body) if isinstance(b.value, Loop)]
    counts = [limits.integers.count(each) for each in (loop, *inner) if each.counter is not None]
    if loop.counter is None or counts[0] is None:
        return None
    most = max((likely(count) for count in counts[1:] if count is not None), default=0)
    if most > likely(counts[0]) and loop.counter.divergence not in BATCHED:
        return None
    inside = Limits(limits.body, limits.choices, limits.max_size, limits.is_early, shielded=limits.shielded)
    inside.diverges = False
    try:
        outer = map_blocks(loop, lambda block: _block(block, inside))
        assert isinstance(outer, Loop)
        return _vectorized_bindings(outer, binding.targets, limits)
    except (Unsupported, CompileError):
        return None


def _check_divergence(loop: Loop, reason: Unsupported, limits: Limits) -> None:
    """Raises CompileError where a loop stays and that was not asked for."""
    if loop.counter is None or loop.counter.divergence not in BATCHED:
        return
    if limits.is_early and any(isinstance(b.value, Call) for b in walk(loop.body)):
        return  # derivatives are still to be made of these
    raise CompileError(
        f"vmap with divergence={loop.counter.divergence!r} cannot batch the examples: {_of_examples(str(reason))}",
        reason.span or loop.span,
        help="without divergence they are batched where that is possible, and run one after the other elsewhere",
    )


def _of_examples(reason: str) -> str:
    """A reason in the words of those who call `vmap`."""
    for of_loops, of_examples in (
        ("all rounds", "all examples"),
        ("a round", "an example"),
        ("rounds take", "examples take"),
    ):
        reason = reason.replace(of_loops, of_examples)
    return reason


def _runs_in_lanes(loop: Loop, limits: Limits) -> bool:
    """True if a loop stays, since code generation runs its rounds in the lanes of vector registers."""
    if loop.counter is not None and loop.counter.divergence in BATCHED:
        return False
    try:
        found = prefers_lanes(lane_loop(loop, limits.integers))
    except NoLanes:
        return False
    if found:
        limits.in_lanes.append(loop)
    return found


def _vectorized_bindings(loop: Loop, targets: Sequence[Var], limits: Limits) -> list[Binding]:
    """The bindings of a loop's results without the loop. Raises Unsupported if it stays."""
    if loop.counter is None or not isinstance(loop.body.terminator, Next):
        raise Unsupported("it may end early")
    if loop.counter.divergence == "loop":
        raise Unsupported('divergence="loop" asks for it')
    if not any(_is_update(b.value) for b in walk(loop.body)):
        raise Unsupported("its rounds write no rows")
    count = limits.integers.count(loop)
    if count is None or not limits.has_rounds(loop):
        raise Unsupported("it may have no round")
    if not (isinstance(count, int) or limits.integers.is_size(count)) or bound_dims(loop.body):
        raise Unsupported("it has sizes that are known only at run time")
    try:
        return _evaluated(loop, targets, count, limits)
    except Unsupported as error:
        plain = _plain_loop(Binding(tuple(targets), loop))
        if plain is loop or _runs_in_lanes(plain, limits):
            raise error
        return _evaluated(plain, targets, count, limits)


def _plain_loop(binding: Binding) -> Loop:
    """A loop without the data types and the failures that stand between its rounds' beginning and their end."""
    loop = binding.value
    assert isinstance(loop, Loop)
    match flatten_sums_within(binding):
        case [Binding(_, Loop() as flat)]:
            loop = flat
        case _:
            pass
    return with_body_block(loop, with_assertions(loop.body)) if has_failures(loop.body) else loop


def _evaluated(loop: Loop, targets: Sequence[Var], count: Dim, limits: Limits) -> list[Binding]:
    """The bindings of a loop's results, of all rounds at once. Raises Unsupported where that is not possible."""
    try:
        rounds = CompactedRounds(loop, count, limits)
        made = rounds.bindings(targets)
    except (TypeError, RelayError, Undetermined) as error:
        raise Unsupported("a call on all rounds has no type") from error
    limits.notes.update(rounds.notes)
    return made


def _alternative_bindings(loop: Loop, targets: Sequence[Var], limits: Limits) -> list[Binding] | None:
    """The bindings of the results of a loop whose rounds are not independent, but those of another form of it are; None
    where there is none."""
    if not limits.has_rounds(loop):
        return None
    carried = with_carried_rows(loop, targets, limits.integers)
    if carried is not None:
        made = _independent_bindings(carried.loop, carried.rows, limits)
        made = made or _alternative_bindings(carried.loop, carried.rows, limits)
        if made is not None:
            return [*carried.before, *made, *carried.after]
    return _with_collected_reductions(loop, targets, limits)


def _independent_bindings(loop: Loop, targets: Sequence[Var], limits: Limits) -> list[Binding] | None:
    """The bindings of the results of a loop whose rounds write rows of their own, perhaps of a row that is the same in
    all of them; None if it stays."""
    try:
        return _vectorized_bindings(loop, targets, limits)
    except Unsupported:
        carried = with_carried_rows(loop, targets, limits.integers) if limits.has_rounds(loop) else None
        made = None if carried is None else _independent_bindings(carried.loop, carried.rows, limits)
        return None if made is None or carried is None else [*carried.before, *made, *carried.after]


def _with_collected_reductions(loop: Loop, targets: Sequence[Var], limits: Limits) -> list[Binding] | None:
    """A loop that adds up numbers, with its terms computed for all rounds at once; None where that is not possible."""
    count = limits.integers.count(loop)
    if count is None or likely(count) < FEWEST_TERMS or not runs_all(loop):
        return None
    found = collected_reductions(loop, targets, limits.integers, limits.shielded)
    if found is None:
        return None
    try:
        made = _vectorized_bindings(found.loop, found.results, limits)
        return [*found.before, *made, *found.totals(targets, made, limits.shielded)]
    except Unsupported:
        return None


def _exchanged(binding: Binding, limits: Limits) -> list[Binding] | None:
    """The bindings of the results of two loops of which only the inner one has independent rounds, with that one around
    the other; None where they are no such loops."""
    outer = exchanged_loops(binding.value)
    if outer is None:
        return None
    inside = Limits(limits.body, limits.choices, limits.max_size, limits.is_early, limits.derivatives, limits.shielded)
    inner = map_blocks(outer, lambda block: _block(block, inside))
    assert isinstance(inner, Loop)
    try:
        return _independent_bindings(inner, binding.targets, limits)
    except CompileError:
        return None


def _is_update(value: Expr) -> bool:
    return isinstance(value, OpCall) and value.operator == "index_update"
