"""Products over named axes against NumPy, their order, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay.errors import ShapeError
from relay.ops.linalg.contraction import _best_order

RANDOM = np.random.default_rng(0)


def array(*shape: int) -> Any:
    return RANDOM.standard_normal(shape)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4))),
        ("ij,jk", ((2, 3), (3, 4))),
        ("bij,bjk->bik", ((5, 2, 3), (5, 3, 4))),
        ("ii", ((3, 3),)),
        ("ii->i", ((3, 3),)),
        ("iij->j", ((3, 3, 2),)),
        ("ba", ((2, 3),)),
        ("...ij,...jk->...ik", ((2, 1, 3, 4), (5, 4, 2))),
        ("...i->...", ((2, 3, 4),)),
        ("i...,i...", ((3, 2), (3, 2))),
        ("ij,ij->", ((2, 3), (2, 3))),
        ("i,j->ij", ((2,), (3,))),
        ("ij,k->", ((2, 3), (4,))),
        ("abc,cd,bde,e->a", ((2, 3, 4), (4, 2), (3, 2, 5), (5,))),
        ("ab,bc,cd,de,ef,fg,gh->ah", ((2, 3), (3, 4), (4, 2), (2, 5), (5, 2), (2, 3), (3, 2))),
        ("ij,ij->ij", ((2, 3), (1, 3))),
        ("i j, j -> i", ((2, 3), (3,))),
        ("ij,jk->ik", ((2, 0), (0, 3))),
        (",ij->ji", ((), (2, 3))),
    ],
)
def test_einsum_is_numpys(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    operands = [array(*shape) for shape in shapes]
    wanted = np.einsum(subscripts, *operands)
    np.testing.assert_allclose(relay.einsum(subscripts, *operands), wanted, rtol=1e-12, atol=1e-12)


def test_einsum_in_programs() -> None:
    @relay
    def energy(x, y, z):  # type: ignore[no-untyped-def]
        return relay.sum(relay.einsum("...ij,jk,k->...i", x, y, z) ** 2)

    x, y, z = array(2, 3, 4), array(4, 5), array(5)
    wanted = (np.einsum("...ij,jk,k->...i", x, y, z) ** 2).sum()
    assert_modes_agree(energy, x, y, z, expected=wanted, rtol=1e-12)
    gradient = relay.grad(energy)
    inner = 2 * np.einsum("bij,jk,k->bi", x, y, z)
    wanted_gradients = (
        np.einsum("bi,jk,k->bij", inner, y, z),
        np.einsum("bi,bij,k->jk", inner, x, z),
        np.einsum("bi,bij,jk->k", inner, x, y),
    )
    assert_modes_agree(gradient, x, y, z, expected=wanted_gradients, rtol=1e-11)
    energy(array(3, 3, 4), y, z)  # another size


def test_the_order_is_the_cheapest() -> None:
    sizes = {"a": 1000, "b": 2, "c": 1000, "d": 2}
    assert _best_order([{"a", "b"}, {"b", "c"}, {"c", "d"}], {"a", "d"}, sizes) == [(1, 2), (0, 1)]
    assert _best_order([{"a", "b"}, {"b", "c"}], {"a", "c"}, sizes) == [(0, 1)]


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk->ik", ((2, 3), (4, 5)), r"the axes 'j' have the extents 3 and 4"),
        ("ij->ik", ((2, 3),), "names 'k' twice, or no operand does"),
        ("ij->ii", ((2, 3),), "names 'i' twice"),
        ("ijk", ((2, 3),), r"'ijk' in 'ijk' do not fit the shape \(2, 3\)"),
        ("ij,jk", ((2, 3),), "are for 2 operands, found 1"),
        ("i1", ((2, 3),), "do not fit"),
        ("...i->i", ((2, 3),), "leaves out the axes of the ellipsis"),
    ],
)
def test_subscripts_that_do_not_fit(subscripts: str, shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        relay.einsum(subscripts, *(array(*shape) for shape in shapes))


def test_numpys_products() -> None:
    for axes in (0, 1, 2, ((0, 1), (1, 0)), ((-1,), (0,))):
        x, y = (array(3, 3), array(3, 3))
        np.testing.assert_allclose(relay.tensordot(x, y, axes=axes), np.tensordot(x, y, axes), rtol=1e-12)
    for left, right in (
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((2, 3), (3, 4)),
        ((), (2,)),
        ((2, 3), (5, 3, 4)),
        ((3,), (2, 3, 1)),
    ):
        x, y = array(*left), array(*right)
        np.testing.assert_allclose(relay.dot(x, y), np.dot(x, y), rtol=1e-12, atol=1e-12)
    x, y = array(2, 3), array(4)
    np.testing.assert_allclose(relay.outer(x, y), np.outer(x, y))
    a, b = array(5, 3, 2), array(5, 4, 3)
    found = relay.batch_matmul(a, b, transpose_x=True, transpose_y=True)
    np.testing.assert_allclose(found, np.swapaxes(a, 1, 2) @ np.swapaxes(b, 1, 2))
    with pytest.raises(ShapeError, match="the inner extents 3 and 4 differ"):
        relay.batch_matmul(array(2, 2, 3), array(2, 4, 2))
    np.testing.assert_array_equal(relay.diag(x, k=1), np.diag(x, 1))
    np.testing.assert_array_equal(relay.diag(y, k=-2), np.diag(y, -2))
    np.testing.assert_allclose(relay.trace(array(2, 3, 3), offset=1).shape, (2,))


def test_cholesky_of_other_matrices_is_nan() -> None:
    @relay
    def factor(a):  # type: ignore[no-untyped-def]
        return relay.cholesky(a)

    found = np.asarray(assert_modes_agree(factor, np.float64([[1, 2], [2, 1]])))
    assert np.isnan(found[1, 1]) and found[0, 0] == 1


CONTRACTED = {
    "slices": 'R.einsum("oihw,ihw->ohw", m[:, :3], image)',
    "slices of a reshape": 'R.einsum("oihw,ihw->ohw", m.reshape(2, 6, 8, 8)[:, :3], image)',
    "slices of a product": 'R.einsum("oihw,ihw->ohw", (m * 2.0)[:, 1:], image)',
    "what is taken": 'R.einsum("oihw,ihw->ohw", R.take(m, np.arange(3), axis=1), image)',
}


@pytest.mark.parametrize("name", CONTRACTED)
def test_contractions_of_slices_on_two_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_NUM_THREADS", "2")
    function = relay.from_source(f"def f(m, image):\n    return {CONTRACTED[name]}\n", {"R": relay, "np": np})
    rng = np.random.default_rng(0)
    for size in (8, 128) if name == "slices" else (8,):
        m, image = rng.random((3, 4, size, size), np.float32), rng.random((3, size, size), np.float32)
        assert_modes_agree(function, m, image)
