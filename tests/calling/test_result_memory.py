"""The memory of results: it begins at a line of the cache, and nobody else writes into it while it is held."""

from __future__ import annotations

import itertools
import math
import sys
import types

import numpy as np
import pytest
from agreement import modes

import relay
from relay.codegen.runtime.result_memory import LINE, Maker, aligned, maker, new_array

DTYPES = ("float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool")


@relay.relay
def pieces(x):
    return x, x[1:], x.sum(axis=0), (x == x, {"row": x[0], "columns": x.T})


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_begin_at_lines_of_the_cache(dtype: str) -> None:
    found = [
        leaf
        for run in modes(pieces)
        for rows in (2, 3, 7, 16, 33, 100, 3000)
        for _ in range(3)
        for leaf in relay.tree.leaves(run(np.ones((rows, 3), dtype)))
    ]
    assert len(found) == 2 * 7 * 3 * 6
    assert [leaf.shape for leaf in found if leaf.numpy().ctypes.data % LINE] == []
    assert all(leaf.numpy().flags.c_contiguous for leaf in found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_all_sizes_are_apart(dtype: str) -> None:
    varying = Maker(np.dtype(dtype))
    for dims in ((), (0,), (1,), (5,), (3, 5), (64,), (2, 0), (255, 3), (4096,), (70, 70)):
        fixed = maker(dims, np.dtype(dtype))
        made = [make() for make in (fixed, lambda dims=dims: varying(dims)) for _ in range(40)]
        assert {array.shape for array in made} == {dims} and all(array.flags.writeable for array in made)
        places = sorted(array.ctypes.data for array in made if array.size)
        assert all(place % LINE == 0 for place in places)
        assert all(b - a >= math.prod(dims) * made[0].itemsize for a, b in itertools.pairwise(places))


def test_memory_is_not_written_while_a_part_of_it_is_held() -> None:
    @relay.relay
    def filled(x):
        return x + np.zeros((3000,), np.float32)

    part = filled(1.0).numpy()[10:20]
    rows = [filled(float(i)).numpy().reshape(30, 100)[3] for i in range(2, 8)]
    again = [filled(float(i)) for i in range(20, 30)]
    assert part.tolist() == [1.0] * 10 and [row[0] for row in rows] == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert [a[5] for a in again] == [float(i) for i in range(20, 30)]


def test_sizes_that_no_array_has() -> None:
    for dims in ((1 << 62,), (1 << 40, 1 << 40)):
        with pytest.raises(MemoryError):
            new_array(dims, np.dtype("float64"))
    with pytest.raises(ValueError, match="negative"):
        Maker(np.dtype("float64"))((-1, -1))
    x = np.arange(20.0)
    assert aligned(x[3:]).tolist() == x[3:].tolist() and aligned(x[::2]).flags.c_contiguous


def test_jax_takes_an_array_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `jnp.asarray` calls, with what stands for JAX; tests do without it."""
    jax = types.SimpleNamespace(
        config=types.SimpleNamespace(jax_enable_x64=False),
        numpy=types.SimpleNamespace(asarray=lambda x: ("converted", x)),
        dlpack=types.SimpleNamespace(from_dlpack=lambda x: ("taken", x)),
    )
    monkeypatch.setitem(sys.modules, "jax", jax)
    wide, narrow, truth = (pieces(np.ones((2, 3), dtype))[0] for dtype in ("float64", "float32", "bool"))
    assert wide.__jax_array__()[0] == "converted"
    assert narrow.__jax_array__() == ("taken", narrow) and truth.__jax_array__() == ("taken", truth)
    jax.config.jax_enable_x64 = True
    assert wide.__jax_array__() == ("taken", wide)
