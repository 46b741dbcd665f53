"""Kernels that measure the machine's peak: floating-point operations and bytes per second of code made as programs'
code is.

Multiplications and additions are counted in registers, as many chains at once as hide their latency. Bytes are those of
a := a c + b, two reads and a write for each element, over arrays of several sizes, so that each level of the caches has
its own; each thread goes over its own part of them. The best of some runs counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import relay.codegen.tvm.without_torch  # noqa: F401  (before TVM)
from relay.codegen.runtime.machine_peak import MachinePeak
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, GlobalVar, Statement, integer, tirx
from relay.ir.types import FLOAT32, FLOAT64, BaseType

CHAINS = 12
"""Vectors that are computed at once: the latency of a multiplication and addition, times how many start together."""

SIZES = tuple(1 << n for n in (13, 15, 17, 19, 20, 21, 22, 23, 24, 25, 26))
"""The bytes of the arrays, for each thread."""

_MOST = 1 << 28
"""The most bytes that are gone over by all threads together."""

_SHORTEST, _TRIES = 0.001, 8
"""Seconds of a run that is long enough to be measured, and the runs of which the shortest counts."""


def measure(threads: int) -> MachinePeak:
    """Measure it, in about half a second. Raises InternalError if TVM refuses the code."""
    flops = {base.name: _operations(base, threads) for base in (FLOAT32, FLOAT64)}
    best: list[tuple[int, float]] = []
    sizes = [size for size in SIZES if size * threads <= _MOST] or [SIZES[0]]
    memory = np.zeros(sizes[-1] * threads + 64, np.uint8)
    run = _compile_kernel(_triad(threads), 4)
    address = memory.ctypes.data + -memory.ctypes.data % 64
    for size in sizes:
        half = size // 2 * threads
        moved = 3 * half
        count = size // 2 // FLOAT32.dtype.itemsize

        def rounds(number: int, half: int = half, count: int = count) -> None:
            run(address, address + half, count, number)

        best.append((size * threads, moved * _rate(rounds)))
    falling = [(size, max(rate for _, rate in best[position:])) for position, (size, rate) in enumerate(best)]
    return MachinePeak(threads, flops, tuple(falling))


def _operations(base: BaseType, threads: int) -> float:
    lanes = tir.vector_registers()[0] // base.dtype.itemsize
    out = np.zeros(threads * CHAINS * lanes, base.dtype)
    run = _compile_kernel(_multiplications(base, lanes, threads), 2)
    return 2 * CHAINS * lanes * threads * _rate(lambda number: run(out.ctypes.data, number))


def _rate(run: Callable[[int], object]) -> float:
    """Rounds per second. A single run may be interrupted and look long enough, so the shortest of some decides."""
    number = 16
    while True:
        seconds = _seconds(run, number)
        if seconds >= _SHORTEST or number >= 1 << 40:
            return number / seconds
        number = max(2 * number, int(number * 1.25 * _SHORTEST / max(seconds, 1e-7)))


def _seconds(run: Callable[[int], object], number: int) -> float:
    """The shortest time of a round, over some runs of this many rounds."""
    found = float("inf")
    for _ in range(_TRIES):
        start = time.perf_counter()
        run(number)
        found = min(found, time.perf_counter() - start)
    return found


def _compile_kernel(kernel: Any, parameters: int) -> Callable[..., object]:
    """A kernel of this many numbers, to be called from Python."""
    name = GlobalVar("peak")
    given = [tirx.Var(f"n{i}", "int64") for i in range(parameters)]
    main = tir.public_function("main", given, [tirx.Evaluate(tir.call(name, given))])
    built = tir.build({name: kernel, GlobalVar("main"): main}, 1, 0, True)
    found: Callable[..., object] = built["main"]
    return found


def _loop(name: str, extent: Expression, body: Callable[[Expression], Sequence[Statement]], kind: str) -> Statement:
    variable = tirx.Var(name, "int64")
    statement = tir.sequence(body(variable))
    return tirx.For(variable, integer(0), extent, tirx.ForKind[kind], statement)


def _threads(threads: int, body: Callable[[Expression], Sequence[Statement]]) -> Statement:
    return _loop("thread", integer(threads), body, "PARALLEL" if threads > 1 else "SERIAL")


def _multiplications(base: BaseType, lanes: int, threads: int) -> Any:
    """kernel(out, rounds)"""
    out, rounds = (tirx.Var(name, "int64") for name in ("out", "rounds"))
    result, statements = tir.view("result", (1 << 20,), base.name, out)

    def vector(number: float) -> Expression:
        return tirx.Broadcast(tirx.const(number, base.name), lanes)

    def places(start: Expression) -> list[Expression]:
        return [tirx.Ramp(start, integer(1), lanes)]

    def thread(number: Expression) -> list[Statement]:
        sums = tir.buffer("sums", (CHAINS * lanes,), base.name)
        chains = [places(integer(n * lanes)) for n in range(CHAINS)]

        def step(_: Expression) -> list[Statement]:
            return [
                tirx.BufferStore(sums, tirx.BufferLoad(sums, at) * vector(0.999) + vector(0.001), at) for at in chains
            ]

        first = [tirx.BufferStore(sums, vector(0.5 + n), at) for n, at in enumerate(chains)]
        last = [
            tirx.BufferStore(
                result, tirx.BufferLoad(sums, at), places(number * integer(CHAINS * lanes) + integer(n * lanes))
            )
            for n, at in enumerate(chains)
        ]
        return [tirx.AllocBuffer(sums), *first, _loop("round", rounds, step, "SERIAL"), *last]

    body = [*statements, _threads(threads, thread)]
    return tir.function([out, rounds], body).with_attr(tir.KERNEL, True)


def _triad(threads: int) -> Any:
    """kernel(a, b, elements of each thread, rounds)"""
    parameters = [tirx.Var(name, "int64") for name in ("a", "b", "count", "rounds")]
    left, right, count, rounds = parameters
    lanes = tir.vector_registers()[0] // FLOAT32.dtype.itemsize
    a, declared = tir.view("a", (1 << 30,), FLOAT32.name, left)
    b, more = tir.view("b", (1 << 30,), FLOAT32.name, right)
    factor = tirx.Broadcast(tirx.const(0.999, FLOAT32.name), lanes)

    def thread(number: Expression) -> list[Statement]:
        def element(i: Expression) -> list[Statement]:
            at = [tirx.Ramp(number * count + i * integer(lanes), integer(1), lanes)]
            return [tirx.BufferStore(a, tirx.BufferLoad(a, at) * factor + tirx.BufferLoad(b, at), at)]

        def step(_: Expression) -> list[Statement]:
            return [_loop("i", tirx.floordiv(count, integer(lanes)), element, "SERIAL")]

        return [_loop("round", rounds, step, "SERIAL")]

    return tir.function(parameters, [*declared, *more, _threads(threads, thread)]).with_attr(tir.KERNEL, True)
