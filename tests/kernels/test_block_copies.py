"""`relay.schedule(.., cache=True)`: blocks that copy what they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay
from relay.codegen.lowering import module_builder

X = np.random.default_rng(0).normal(size=(37, 53)).astype(np.float32)
B = np.arange(19, dtype=np.float32)


def cached(x: Any, *tile: int, **options: Any) -> Any:
    return relay.schedule(x, tile=tile, cache=True, **options)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[np.ndarray, ...]]]] = {
    "transposed": (lambda x: cached(x.T * 2.0, 8, 16), [(X,), (X[:8, :16],), (X[:1, :1],), (X[:9, :17],)]),
    "neighbors": (
        lambda x: cached(x[:-2, 1:-1] + x[2:, 1:-1] - 2.0 * x[1:-1, :-2] + x[1:-1, 2:], 8, 16),
        [(X,), (X[:3, :3],)],
    ),
    "padded": (lambda x: cached(relay.pad(x, ((2, 1), (1, 3)))[:-2] * 2.0, 8, 16), [(X,), (X[:2, :2],)]),
    "steps": (lambda x, b: cached(x[::2, ::3].T * b + 1.0, 5, 7), [(X, B)]),
    "reversed": (lambda x, y: cached(x[::-1] + y.T, 5, 7), [(X, X.T.copy())]),
    "gathered": (lambda x, i: cached(x[i] + 1.0, 2, 8), [(X, np.int32([3, 0, 36]))]),
    "integers": (lambda x: cached(x.T > 0, 8, 16), [(X,)]),
    "halves": (lambda x: cached(x.T + 1.0, 8, 16), [(X.astype(np.float16),), (X.astype("bfloat16"),)]),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_copies_do_not_change_the_result(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    function, calls = PROGRAMS[name]
    for arguments in calls:
        program = relay.relay(function)  # a tile is for known sizes
        found, wanted = np.asarray(program(*arguments)), np.asarray(program.interpret(*arguments))
        assert found.dtype == wanted.dtype  # a product and a sum may be one instruction, with one rounding
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-6, atol=1e-6)


def test_gradients_and_batches_of_blocks_with_copies() -> None:
    program = relay.relay(lambda x: (cached(x.T * x.T, 8, 16) * 3.0).sum())
    np.testing.assert_allclose(relay.grad(program)(X), 6 * X, rtol=1e-5)
    batched = relay.vmap(relay.relay(lambda x: cached(x.T * 2.0, 8, 16)))
    both = np.stack([X, -X])
    np.testing.assert_array_equal(batched(both), 2 * both.transpose(0, 2, 1))


def test_the_kernel_says_that_it_copies() -> None:
    program = relay.relay(lambda x: cached(x.T * 2.0, 8, 16))
    (kernel,) = module_builder.schedules(program.core(X), 1, {})
    assert [d.reason for d in kernel.decisions] == [
        "the program asks for blocks of 8 x 16 with copies of what they read"
    ]


def test_what_cannot_be_copied_is_an_error() -> None:
    with pytest.raises(relay.errors.CompileError, match="a tile does not apply to this kernel"):
        relay.relay(lambda x: cached(x + x.T, 8, 8))(X[:30, :30])
    with pytest.raises(relay.errors.TypeMismatch, match="a cache is of the blocks of a tile, and there is none"):
        relay.relay(lambda x: relay.schedule(x, cache=True))(X)
