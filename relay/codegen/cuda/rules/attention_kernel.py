"""The kernel of attention: a block of threads for some queries, which goes once over the keys and values."""

from __future__ import annotations

from typing import Any

from relay.codegen.cuda.rules.attention import EXPONENTIALS, QUERIES, SHARE, THREADS, Attention
from relay.codegen.cuda.rules.blocks import (
    Blocks,
    StageSubject,
    barrier,
    finished,
    guarded_statement,
    indices_of_thread,
    parts,
    plan_of,
    thread_buffer,
)
from relay.codegen.cuda.rules.lines import Lines
from relay.codegen.cuda.rules.products import Axes
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import cast, loop, number, unravel_index
from relay.codegen.kernels.rules import Plan
from relay.codegen.kernels.stage import volume
from relay.codegen.tvm.tir import Expression, Statement, tirx


def match_attention(e: Emission, subject: StageSubject) -> Plan | None:
    """Products of queries and keys whose softmax is multiplied with values."""
    found = subject.fused
    if not isinstance(found, Attention) or (keys := found.part()) is None:
        return None
    reason = f"one pass over the keys, {keys} at a time, for {QUERIES} queries"
    return plan_of(reason, subject, lambda: _AttentionKernel(e, subject, found, keys).blocks())


class _AttentionKernel:
    """The kernel of attention, with `keys` of them in shared memory at once. Thread t has a part of query t / SHARE."""

    def __init__(self, e: Emission, subject: StageSubject, attention: Attention, keys: int) -> None:
        self.e, self.subject, self.attention, self.keys = e, subject, attention, keys
        self.depth, self.width, dtype = attention.depth, attention.width, attention.dtype
        self.thread, self.block = indices_of_thread()
        self.t = cast(self.thread, e.index)
        self.own, self.lane = unravel_index(self.t, (QUERIES, SHARE), e.index)
        self.queries_lines = Lines("query", dtype, QUERIES, self.depth, self.depth + 1)
        self.keys_lines = Lines("key", dtype, keys, self.depth, self.depth + 1)
        self.values_lines = Lines("value", dtype, keys, self.width, self.width)
        self.scores = thread_buffer("score", QUERIES * (keys + 1), dtype, "shared")
        self.weights = thread_buffer("weight", QUERIES * (keys + 1), dtype, "shared")
        self.sums = thread_buffer("sum", -(-self.width // SHARE), dtype, "local")
        self.highest, self.total, self.scale = (
            thread_buffer(name, 1, dtype, "local") for name in ("highest", "total", "scale")
        )

    def blocks(self) -> Blocks:
        e, found = self.e, self.attention
        stage = found.product.stage
        queries, keys, outer = stage.extents[-2], found.output.inner[0][1], volume(stage.extents[:-2])
        tiles = parts(queries, QUERIES)
        batch, tile = unravel_index(cast(self.block, e.index), (outer, tiles), e.index)
        self.first, self.query = tile * QUERIES, tile * QUERIES + self.own
        self.batches = [product.values(product.outer, batch, e) for product in (found.product, found.output)]
        zero = tirx.const(0, found.dtype)
        buffers = (
            self.queries_lines.buffer, self.keys_lines.buffer, self.values_lines.buffer, self.scores, self.weights,
            self.sums, self.highest, self.total, self.scale,
        )  # fmt: skip
        statements: list[Statement] = [tirx.AllocBuffer(buffer) for buffer in buffers]
        statements += [_put(self.highest, 0, tirx.const(float("-inf"), found.dtype)), _put(self.total, 0, zero)]
        statements += [_put(self.sums, n, zero) for n in range(-(-self.width // SHARE))]
        axes = found.product.rows, found.product.inner
        statements += self._fetch(self.queries_lines, 0, found.product.left, axes, self.first)
        statements += loop(parts(keys, self.keys), e.index, self._part)
        statements += self._results()
        return Blocks(statements, self.thread, self.block, THREADS, outer * tiles)

    def _fetch(
        self, into: Lines, which: int, factor: Expression, axes: tuple[Axes, Axes], first: Expression
    ) -> list[Statement]:
        """Bring lines of a factor to shared memory, from `first` on. `axes` are those of the lines, and those along
        them; `which` product it belongs to."""
        e, product = self.e, (self.attention.product, self.attention.output)[which]

        def element(line: Expression, along: Expression) -> Expression:
            values = {**self.batches[which], **product.values(axes[0], line, e)}
            return e.element(factor, {**values, **product.values(axes[1], along, e)})

        return into.fetch(e, self.t, THREADS, (first, volume([d for _, d in axes[0]])), element)

    def _part(self, part: Expression) -> list[Statement]:
        """Take some keys and values."""
        product, output, first = self.attention.product, self.attention.output, part * self.keys
        own_keys = [self.lane + n * SHARE for n in range(self.keys // SHARE)]
        made = [barrier()]
        made += self._fetch(self.keys_lines, 0, product.right, (product.columns, product.inner), first)
        made += self._fetch(self.values_lines, 1, output.right, (output.inner, output.columns), first)
        made += [barrier(), *(s for key_ in own_keys for s in self._score(first, key_)), barrier()]
        made += self._raise_highest()
        made += [s for key_ in own_keys for s in self._weight(first, key_)]
        return [*made, barrier(), *self._add_values()]

    def _is_there(self, at: Expression) -> Expression:
        """True for a query and a key that there are."""
        queries, keys = self.attention.product.stage.extents[-2:]
        return tirx.And(self.query < number(queries, self.e.index), at < number(keys, self.e.index))

    def _values(self, which: int, at: Expression) -> dict[Any, Expression]:
        """The values of a product's axes for this query and the key `at`."""
        product = (self.attention.product, self.attention.output)[which]
        of_keys = product.inner if which else product.columns
        values = {**self.batches[which], **product.values(product.rows, self.query, self.e)}
        return {**values, **product.values(of_keys, at, self.e)}

    def _score_of(self, dot: Expression, at: Expression) -> Expression:
        """The score that the product of a query and a key makes."""
        found, e = self.attention, self.e
        if found.scores.same_as(found.product.stage.op):
            return dot
        values = self._values(0, at)
        e.values[found.product.stage.op, 0] = dot
        made = e.body_at(found.scores.body[0], found.scores.axis, [values[axis] for axis in found.product.stage.axes])
        del e.values[found.product.stage.op, 0]
        return made

    def _weight_of(self, power: Expression, at: Expression) -> Expression:
        """The weight that an exponential makes."""
        found, e = self.attention, self.e
        e.values[found.softmax, 0] = power
        made = e.element(found.output.left, self._values(1, at))
        del e.values[found.softmax, 0]
        return made

    def _score(self, first: Expression, key_: Expression) -> list[Statement]:
        """Compute the score of this query and one of the keys."""
        found = self.attention
        memory = self.scale  # which is of no use yet
        place = self.own * (self.keys + 1) + key_

        def add(depth: Expression) -> list[Statement]:
            query, other = self.queries_lines.at(self.own, depth), self.keys_lines.at(key_, depth)
            return [_put(memory, 0, found.product.add(_get(memory, 0), query, other))]

        dot = tirx.Var("dot", found.dtype)
        score = self._score_of(dot, first + key_)
        return [
            _put(memory, 0, tirx.const(0, found.dtype)),
            *loop(self.depth, self.e.index, add),
            tirx.Bind(dot, _get(memory, 0)),
            _put(self.scores, place, tirx.const(float("-inf"), found.dtype)),
            guarded_statement(self._is_there(first + key_), [_put(self.scores, place, score)]),
        ]

    def _raise_highest(self) -> list[Statement]:
        """Look for the highest score so far, and scale the sums down to it. Where all scores are -inf, which is no
        number to subtract from -inf, all exponentials are 0."""
        dtype, infinity = self.attention.dtype, tirx.const(float("-inf"), self.attention.dtype)
        before, highest = tirx.Var("before", dtype), _get(self.highest, 0)

        def look(n: Expression) -> list[Statement]:
            score = tirx.BufferLoad(self.scores, [self.own * (self.keys + 1) + n])
            return [_put(self.highest, 0, tirx.max(_get(self.highest, 0), score))]

        lower = tirx.Select(highest.equal(infinity), tirx.const(0, dtype), highest)
        scaled = [_put(self.sums, n, _get(self.sums, n) * _get(self.scale, 0)) for n in range(-(-self.width // SHARE))]
        return [
            tirx.Bind(before, highest),
            *loop(self.keys, self.e.index, look),
            _put(self.scale, 0, _exponential(before - lower)),
            _put(self.total, 0, _get(self.total, 0) * _get(self.scale, 0)),
            *scaled,
        ]

    def _weight(self, first: Expression, key_: Expression) -> list[Statement]:
        """Compute the weight of one of the keys, times the sum of all exponentials."""
        found, place = self.attention, self.own * (self.keys + 1) + key_
        infinity, highest = tirx.const(float("-inf"), found.dtype), _get(self.highest, 0)
        lower = tirx.Select(highest.equal(infinity), tirx.const(0, found.dtype), highest)
        power = tirx.Var("power", found.dtype)
        weight = self._weight_of(power, first + key_)
        return [
            tirx.Bind(power, _exponential(tirx.BufferLoad(self.scores, [place]) - lower)),
            _put(self.total, 0, _get(self.total, 0) + power),
            _put(self.weights, place, tirx.const(0, found.dtype)),
            guarded_statement(self._is_there(first + key_), [_put(self.weights, place, weight)]),
        ]

    def _add_values(self) -> list[Statement]:
        """Add the values, by their weights, to the sums of this thread: each SHARE-th element."""

        def add(n: Expression) -> list[Statement]:
            weight = tirx.BufferLoad(self.weights, [self.own * (self.keys + 1) + n])
            made = []
            for at in range(-(-self.width // SHARE)):
                column = self.lane + at * SHARE
                value = self.values_lines.at(n, column)
                added = [_put(self.sums, at, self.attention.output.add(_get(self.sums, at), weight, value))]
                whole = (at + 1) * SHARE <= self.width
                made += added if whole else [guarded_statement(column < self.width, added)]
            return made

        return loop(self.keys, self.e.index, add)

    def _results(self) -> list[Statement]:
        """Divide the sums by that of all exponentials, of which each thread has a part, and store them."""
        e, output = self.e, self.attention.output
        row = self.own * (self.keys + 1)
        made = [_put(self.scores, row + self.lane, _get(self.total, 0)), barrier()]  # where no score is read any more
        made.append(_put(self.total, 0, tirx.const(0, self.attention.dtype)))
        for n in range(SHARE):
            made.append(_put(self.total, 0, _get(self.total, 0) + tirx.BufferLoad(self.scores, [row + n])))
        for n in range(-(-self.width // SHARE)):
            column = self.lane + n * SHARE
            values = {**self.batches[1], **output.values(output.rows, self.query, e)}
            values |= output.values(output.columns, column, e)
            indices = [values[axis] for axis in output.stage.axes]
            stored = finished(e, self.subject, indices, tirx.div(_get(self.sums, n), _get(self.total, 0)))
            queries = number(output.stage.extents[-2], e.index)
            made.append(guarded_statement(tirx.And(self.query < queries, column < self.width), stored))
        return made


def _put(buffer: Any, at: Any, value: Expression) -> Statement:
    return tirx.BufferStore(buffer, value, [at])


def _get(buffer: Any, at: int) -> Expression:
    return tirx.BufferLoad(buffer, [at])


def _exponential(value: Expression) -> Expression:
    dtype = str(value.ty)
    return tirx.call_pure_extern(dtype, EXPONENTIALS[dtype], value)


__all__ = ["match_attention"]
