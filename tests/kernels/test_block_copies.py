"""Memory of blocks: `relay.schedule(.., cache=True)` copies what a block reads, `in_blocks=True` computes it."""

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


def across(x: Any) -> Any:
    return (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3.0


def down(x: Any) -> Any:
    return (x[:-2] + x[1:-1] + x[2:]) / 3.0


def own(x: Any) -> Any:
    return relay.schedule(x, in_blocks=True)


def tiled(x: Any, *tile: int, **options: Any) -> Any:
    return relay.schedule(x, tile=tile, **options)


def pyramid(x: Any) -> Any:
    """Values in blocks that are computed from each other, and one of which the result reads, too."""
    first = own(relay.exp(across(x)))
    second = own(down(first))
    return tiled(second[1:] - second[:-1] + first[2:-1, :], 8, 16)


STENCILS: dict[str, tuple[Callable[..., Any], list[tuple[np.ndarray, ...]]]] = {
    "blur": (lambda x: tiled(down(own(across(x))), 8, 16), [(X,), (X[:3, :3],), (X[:10, :18],)]),
    "pyramid": (pyramid, [(X,), (X[:5, :4],)]),
    "with copies": (lambda x: tiled(down(own(across(x))), 8, 16, cache=True), [(X,)]),
    "padded": (
        lambda x: tiled(down(relay.pad(own(relay.exp(across(x))), ((1, 1), (2, 0)))), 5, 7),
        [(X,), (X[:1, :3],)],
    ),
    "steps": (lambda x, b: tiled(own(relay.tanh(x))[::2, ::3].T * b + 1.0, 5, 7), [(X, B)]),
    "transposed": (lambda x: tiled(own(x * x).T * 2.0, 16, 8), [(X,)]),
    "larger": (lambda x: tiled(own(relay.exp(x[:, 0]))[:, None] + x[:, :20], 8, 8), [(X,)]),
    "bools": (lambda x: tiled(relay.where(own(x > 0.0)[:, 1:], x[:, 1:], -x[:, :-1]), 8, 16), [(X,)]),
    "halves": (lambda x: tiled(down(own(x[:, 1:] + x[:, :-1])), 8, 16), [(X.astype(np.float16),)]),
    "bfloats": (lambda x: tiled(down(own(x[:, 1:] + x[:, :-1])), 8, 16), [(X.astype("bfloat16"),)]),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", STENCILS)
def test_values_in_blocks_do_not_change_the_result(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    function, calls = STENCILS[name]
    rounding = {"halves": 2e-3, "bfloats": 2e-2}.get(name, 2e-6)
    for arguments in calls:
        program = relay.relay(function)
        found, wanted = np.asarray(program(*arguments)), np.asarray(program.interpret(*arguments))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=rounding, atol=rounding)
        assert name == "bfloats" or len(module_builder.schedules(program.core(*arguments), threads, {})) == 1


def test_the_kernel_says_what_its_blocks_compute() -> None:
    (kernel,) = module_builder.schedules(relay.relay(pyramid).core(X), 1, {})
    assert [d.reason for d in kernel.decisions] == [
        "the program asks for blocks of 8 x 16, which compute 2 values in their own memory"
    ]


def test_gradients_batches_and_names_of_values_in_blocks() -> None:
    def blurred(x):  # type: ignore[no-untyped-def]
        rows = relay.exp(across(x))
        both = down(rows) * 2.0
        return both

    named = relay.relay(schedule={"rows": {"in_blocks": True}, "both": {"tile": (8, 16)}})(blurred)
    plain = relay.relay(blurred)
    assert len(module_builder.schedules(named.core(X), 1, {})) == 1
    np.testing.assert_allclose(named(X), plain(X), rtol=1e-5)

    def loss(f: Any) -> Any:
        return relay.relay(lambda x: (f(x) ** 2).sum())

    np.testing.assert_allclose(relay.grad(loss(named))(X), relay.grad(loss(plain)).interpret(X), rtol=1e-3, atol=1e-4)
    both = np.stack([X, -X])
    np.testing.assert_allclose(relay.vmap(named)(both), relay.vmap(plain).interpret(both), rtol=1e-5)


def test_a_value_that_others_read_too_is_a_value_like_others() -> None:
    @relay.relay
    def both(x):  # type: ignore[no-untyped-def]
        rows = own(across(x))
        return tiled(down(rows), 8, 16), rows

    for found, wanted in zip(both(X), both.interpret(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    untiled = relay.relay(lambda x: down(own(across(x))))
    np.testing.assert_allclose(untiled(X), untiled.interpret(X), rtol=1e-5, atol=1e-6)


def test_what_blocks_cannot_compute_is_an_error() -> None:
    gathered = relay.relay(lambda x, i: tiled(own(relay.exp(x))[i] + 1.0, 2, 8))
    with pytest.raises(
        relay.errors.CompileError, match=r"(?s)a tile does not apply.*read along the same axes everywhere"
    ):
        gathered(X, np.int32([3, 0, 36]))
    with pytest.raises(relay.errors.TypeMismatch, match="has no tile of its own"):
        relay.relay(lambda x: relay.schedule(x, tile=(8, 8), in_blocks=True))(X)
    with pytest.raises(relay.errors.CompileError, match="no value has a tile"):
        relay.relay(schedule={"y": {"in_blocks": True}})(named_y)(X)


def named_y(x):  # type: ignore[no-untyped-def]
    y = across(x)
    return down(y)
