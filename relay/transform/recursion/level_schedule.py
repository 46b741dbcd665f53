"""The schedule of a structural recursion: all calls on all parts of some values, by levels.

A task is a call of a function on a part. The tasks are found breadth first, the roots first and the parts of one value
next to each other, with a list of what is still to be visited and no recursion. The level of a task is 0 if it has no
parts, else one more than the largest level of its parts. The tasks of one level and one arm lie side by side in the
arrays of results, and are a group, or several ones of at most `width` rows.

    tasks     0 1 2 ..   arm, first part, number of parts     (stack)
    places    task -> row                                     (tasks,)
    members   row -> task                                     (tasks,)
    firsts    row -> the first part of the task               (tasks,)
    kinds     group -> arm                                    (groups,)
    starts    group -> its first row                          (groups,)
    counts    group -> the number of its rows                 (groups,)
    sizes     group -> the number of parts of each task       (groups,)

Where parts are in lists, the tasks of a group have the same number of parts.

What calls change among the other arguments is computed when a part is found, and kept beside it. All of it is calls of
operators, stacks and loops: derivatives and the interpreter need nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from relay.ir.dims import DataDependentDim, Dim, made_dim
from relay.ir.expr import (
    Arm,
    Atom,
    BindDim,
    Block,
    Counter,
    Dead,
    Exit,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Next,
    RefNew,
    RefRead,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_block
from relay.ir.types import INT64, RefType, StackType, TensorType, TupleType, Type, scalar
from relay.operator import Emitter, Value, lookup
from relay.transform.recursion.recursion_arms import Case, Condition, Decision, Part, RecursionArm
from relay.transform.recursion.structural_recursion import RecursiveFunction, StructuralRecursion

_NUMBER = scalar(INT64)
_TASK = TupleType((_NUMBER, _NUMBER, _NUMBER))
_VISIT = TupleType((_NUMBER, _NUMBER))
_Passed: TypeAlias = list[tuple[int, Value]]
"""Values of parameters that calls change, with the places of their stacks."""


@attrs.frozen(eq=False)
class GroupArrays:
    """The arrays that say what each group is, and how many groups there are; `sizes` is there if parts are in lists."""

    number: Value
    kinds: Value
    starts: Value
    counts: Value
    sizes: Value | None


@attrs.frozen(eq=False)
class Schedule:
    """The values that the schedule has been written to, for the block that it is in. `nodes` are the parts that each
    function is called on, `passed` the values of their parameters that calls change, and `visits` the function and the
    number of the part of each task, where there are several. `is_small`: whether there is a schedule, if it may be too
    large."""

    recursion: StructuralRecursion
    nodes: tuple[Value, ...]
    passed: Mapping[tuple[str, int], Value]
    visits: Value | None
    count: Value
    tasks: DataDependentDim
    places: Value
    members: Value
    firsts: Value
    groups: GroupArrays
    is_small: Value | None


# ---- writing loops and branches


def while_loop(
    out: Emitter,
    name: str,
    initial: Sequence[Value],
    condition: Callable[[Emitter, list[Value]], Value],
    body: Callable[[Emitter, list[Value]], Sequence[Value]],
) -> list[Value]:
    """The results of a loop that runs while a condition on its parameters holds."""
    label = LoopLabel(name)
    parameters = tuple(Var("state", v.type, out.span) for v in initial)
    outer, inner = Emitter(out.span), Emitter(out.span)
    holds = condition(outer, [outer.value(p) for p in parameters])
    passed = body(inner, [inner.value(p) for p in parameters])
    go = Block(inner.all_bindings(), Next(label, tuple(v.atom for v in passed)))
    stop = Block((), Exit(label, parameters))
    test = Block((), Yield((holds.atom,)))
    outer.emit((), If((Arm(test, go),), stop, out.span))
    loop = Loop(label, parameters, tuple(v.atom for v in initial), Block(outer.all_bindings(), Dead()))
    return _results(out, loop, initial)


def for_loop(
    out: Emitter,
    name: str,
    count: Value,
    initial: Sequence[Value],
    body: Callable[[Emitter, Value, list[Value]], Sequence[Value]],
) -> list[Value]:
    """The results of a loop of `count` rounds; `body` gets the number of the round and the parameters."""
    label = LoopLabel(name)
    parameters = tuple(Var("state", v.type, out.span) for v in initial)
    index = Var("i", count.type, out.span)
    inner = Emitter(out.span)
    passed = body(inner, inner.value(index), [inner.value(p) for p in parameters])
    block = Block(inner.all_bindings(), Next(label, tuple(v.atom for v in passed)))
    start = tuple(v.atom for v in initial)
    return _results(out, Loop(label, parameters, start, block, Counter(index, count.atom)), initial)


def _results(out: Emitter, loop: Loop, initial: Sequence[Value]) -> list[Value]:
    targets = tuple(Var(loop.label.name, v.type, out.span) for v in initial)
    out.emit(targets, loop)
    return [out.value(t) for t in targets]


def branch(
    out: Emitter,
    condition: Value,
    then: Callable[[Emitter], Sequence[Value]],
    orelse: Callable[[Emitter], Sequence[Value]],
    name: str = "chosen",
) -> list[Value]:
    """The results of one of two blocks."""
    blocks: list[Block] = []
    found: Sequence[Value] = ()
    for write in (then, orelse):
        inner = Emitter(out.span)
        found = write(inner)
        blocks.append(Block(inner.all_bindings(), Yield(tuple(v.atom for v in found))))
    targets = tuple(Var(name, v.type, out.span) for v in found)
    out.emit(targets, If((Arm(Block((), Yield((condition.atom,))), blocks[0]),), blocks[1], out.span))
    return [out.value(t) for t in targets]


def local(out: Emitter, value: Value) -> Value:
    """A value of an outer block, in this one."""
    return out.value(value.atom, value.type)


def number(out: Emitter, value: int) -> Value:
    """An int64."""
    return out.constant(value, INT64)


def zeros(out: Emitter, shape: Sequence[Dim], type_: TensorType) -> Value:
    """An array of zeros of the base type of another."""
    attributes: dict[str, Any] = {"shape": tuple(shape), "dtype": type_.base}
    return out.call(lookup("zeros"), (), attributes)


def length(out: Emitter, stack: Value) -> Value:
    """The number of elements of a stack."""
    return out.bind(StackLength(stack.atom, out.span), _NUMBER, "length")


def element(out: Emitter, stack: Value, place: Value) -> Value:
    """An element of a stack; of one of references what it refers to."""
    assert isinstance(stack.type, StackType)
    found = out.bind(StackGet(stack.atom, place.atom, out.span), stack.type.element, "element")
    if isinstance(stack.type.element, RefType):
        return out.bind(RefRead(found.atom, out.span), stack.type.element.content, "content")
    return found


def push(out: Emitter, stack: Value, item: Value) -> Value:
    """A stack with one more element, in a new reference if it is one of references."""
    assert isinstance(stack.type, StackType)
    atom = item.atom
    if isinstance(stack.type.element, RefType):
        atom = out.bind(RefNew(atom, out.span), stack.type.element, "cell").atom
    return out.bind(StackPush(stack.atom, atom, out.span), stack.type, "stack")


def items(out: Emitter, whole: Value) -> list[Value]:
    """The components of a tuple."""
    return out.components(local(out, whole))


def bound_dim(out: Emitter, name: str, size: Value) -> DataDependentDim:
    """A dim that is a number of the program."""
    dim = made_dim(name)
    out.perform(BindDim(dim, size.atom, out.span))
    return dim


def at(out: Emitter, array: Value, *places: Value) -> Value:
    """The row of an array at some places."""
    found = local(out, array)
    for place in places:
        found = found.op("index", local(out, place))
    return found


def put(out: Emitter, array: Value, place: Value, row: Value) -> Value:
    """An array with another row."""
    return local(out, array).op("index_update", local(out, place), local(out, row))


# ---- the schedule


def write_schedule(
    out: Emitter,
    recursion: StructuralRecursion,
    root: str,
    roots: Value,
    arguments: Mapping[int, Atom],
    width: int,
    cells: bool,
) -> Schedule:
    """Write the schedule of calls of the function `root` on the elements of a stack, with other arguments by the
    numbers of `StructuralRecursion.shared`. `cells`: lists of parts hold references, as derivatives need where the
    order of reads is not that of a stack."""
    walk = _Walk(recursion, root, arguments, cells)
    nodes, passed, visits, tasks = walk.write(out, roots)
    count = length(out, tasks)
    tasks_dim = bound_dim(out, "tasks", count)
    heights, top = _heights(out, tasks, count, tasks_dim)
    buckets = _buckets(out, recursion, tasks, count, heights, top)
    starts, groups = _groups(out, tasks, count, buckets, width)
    blank = zeros(out, (tasks_dim,), _NUMBER)

    def place(body: Emitter, i: Value, state: list[Value]) -> Sequence[Value]:
        task = local(body, count) - 1 - i
        first = items(body, element(body, tasks, task))[1]
        bucket = buckets.bucket(body, tasks, task)
        rows_, places_, members_, firsts_ = state
        row = at(body, rows_, bucket)
        return (
            put(body, rows_, bucket, row + 1),
            put(body, places_, task, row),
            put(body, members_, row, task),
            put(body, firsts_, row, first),
        )

    _, places, members, firsts = for_loop(out, "place", count, (starts, blank, blank, blank), place)
    rows = places, members, firsts
    return Schedule(recursion, nodes, passed, visits, count, tasks_dim, *rows, groups, buckets.is_small)


@attrs.frozen(eq=False)
class _Buckets:
    """The buckets of the tasks: one for each level, arm, and number of parts up to `sizes`, where that differs."""

    heights: Value
    keys: int
    count: Value
    sizes: Value | None = None
    is_small: Value | None = None

    def bucket(self, out: Emitter, tasks: Value, task: Value) -> Value:
        """The bucket of a task."""
        key, _, parts = items(out, element(out, tasks, task))
        found = at(out, self.heights, task) * self.keys + key
        if self.sizes is None:
            return found
        sizes = local(out, self.sizes)
        return found * sizes + parts.op("minimum", sizes - 1)

    def key(self, bucket: Value) -> Value:
        """The arm of the tasks of a bucket."""
        found = bucket if self.sizes is None else bucket.op("floor_divide", local(bucket.emitter, self.sizes))
        return found.op("mod", self.keys)

    def parts(self, bucket: Value) -> list[Value]:
        """The number of parts of each task of a bucket, where that differs."""
        return [] if self.sizes is None else [bucket.op("mod", local(bucket.emitter, self.sizes))]


MOST_BUCKETS = 16
"""The most buckets for each task: where lists are long and levels many, there is no use in groups."""


def _buckets(
    out: Emitter, recursion: StructuralRecursion, tasks: Value, count: Value, heights: Value, top: Value
) -> _Buckets:
    keys = len(recursion.arms)
    buckets = (top + 1) * keys
    if not recursion.goes_through_lists:
        return _Buckets(heights, keys, buckets)

    def larger(body: Emitter, i: Value, found: list[Value]) -> Sequence[Value]:
        return (found[0].op("maximum", items(body, element(body, tasks, i))[2]),)

    (most,) = for_loop(out, "most", count, (number(out, 0),), larger)
    is_small = (buckets * (most + 1)).op("less_equal", count * MOST_BUCKETS)
    sizes = is_small.op("where", most + 1, number(out, 1))
    return _Buckets(heights, keys, buckets * sizes, sizes, is_small)


def _heights(out: Emitter, tasks: Value, count: Value, dim: Dim) -> tuple[Value, Value]:
    """The level of each task, and the largest one."""

    def height(body: Emitter, i: Value, state: list[Value]) -> Sequence[Value]:
        heights, top = state
        task = local(body, count) - 1 - i
        _, first, parts = items(body, element(body, tasks, task))

        def largest(inner: Emitter, j: Value, found: list[Value]) -> Sequence[Value]:
            below = at(inner, heights, local(inner, first) + j)
            return (found[0].op("maximum", below + 1),)

        (own,) = for_loop(body, "parts", parts, (number(body, 0),), largest)
        return put(body, heights, task, own), top.op("maximum", own)

    heights, top = for_loop(out, "height", count, (zeros(out, (dim,), _NUMBER), number(out, 0)), height)
    return heights, top


def _groups(out: Emitter, tasks: Value, count: Value, buckets: _Buckets, width: int) -> tuple[Value, GroupArrays]:
    """The first row of the tasks of each bucket, and the groups."""
    blank = zeros(out, (bound_dim(out, "buckets", buckets.count),), _NUMBER)

    def counted(body: Emitter, i: Value, state: list[Value]) -> Sequence[Value]:
        bucket = buckets.bucket(body, tasks, i)
        return (put(body, state[0], bucket, at(body, state[0], bucket) + 1),)

    (sizes,) = for_loop(out, "count", count, (blank,), counted)

    def divisions(size: Value) -> Value:
        return (size + (width - 1)).op("floor_divide", width)

    def started(body: Emitter, i: Value, state: list[Value]) -> Sequence[Value]:
        starts, row, groups = state
        size = at(body, sizes, i)
        return put(body, starts, i, row), row + size, groups + divisions(size)

    zero = number(out, 0)
    starts, _, groups = for_loop(out, "start", buckets.count, (blank, zero, zero), started)
    arrays = [zeros(out, (bound_dim(out, "groups", groups),), _NUMBER)] * (3 if buckets.sizes is None else 4)

    def divide(body: Emitter, bucket: Value, state: list[Value]) -> Sequence[Value]:
        first, size = at(body, starts, bucket), at(body, sizes, bucket)
        fixed = [buckets.key(bucket), *buckets.parts(bucket)]

        def write(inner: Emitter, i: Value, found: list[Value]) -> Sequence[Value]:
            group, *columns = found
            done = i * width
            key, *parts = [local(inner, v) for v in fixed]
            row = key, local(inner, first) + done, (local(inner, size) - done).op("minimum", width), *parts
            return [group + 1, *(put(inner, c, group, v) for c, v in zip(columns, row, strict=True))]

        return for_loop(body, "division", divisions(size), state, write)

    _, *columns = for_loop(out, "bucket", buckets.count, (zero, *arrays), divide)
    kinds, firsts, counts, *parts = columns
    return starts, GroupArrays(groups, kinds, firsts, counts, parts[0] if parts else None)


class _Walk:
    """The visit of all parts."""

    def __init__(self, recursion: StructuralRecursion, root: str, arguments: Mapping[int, Atom], cells: bool) -> None:
        self.recursion, self.root, self.arguments, self.cells = recursion, root, arguments, cells
        self.functions = list(recursion.functions.values())
        self.numbers = {f.name: i for i, f in enumerate(self.functions)}
        self.keys = {arm: i for i, arm in enumerate(recursion.arms)}
        self.several = len(self.functions) > 1
        self.passed = [(f.name, i) for f in self.functions for i in f.passed]

    def write(
        self, out: Emitter, roots: Value
    ) -> tuple[tuple[Value, ...], dict[tuple[str, int], Value], Value | None, Value]:
        """The nodes of each function, what calls pass on, the visits, and the tasks."""
        nodes = [self._empty(out, f.data) for f in self.functions]
        types = [self.recursion.functions[name].parameters[i].type for name, i in self.passed]
        passed = [self._empty(out, type_) for type_ in types if type_ is not None]
        start = self.numbers[self.root]
        visits = [self._new(out, _VISIT)] if self.several else []
        own = [place for place, (name, _) in enumerate(self.passed) if name == self.root]

        def enter(body: Emitter, i: Value, state: list[Value]) -> Sequence[Value]:
            stack, *rest = state
            values = [self.arguments[self.recursion.shared[self.passed[place]]] for place in own]
            given = [push(body, s, body.value(v)) for s, v in zip(rest, values, strict=False)]
            entered = [push(body, r, self._pair(body, start, i)) for r in rest[len(own) :]]
            return [push(body, stack, element(body, roots, i)), *given, *entered]

        count = length(out, roots)
        first = [nodes[start], *(passed[place] for place in own), *visits]
        nodes[start], *rest = for_loop(out, "roots", count, first, enter)
        for place, stack in zip(own, rest, strict=False):
            passed[place] = stack
        visits = rest[len(own) :]
        tasks = self._new(out, _TASK)

        def has_more(test: Emitter, state: list[Value]) -> Value:
            return state[0] < length(test, self._queue(state))

        found = while_loop(out, "visit", (number(out, 0), tasks, *visits, *nodes, *passed), has_more, self._visit)
        _, tasks, *rest = found
        parts = rest[len(visits) :]
        stacks = dict(zip(self.passed, parts[len(nodes) :], strict=True))
        return tuple(parts[: len(nodes)]), stacks, rest[0] if self.several else None, tasks

    def _queue(self, state: list[Value]) -> Value:
        """The value that grows with each task that is found."""
        return state[2]  # the visits, or the nodes of the only function

    def _empty(self, out: Emitter, type_: Type) -> Value:
        return self._new(out, RefType(type_) if self.cells else type_)

    def _new(self, out: Emitter, type_: Type) -> Value:
        return out.bind(StackNew(type_, out.span), StackType(type_), "stack")

    def _pair(self, out: Emitter, function: int, place: Value) -> Value:
        return out.bind(MakeTuple((number(out, function).atom, place.atom), out.span), _VISIT, "visit")

    def _visit(self, out: Emitter, state: list[Value]) -> Sequence[Value]:
        task = state[0]
        if not self.several:
            made = self._take_apart(out, self.functions[0], task, state[1:])
        else:
            function, place = items(out, element(out, self._queue(state), task))
            made = self._choose(out, 0, function, place, state[1:])
        return [task + 1, *made]

    def _choose(self, out: Emitter, number_: int, function: Value, place: Value, state: list[Value]) -> list[Value]:
        """The state after a visit by one of the functions from a number on."""

        def visit(body: Emitter) -> list[Value]:
            again = [local(body, v) for v in state]
            return self._take_apart(body, self.functions[number_], local(body, place), again)

        def go_on(body: Emitter) -> list[Value]:
            return self._choose(body, number_ + 1, function, place, [local(body, v) for v in state])

        if number_ == len(self.functions) - 1:
            return visit(out)
        return branch(out, local(out, function) == number_, visit, go_on, "state")

    def _take_apart(self, out: Emitter, function: RecursiveFunction, place: Value, state: list[Value]) -> list[Value]:
        offset = 2 if self.several else 1
        node = element(out, local(out, state[offset + self.numbers[function.name]]), local(out, place))
        stacks = offset + len(self.functions)
        given = {
            function.parameters[i]: element(out, local(out, state[stacks + number_]), local(out, place)).atom
            for number_, (name, i) in enumerate(self.passed)
            if name == function.name
        }
        mapping = {**shared_arguments(self.recursion, function, self.arguments), **given}
        mapping[function.parameters[function.position]] = node.atom
        return self._decide(out, function.decision, mapping, state)

    def _decide(self, out: Emitter, decision: Decision, mapping: Mapping[Var, Atom], state: list[Value]) -> list[Value]:
        """The state after a visit, from a decision on."""
        match decision:
            case RecursionArm():
                return self._add_task(out, decision, mapping, state)
            case Condition(before, condition, then, orelse):
                block = copy_block(Block(before, Yield((condition,))), mapping)
                for binding in block.bindings:
                    out.emit(binding.targets, binding.value)
                assert isinstance(block.terminator, Yield)

                def go_on(body: Emitter, inner: Decision) -> list[Value]:
                    return self._decide(body, inner, mapping, [local(body, v) for v in state])

                holds = out.value(block.terminator.values[0])
                return branch(out, holds, lambda b: go_on(b, then), lambda b: go_on(b, orelse), "state")
            case Case(value, inner):
                arms = []
                for known, following in inner:
                    body = Emitter(out.span)
                    fields = tuple(Var(f.name, f.type, f.span) for f in known.fields)
                    names = {**mapping, **dict(zip(known.fields, fields, strict=True))}
                    found = self._decide(body, following, names, [local(body, v) for v in state])
                    end = Yield(tuple(v.atom for v in found))
                    arms.append(MatchArm(known.constructor, fields, Block(body.all_bindings(), end)))
                targets = tuple(Var("state", v.type, out.span) for v in state)
                out.emit(targets, Match(mapping[value], tuple(arms), out.span))
                return [out.value(t) for t in targets]

    def _add_task(
        self, out: Emitter, arm: RecursionArm, mapping: Mapping[Var, Atom], state: list[Value]
    ) -> list[Value]:
        """The state with a task for an arm, and its parts."""
        tasks, *rest = state
        first, count = length(out, rest[0]), number(out, len(arm.parts))
        for part in arm.lists:
            count = count + length(out, out.value(mapping[arm.fields[part.field]]))
        entry = (number(out, self.keys[arm]).atom, first.atom, count.atom)
        tasks = push(out, tasks, out.bind(MakeTuple(entry, out.span), _TASK, "task"))
        for part in arm.parts:
            passed = self._passed_on(out, part, mapping)
            rest = self._add_part(out, part, out.value(mapping[arm.fields[part.field]]), passed, rest)
        for part in arm.lists:
            whole, passed = out.value(mapping[arm.fields[part.field]]), self._passed_on(out, part, mapping)

            def add(
                body: Emitter,
                i: Value,
                found: list[Value],
                part: Part = part,
                whole: Value = whole,
                passed: _Passed = passed,
            ) -> Sequence[Value]:
                given = [(place, local(body, value)) for place, value in passed]
                return self._add_part(body, part, element(body, local(body, whole), i), given, found)

            rest = for_loop(out, "elements", length(out, whole), rest, add)
        return [tasks, *rest]

    def _add_part(self, out: Emitter, part: Part, node: Value, passed: _Passed, state: Sequence[Value]) -> list[Value]:
        """The state, but for the tasks, with one more part to visit."""
        state, target = list(state), self.numbers[part.function]
        offset = 1 if self.several else 0
        if self.several:
            state[0] = push(out, state[0], self._pair(out, target, length(out, state[offset + target])))
        state[offset + target] = push(out, state[offset + target], node)
        for place, value in passed:
            position = offset + len(self.functions) + place
            state[position] = push(out, state[position], value)
        return state

    def _passed_on(self, out: Emitter, part: Part, mapping: Mapping[Var, Atom]) -> _Passed:
        """The values of the parameters that a call changes, with the places of their stacks."""
        own = [(place, i) for place, (name, i) in enumerate(self.passed) if name == part.function]
        if not own:
            return []
        block = copy_block(Block(part.before, Yield(tuple(part.arguments[i] for _, i in own))), mapping)
        for binding in block.bindings:
            out.emit(binding.targets, binding.value)
        assert isinstance(block.terminator, Yield)
        return [(place, out.value(a)) for (place, _), a in zip(own, block.terminator.values, strict=True)]


def shared_arguments(
    recursion: StructuralRecursion, function: RecursiveFunction, arguments: Mapping[int, Atom]
) -> dict[Var, Atom]:
    """The arguments for those parameters of a function that are the same in all calls."""
    own = [i for i in range(len(function.parameters)) if i != function.position and i not in function.passed]
    return {function.parameters[i]: arguments[recursion.shared[function.name, i]] for i in own}
