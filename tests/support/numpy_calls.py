"""Calls of NumPy's functions, methods and Python's operators as text, with the arrays that they mention.

Every name of NumPy, `numpy.linalg` and `math` that a program may use is found by asking, so that a new one is called,
too.
"""

from __future__ import annotations

import inspect
import math
import re
import types
from collections.abc import Iterator

import numpy as np

from relay.errors import RelayError
from relay.typecheck.elaboration.values.objects import object_entity

MODULES: dict[str, types.ModuleType] = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft, "math": math}

_RANDOM = np.random.default_rng(7)


def _floats(*shape: int) -> np.ndarray:
    return np.round(_RANDOM.normal(size=shape) * 2, 2)


def _integers(*shape: int) -> np.ndarray:
    return _RANDOM.integers(-4, 5, size=shape).astype(np.int32)


SHAPES = ((), (3,), (2, 3), (2, 3, 4))
ARRAYS: dict[str, np.ndarray] = {}
for _rank, _shape in enumerate(SHAPES):
    ARRAYS[f"x{_rank}"] = _floats(*_shape)
    ARRAYS[f"y{_rank}"] = _floats(*_shape)
    ARRAYS[f"s{_rank}"] = _floats(*_shape).astype(np.float32)
    ARRAYS[f"n{_rank}"] = _integers(*_shape)
    ARRAYS[f"l{_rank}"] = _integers(*_shape).astype(np.int64)
    ARRAYS[f"m{_rank}"] = np.asarray(_RANDOM.integers(0, 2, size=_shape), bool)
ARRAYS["special"] = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan])
ARRAYS["others"] = np.array([1.0, np.inf, np.inf, np.inf, 1.0, np.nan])
ARRAYS["q2"] = _floats(3, 3)
ARRAYS["q3"] = _floats(2, 3, 3)
ARRAYS["p2"] = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
ARRAYS["p3"] = np.stack([ARRAYS["p2"], ARRAYS["p2"] * 2])
ARRAYS["i0"] = np.array(1, np.int32)
ARRAYS["i1"] = np.array([1, 0, -1, 1], np.int32)
ARRAYS["i2"] = np.array([[1, 0], [0, -1]], np.int32)
ARRAYS["sorted1"] = np.array([-2.0, -0.5, 0.0, 0.0, 1.5])
ARRAYS["u1"] = np.array([1, 200, 250], np.uint8)
ARRAYS["b1"] = np.array([100, 100, -3], np.int8)


def accepted_names() -> Iterator[tuple[str, object]]:
    """The functions of NumPy and `math` that programs may mention, but for those whose elements, or the signs of which,
    nothing defines, as eigenvectors have them."""
    for prefix, module in MODULES.items():
        for name in sorted(dir(module)):
            function = getattr(module, name)
            if (
                name.startswith(("_", "empty"))
                or name in ("eigh", "svd")
                or not callable(function)
                or isinstance(function, type)
            ):
                continue
            try:
                object_entity(function, None)
            except RelayError:
                continue
            yield f"{prefix}.{name}", function


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """Rows `name: text; text; ..`, which go on in lines that are indented."""
    rows = text.strip().replace("\n ", " ").splitlines()
    pairs = (row.split(":", 1) for row in rows)
    return {name: tuple(part.strip() for part in parts.split(";")) for name, parts in pairs}


_FIRST = _table("""
np.unique: n2 > 0, axis=0; i2[[0, 1, 0]], axis=0; i2[[0, 1, 0]], True, True, True, 0; n2[:, [0, 1, 0]], axis=1; x1;
  n1; n2; n3; x0; m2; special; i1; s1; x1[:0]; n1[:0]; u1; [3, 1, 3]; np.concatenate((x1, x1))
np.isin: n1, l1; n2, [0, 1]; x1, x1[:2]; n3, n1; x1, x1[:0]; special, special; n0, n1; 2, n1; m1, m1
np.setxor1d: n1, i1; n2, n1; x1, sorted1; x1[:0], x1
np.intersect1d: n1, n1; i1, n2, return_indices=True; n1, i1; x1, sorted1; n2, n1; x1[:0], x1
np.setdiff1d: n1, i1; n2, n1; x1, sorted1; x1, x1[:0]; x1[:0], x1
np.union1d: n1, i1; n2, n1; x1, sorted1; x1[:0], x1
np.convolve: x1, y1; x1, sorted1; sorted1, x1; n1, n1; x1, 2.0; x1, x1[:1]; x1, [1.0, -1.0]; s1, s1; sorted1, x1[:2]
np.correlate: x1, y1; x1, sorted1; sorted1, x1; n1, n1; x1, 2.0; x1, x1[:1]; x1, [1.0, -1.0]; sorted1, x1[:2]; x1[:2],
  sorted1
np.polyadd: x1, y1; [1.0, 2.0], x1; n1, n1; 3.0, x1
np.polysub: x1, y1; [1.0, 2.0], x1; n1, n1
np.polymul: x1, y1; [1.0, 2.0], x1; n1, n1
np.polydiv: x1, [1.0, 2.0]; [1.0, 2.0, 1.0], [1.0, 1.0]; [1.0, 2.0], x1; x1, 2.0; sorted1, x1[:2]
np.polyder: x1; x1, 2; n1; [3.0, 2.0, 1.0]; x1, 0
np.polyint: x1; x1, 2; n1; x1, 1, 2.0; x1, k=[3.0]; x1, 2, [1.0, 2.0]
np.polyfit: x1, y1, 1; x2.ravel(), y2.ravel(), 2; sorted1 * 1.0, sorted1, 0; x2[0], x2.T, 1
np.poly: x1; [1.0, 2.0]; x1[:0]
np.polyval: x1, y1; x1, x2; [1.0, 2.0], x1; n1, n1; [1, 2, 3], x0; [1, 2], 3; x1, 2.0
np.unwrap: x1; x2; x3; sorted1 * 4.0; s1; n1
np.gradient: x1; x2; x3; s1; x1, 0.5; x1, sorted1[:3]; x2, 2.0; x2, 0.5, 2.0; n1; x1 * 2.0, 2; x3, 1.0, [0.0, 1.0,
  4.0], 2.0; x2, sorted1[[0, 4]], x1; x3, 2.0, [0.0, 1.0, 3.0], axis=(2, 1); x3, edge_order=2, axis=1; sorted1,
  x2.ravel()[:5] + [0.0, 9.0, 18.0, 30.0, 40.0], edge_order=2; x3, axis=(0, 2)
np.hanning: 5; 1; 0; 8
np.hamming: 5; 1; 0; 8
np.blackman: 5; 1; 0; 8
np.quantile: x0, 0.5; x1, 0.5; x2, 0.3; x3, 0.9; x1, [0.1, 0.5]; x2, [0.25, 0.75]; n2, 0.4; special, 0.5; s2, 0.5; x1,
  1.0; x1, 0; n2, 0.4, method='nearest'; u1, 0.5, method='inverted_cdf'; x2, 0.5, (0, 1); x3, q2[:2] * 0.1 + 0.5; x1,
  0.3, weights=[1.0, 0.0, 2.0], method='inverted_cdf'; x3, [0.2, 0.9], 1, weights=[0.0, 1.0, 2.0],
  method='inverted_cdf'
np.nanquantile: special, 0.5; special, [0.1, 0.9]; x1, 0.5; x2, 0.3; x3, [0.25, 0.75]; s2, 0.5; special[5:], 0.5; n2,
  0.4
np.nanpercentile: special, 50; special, [10.0, 90.0]; x1, 50; x2, 30; n2, 40
np.percentile: x0, 50; x1, 50; x2, 30; x3, 90; x1, [10, 50]; x2, [25.0, 75.0]; n2, 40; special, 50; x1, 100; x1, 0
np.histogram: x3, sorted1[[0, 1, 4]]; x1; x3; n2; x1, 3; x3, 4, (-1.0, 1.0); x3, sorted1[1:3]; x2, [-4.0, 0.0, 4.0];
  n3, 5; x1 * 0.0, 2; x1[:1], 3
np.cov: x1; x2; x1, y1; x2, y2; n2
np.corrcoef: x1; x2; x1, y1; x2, y2; n2
np.lexsort: (x1, y1); (n1, i1[:3]); (n1, n1, x1); (m1, n1)
np.delete: x1, 1; x1, -1; x2, 0; x2, i0; x3, 5; n1, 1; x1, [0, 2]; x1, [0, 0]; x1, m1; x2, [0, -1]; x1[:1], 0
np.insert: x1, 1, 5.0; x1, -1, 5.0; x1, 3, 2; x1, 1, [5.0, 6.0]; x2, 1, 5.0; n1, 0, 7; n1, i0, 3; x1[:0], 0, 1.0; n1,
  1, 2.7
np.compress: m1, x1; [True, False], x1; m1, n1; m1, x2; n1, x1
np.extract: m1, x1; m2, x2; m3, n3; x2 > 0.0, x2; n1, x1
np.array_split: x1, 2; x1, 5; x2, 2; x3, 3; x1, [1, 2]; n1, 3; sorted1, 3
np.hsplit: x2, 3; x1, 3; x2, [1]; x3, 3
np.vsplit: x2, 2; x3, 2; x2, [1]; x1, 3
np.dstack: (x1, y1); (x2, y2); (x3, y3); (x0, y0); [n2, n2]
np.identity: 3; 1; 0
np.apply_along_axis: np.sum, 0, x2; np.sum, 1, x2; np.cumsum, 0, x2; np.sort, 1, x3; np.cumsum, -1, x3; np.mean, 0,
  x1; lambda v: v[::2], 2, x3
np.vdot: x1, y1; x2, y2; n1, n1; x0, y0; x1, x2; m1, m1
np.kron: x1, y1; x2, y1; x2, y2; q2, x2; x0, y2; n1, n1; x1, 2.0; x3, y2; m1, m1; x1, x3
np.nanmax: special; special[:5]; x0; x1; x2; x3; n2; s2; special[5:]; u1
np.nanmin: special; special[:5]; x0; x1; x2; x3; n2; s2; special[5:]; u1
np.nanargmax: special; x1; x2; x3; n2
np.nanargmin: special; x1; x2; x3; n2
np.bincount: abs(n1), minlength=10; abs(n1), x1, 10; i1 + 1, minlength=5; abs(n1); i1 + 1, i1; abs(n1), minlength=1;
  n1[:0]
np.cross: x1, y1; q2, p2; x1, q2; n1, n1
np.ix_: [0, 1], [0, 2]; n1, n1; [0, 1], [1], [0, 2, 1]
np.all: m0; m1; m2; m3; n2
np.any: m0; m1; m2; m3; n2
np.arange: 5; 2, 7; 7, 2, -2; 0.0, 1.0, 0.25; 5.0; stop=4; 1, stop=4; 0, 1, 0.1
np.broadcast_to: x0, (2, 3); x1, (2, 3); x2, (2, 2, 3); x0, 3; x1, shape=(2, 3)
np.clip: x2, -1.0, 1.0; x1, None, 0.5; x1, 0.5, None; n2, -1, 2; special, -1.0, 1.0; x2, 1.0, -1.0
np.concatenate: (x1, y1); (x2, y2); [x3, y3]; (n1, n1); (x1, y2); (x0, y0)
np.dot: m1, m1; m2, m1; x0, y0; x0, y2; x1, y1; q2, x1; x1, q2; x2, q2; q3, x1; q3, q2; q2, q3; q3, q3; x1, q3; x1,
  2.0; n1, n1
np.einsum: "ij,kj->ik", m2, m2; "ij->j", m2; "ij,jk", x2, q2; "ji", x2; "ij->", x2; "ii", q2; "ii->i", q2; "...i,i",
  x3, y1[:1]; "i,j", x1, y1; "...ij->...ji", x3; "ba", x2; "i,i", x1, y1
np.expand_dims: x0, 0; x0, -1; x0, (0, 1); x1, 0; x1, -1; x1, (0, 1); x2, 0; x2, -1; x2, (0, 1); x1, axis=1
np.eye: 3; 2, 3; 3, 3, 1; 3, k=-1; N=2; 3, M=2; 2, None, 0
np.full: 3, 2; (2, 3), 1.5; (2,), True; shape=2, fill_value=3; (2, 3), x0; (2, 3), x1
np.full_like: x2, 1.5; n2, 2; x1, fill_value=2.0; m1, True; n1, 2.7; x1, 2
np.linspace: 0.0, 1.0; 0, 1, 5; 2.0, -1.0, 4; 0.0, 1.0, 1; 0.0, 1.0, 0; x0, y0, 5; x1, y1, 4; x2, 1.0, 3; x1, y2, 2,
  axis=1; 0, 10, 7, dtype=int; x0, 1.0, 4, False, True; 0.0, x1, 3, retstep=True
np.matmul: m2, m1; x1, y1; q2, x1; x1, q2; x2, q2; q3, x1; q3, q2; q2, q3; q3, q3; x1, q3; x0, y0; n1, n1
np.meshgrid: x1, sorted1; x1; x1, y1, sorted1; x0, y1; x1, y1, sparse=True, indexing='ij'; x1, y1, sorted1, sparse=True
np.moveaxis: x3, 0, 2; x3, -1, 0; x3, (0, 1), (2, 0); x2, source=0, destination=1
np.ones: 3; (2, 3); (); shape=(2,)
np.zeros: 3; (2, 3); (); shape=(2,)
np.inner: m1, m1; m2, m2; x1, y1; x2, y1; x2, y2; q3, q2; x0, y2; x1, 2.0; n1, n1
np.outer: m1, m1; x1, y1; x2, y1; x0, y0; x2, y3; n1, n1
np.linalg.outer: m1, m1; x1, y1; x2, y1; x0, y0
np.pad: x1, 1; x1, (1, 2); x2, 1; x2, (1, 2); x2, ((1, 0), (0, 2)); x1, pad_width=1; n2, 1; x1, [1, 2]; x1, [(1, 2)];
  x0, 1; x2, [(1, 2)]; x2, ((1,), (2,))
np.repeat: x0, 2; x0, 0; x1, 2; x1, 0; x2, 2; x2, 0; x3, 2; x3, 0; x1, [1, 0, 2]; x2, repeats=2; x1, n1
np.reshape: x2, 6; x2, (3, 2); x2, -1; x3, (6, -1); x2, shape=(3, 2); x0, (1, 1); n2, (-1, 2)
np.roll: x0, 1; x0, -2; x0, 7; x1, 1; x1, -2; x1, 7; x2, 1; x2, -2; x2, 7; x3, 1; x3, -2; x3, 7; x2, (1, 2); x2,
  shift=1
np.searchsorted: sorted1[[2, 0, 1]], 0.1, sorter=np.argsort(sorted1[[2, 0, 1]]); sorted1, 0.0; sorted1, x1; sorted1,
  x2; sorted1, v=x0; x2, x0
np.split: x1, 3; x3, 2; x3, [1]; x1, (1, 2); x2, indices_or_sections=2; x1, 2; x1, [-1]; x1, [2, 9]
np.stack: (x1, y1); (x2, y2); [x0, y0]; (n1, n1); (x1, y2); [x3, y3]
np.swapaxes: x2, 0, 1; x3, 0, -1; x3, axis1=1, axis2=2
np.take: x0, i0; x0, i1; x0, i2; x0, 1; x0, [0, 1]; x0, -1; x1, i0; x1, i1; x1, i2; x1, 1; x1, [0, 1]; x1, -1; x2, i0;
  x2, i1; x2, i2; x2, 1; x2, [0, 1]; x2, -1; x3, i0; x3, i1; x3, i2; x3, 1; x3, [0, 1]; x3, -1; x2, indices=i1; x2, 9
np.take_along_axis: x1, i1; x2, i2[:, :1]; x2, i2; x1, indices=i1
np.tensordot: m2, m2; m1, m1, 1; x2, y2; x1, y1, 1; x1, y1, 0; q3, q3, 2; q2, q2, ([0], [1]); q3, q2, (2, 0); q2, q2,
  ((0, 1), (1, 0)); x1, y1
np.tile: x0, 2; x0, (2, 3); x0, (2, 1, 2); x1, 2; x1, (2, 3); x1, (2, 1, 2); x2, 2; x2, (2, 3); x2, (2, 1, 2); x3, 2;
  x3, (2, 3); x3, (2, 1, 2); x1, reps=2
np.trace: x2; q2; q3; x3; x1; n2
np.linalg.trace: x2; q2; q3; x3; x1; n2
np.diagonal: x2; q2; q3; x3; x1; n2
np.linalg.diagonal: x2; q2; q3; x3; x1; n2
np.tri: 3; 2, 3; 3, 3, 1; 3, k=-1; N=2; 3, M=2
np.where: m0, x0, y0; m1, x1, y1; m2, x2, y2; m3, x3, y3; m2, 1.0, 0.0; m2; m1, x2, 0.0; n1, x1, y1; m1, n1, 0; m1, 1,
  0; x1, x1, y1
np.hstack: (x0, y0); (x1, y1); [x2, y2]; (x3, y3); (x1, y2)
np.vstack: (x0, y0); (x1, y1); [x2, y2]; (x3, y3); (x1, y2)
np.column_stack: (x0, y0); (x1, y1); [x2, y2]; (x3, y3); (x1, q2)
np.array: x2; [x1, y1]; [[x0, y0], [1.0, 2.0]]; [1, 2]; [1, 2.5]; [True, False]; 3; [n0, 1]; [(x0, y0), (y0, x0)];
  [x1, [1.0, 2.0, 3.0]]; [True, 2]; [n0, 1.5]
np.asarray: x2; [x1, y1]; [1, 2.5]; 3.5
np.array_equal: x2, x2; x2, y2; x1, x2; n1, n1; special, special; x1, n1
np.isclose: x2, y2; x1, x1; special, others; others, special; special, 1.0; n1, n1; special, special
np.allclose: x2, y2; x1, x1; special, others; special, special; x1, y2
np.round: x0; x1; x2; x3; n2; special; s1
np.unique: n1; x1; x2
np.linalg.norm: x0; x1; x2; x3; q2; s1; s2; n1; special
np.linalg.solve: q2, x1; q2, q2; q3, q3; q3, x1; x2, x1
np.linalg.cholesky: p2; p3; x1
np.linalg.det: q2; q3; p2; x1; x2
np.linalg.inv: q2; q3; p2; x1; x2
np.linalg.slogdet: q2; q3; p2; x1; x2
np.choose: [1, 0, 1], (x1, y1); i0, (x1, y1, x1); [1, 0], [3.0, 4]; abs(n2) % 2, [x2, y1]; n1, (x1, y1)
np.ldexp: x1, n1; x2, 3; s1, n1; 1.5, [1, -2, 100]; special, 2; 3.0, -1060; s1, -140
np.bartlett: 5; 1; 0; 8
np.kaiser: 5, 8.6; 1, 2.0; 8, 0.0; 4, x0
np.i0: x0; x1; x2; s1; sorted1 * 100.0
np.fft.fftfreq: 8; 5; 4, 0.1
np.fft.rfftfreq: 8; 5; 4, 0.1
np.histogram2d: x1, y1; x2.ravel(), y2.ravel(), 3; x1, y1, (2, 4); x2.ravel(), y2.ravel(), [3, 2], ((-1, 1), (-2.0,
  2.0))
np.histogram_bin_edges: x1; x3, 4; n2; x2, sorted1[1:3]; x2, 3, (0, 1); x1 * 0.0
np.linalg.qr: x2; q2; p2; x2.T; q3
np.linalg.eigvalsh: p2; p3; q2
np.linalg.svdvals: x2; x3; q2; p2; x2.T
np.linalg.matrix_rank: x2; q2; x2.T @ x2; np.zeros((2, 2)); x1; q3
np.linalg.cond: q2; p2; q2, 1; q2, np.inf; p2, -2; p2, 'fro'; q3
np.linalg.pinv: x2; x2.T; q2; x2.T @ x2, 1e-10; x3
np.linalg.lstsq: x2.T, x1; q2, x1; x2, x2[:, 0]; x2.T, q2; x2.T @ x2, x1
np.linalg.matrix_power: q2, 3; q2, 0; q2, -2; q3, 2; q2, 1; q2, 5
np.linalg.multi_dot: (x2, q2, x1); [q2, p2]; [x1, q2, x1]
np.linalg.vecdot: x1, y1; x2, y2; x2, y1; n1, n1
np.vecdot: x1, y1; x2, y2; x2, y1; n1, n1
np.matvec: x2, x1; q3, x1; q3, x2
np.vecmat: x1, q2; x1, q3; x2, q3
np.linalg.vector_norm: x1; x2; x3; x3, axis=(0, 1); x2, ord=1
np.linalg.matrix_norm: x2; x3; q2; q3
np.linalg.cross: x1, y1; q2, p2
np.linalg.tensorsolve: q2, x1; np.reshape(np.eye(6) + 0.1, (2, 3, 2, 3)), x2
np.linalg.tensorinv: np.reshape(np.eye(6) + 0.1, (2, 3, 2, 3)); np.reshape(np.eye(6) + 0.1, (6, 2, 3)), 1
np.linalg.matmul: m2, m1; x1, y1; q2, x1; x2, q2; q3, q2; q3, q3
np.linalg.tensordot: x2, y2; q3, q2
math.comb: 5, 2; 7, 0; 3, 5; 6, 6
math.dist: x1, y1; [1.0, 2.0], [4.0, 6.0]; (x0,), (y0,)
math.isclose: x0, x0; x0, y0; 1.0, 1.0 + 1e-12; 1.0, 1.1, rel_tol=0.2; 0.0, 1e-9, abs_tol=1e-8
math.isqrt: 0; 1; 15; 16; 99
math.prod: x1; n1; x2; [2, 3]; (2.0, 3); [x0, y0]
np.append: x1, 1.5; x1, y1; x2, y1; x2, y2; x0, y0; n1, 3; [1.0, 2.0], [3.0]; x1, [1.0, 2.0]; m1, True; x3, y3
np.average: x0; x1; x2; x3; s2; n1; special; x1, None, y1; x2, 0; x2, -1, y2; x3, 1, np.array([1.0, 2.0, 3.0]); x1, 0,
  [1.0, 2.0, 3.0]; x2, None, np.abs(y2)
np.digitize: x0, sorted1; x1, sorted1; x3, sorted1; 0.0, sorted1; sorted1, sorted1; x2, sorted1[::-1]; special,
  sorted1; sorted1, sorted1[::-1]; x1, x1[:1]; x1, [0.0, 1.0]; x0, (3, 1), True
np.interp: x0, sorted1[:3], y1; x1, sorted1[:3], y1; x3, sorted1[:3], y1; 0.3, sorted1[:3], x1; special, sorted1[:3],
  y1; x2, x1[:1], y1[:1]; -9.0, sorted1[:3], y1; sorted1, sorted1[:3], x1; x1, sorted1, y1; x2, [0.0, 1.0], [2.0,
  3.0]; x0, (0, 2, 4), (1, 2, 9)
np.nan_to_num: x0; x1; special; others; s2; n2; m1; x3; u1
np.select: [x1 > 1.0, x1 < 0.0], [x1, y1]; (m2, m2), (x2, y2); [m2], [x1]; [m0], [x0]; [m1, m1], [n1, 2 * n1]
np.trapezoid: x1; x2; x3; x1, y1; x2, x1; x2, y2; x3, x1[:2], 1.0, 1; s1; x2, None, 0.5; x2, None, 2.0, 0; n1; x1[:0]
np.vander: x1; x1, 2; x1, 4; n1; x1, 0; x1, 3, True; x2; s1; x1[:0]
np.unstack: x1; x2; x3; x3, axis=1
np.dsplit: x3, 2; x3, [1]; x2, 1
np.astype: x1, np.float32; n1, float; x2, bool; x2, np.int32
np.broadcast_shapes: (2, 3), (3,); (2, 1), (1, 4); 3, (2, 3); (2,), (3,); ()
np.broadcast_arrays: x1, x2; x2, y0, x3[:, :1, :1]; n1, 2; x1, x3
np.resize: x1, 5; x1, (2, 4); x2, (2, 2); n1, 2; x1[:0], 2
np.trim_zeros: n2.ravel() * (n2.ravel() > 1); m1; x1; x1 * 0.0; np.array([0, 0, 1, 0, 2, 0]), 'f'; np.array([0, 0, 1,
  0, 2, 0]), 'b'
np.block: [x1, y1]; [[x2, x2], [y2, y2]]; [[q2, x1[:, None]], [x1, x0]]; x1; [[x2], [y2]]; [1, 2, 3]; [[[x1], [y1]]]
np.size: x0; x1; x2; x3; x2, 1; [1, 2]; 3; x3, (0, 2)
np.fromfunction: lambda i, j: i + 2.0 * j, (2, 3); lambda i: i * i, (4,), dtype=int
np.diag_indices: 3; 2, 3; 0
np.diag_indices_from: q2; p3[:, :2, :2]
np.tril_indices_from: x2; q2; q2, 1
np.triu_indices_from: x2; q2; q2, -1
np.rollaxis: x2, 1; x3, 2; x3, 0, 3; x3, -1; x3, 1, 2; x1, 0
np.indices: (2, 3); (4,); (2, 1, 3); (0, 2)
np.unravel_index: 5, (2, 3); i1 + 1, (2, 3); i0, 4; i2 + 1, (2, 3, 4)
np.ravel_multi_index: (1, 2), (2, 3); (i1 + 1, i1 + 1), (3, 4); (i2 + 1, i2 + 1, i2 + 1), (3, 4, 5)
np.logspace: 0.0, 1.0; 0, 2, 5; 2.0, -1.0, 4; x0, y0, 3; 0.0, 1.0, 4, False; 0.0, 3.0, 4, base=2.0; x1, y1, 3; 0.0,
  x1, 3, axis=1; 0, 3, 4, dtype=int
np.geomspace: 1.0, 8.0; 1, 1000, 4; 8.0, 0.5, 5; -1.0, -8.0, 4; 1.0, 8.0, 3, False; np.abs(x1), np.abs(y1), 4; 1.0,
  1000.0, 4, dtype=np.float32; 1.0, np.abs(x1), 3, axis=1
np.rot90: x2; x3; n2; x2, 2; x2, 3; x2, -1; x2, 4; x3, 1, (1, 2); x3, 2, (0, 2); x3, 3, (2, 0); x1; x2[:, :0]
np.diff: x1; x2; x3; n2; m2; u1; s1; x1, 2; x2, 1, 0; x3, 2, 1; x1, 0; x1, 5; x0; x1[:0]; special; x1, -1
np.nonzero: x1; x2; x3; n2; m2; s2; x1[:0]; x2[:, :0]; x2[:0]
np.argwhere: x1; x2; x3; m2; x1[:0]; x2[:0]
np.count_nonzero: x0; x1; x2; x3; n2; s2; m0; m1; m2; m3; special; u1; True; [1.5, 0.0]; x2 > 0.0; x1[:0]
np.issubdtype: x1.dtype, np.floating; n1.dtype, np.floating; n1.dtype, np.integer; u1.dtype, np.signedinteger;
  s1.dtype, np.float64; m1.dtype, np.bool_; m1.dtype, np.number; np.float32, np.float32; l1.dtype, np.int64
np.ptp: x0; x1; x2; x3; n2; s2; special; u1; x1[:1]
""")
"""The arguments of calls, where they are no single arrays."""

_VALUES = _table("""
method: 'linear'; 'lower'; 'higher'; 'midpoint'; 'nearest'; 'inverted_cdf'; 'closest_observation'; 'hazen';
  'averaged_inverted_cdf'; 'interpolated_inverted_cdf'; 'weibull'; 'median_unbiased'; 'normal_unbiased'
overwrite_input: True
invert: True; False
assume_unique: False
return_indices: True
discont: 1.0
edge_order: 1; 2
range: (-1.0, 1.0)
density: True; False
bins: 3; 'auto'
rowvar: True; False
bias: True; False
fweights: None; [1, 2, 3]
aweights: None; [0.5, 2.0, 1.0]
axis: None; 0; 1; -1; 2; (0, 1); (0,); ()
axisa: 0
axisb: 0
axisc: 0
axis1: 1
axis2: 2; -1
keepdims: True; False
dtype: np.float32; np.float64; np.int64; np.int32; float; None; bool
out: None; x1
where: True; False; m2
initial: 0; 5.0
order: 'C'; 'F'; None
mode: 'raise'; 'clip'; 'wrap'; 'constant'; 'edge'; 'reflect'; 'symmetric'; 'mean'; 'median'; 'maximum'; 'minimum';
  'linear_ramp'; 'full'; 'same'; 'valid'
kind: None; 'stable'; 'quicksort'
stable: True; None
ddof: 0; 1
correction: 1
mean: 0.0
k: 0; 1; -1
offset: 0; 1; -1
indexing: 'xy'; 'ij'
sparse: True
copy: True; False
endpoint: True; False
retstep: True; False
num: 3
side: 'left'; 'right'
sorter: None; i1
decimals: 0; 1; -1
axes: None; (1, 0); (2, 0, 1); (-1, 0); 0; 1; 2; [[0], [0]]
subok: True; False
shape: (2,)
return_index: True; False
return_inverse: True
return_counts: True
equal_nan: True; False
sorted: True
ord: None; 1; 2; -1; -2; np.inf; -np.inf; 0; 3; 'fro'; 'nuc'; 0.5
upper: True; False
rtol: 0.1
atol: 1.0
min: 0.0; None
max: 0.5
a_min: 0.0; None
a_max: 0.5; None
device: None; 'cpu'
like: None
casting: 'same_kind'; 'unsafe'
optimize: True
start: 2
ndmin: 0; 2
constant_values: 1.0; (1, 2); ((1, 2), (3, 4))
reflect_type: 'odd'
end_values: 2.0; (1.0, 3.0)
stat_length: 2; (1, 2)
signature: None
step: 2
m: 2
M: 2
base: 2.0
reverse: True
descending: True
n: 0; 1; 2; -1
prepend: 0.0; y1; y2[:, :1]
append: 0.0; [1.0, 2.0]
weights: None; y1; [1.0, 2.0, 3.0]; y2
returned: True; False
right: True; False; 2.0
left: 3.0
period: 4.0
nan: 1.0
posinf: 5.0
neginf: -5.0
default: 7; 2.5
dx: 0.5
x: x1
N: 2; 0
increasing: True; False
to_end: 1.0; [1.0, 2.0]
to_begin: 1.0; [1, 2]
stop: 6
""")
"""Values of keyword arguments, each of which is given alone."""

_PAIRS = _table("""
np.linalg.norm: ord=None, axis=0; ord=None, axis=0, keepdims=True; ord=None, axis=-1; ord=None, axis=-1,
  keepdims=True; ord=None, axis=(0, 1); ord=None, axis=(0, 1), keepdims=True; ord=None, axis=None; ord=None,
  axis=None, keepdims=True; ord=1, axis=0; ord=1, axis=0, keepdims=True; ord=1, axis=-1; ord=1, axis=-1,
  keepdims=True; ord=1, axis=(0, 1); ord=1, axis=(0, 1), keepdims=True; ord=1, axis=None; ord=1, axis=None,
  keepdims=True; ord=2, axis=0; ord=2, axis=0, keepdims=True; ord=2, axis=-1; ord=2, axis=-1, keepdims=True; ord=2,
  axis=(0, 1); ord=2, axis=(0, 1), keepdims=True; ord=2, axis=None; ord=2, axis=None, keepdims=True; ord=-2, axis=0;
  ord=-2, axis=0, keepdims=True; ord=-2, axis=-1; ord=-2, axis=-1, keepdims=True; ord=-2, axis=(0, 1); ord=-2,
  axis=(0, 1), keepdims=True; ord=-2, axis=None; ord=-2, axis=None, keepdims=True; ord=np.inf, axis=0; ord=np.inf,
  axis=0, keepdims=True; ord=np.inf, axis=-1; ord=np.inf, axis=-1, keepdims=True; ord=np.inf, axis=(0, 1); ord=np.inf,
  axis=(0, 1), keepdims=True; ord=np.inf, axis=None; ord=np.inf, axis=None, keepdims=True; ord=0, axis=0; ord=0,
  axis=0, keepdims=True; ord=0, axis=-1; ord=0, axis=-1, keepdims=True; ord=0, axis=(0, 1); ord=0, axis=(0, 1),
  keepdims=True; ord=0, axis=None; ord=0, axis=None, keepdims=True; ord=3, axis=0; ord=3, axis=0, keepdims=True;
  ord=3, axis=-1; ord=3, axis=-1, keepdims=True; ord=3, axis=(0, 1); ord=3, axis=(0, 1), keepdims=True; ord=3,
  axis=None; ord=3, axis=None, keepdims=True; ord='fro', axis=0; ord='fro', axis=0, keepdims=True; ord='fro', axis=-1;
  ord='fro', axis=-1, keepdims=True; ord='fro', axis=(0, 1); ord='fro', axis=(0, 1), keepdims=True; ord='fro',
  axis=None; ord='fro', axis=None, keepdims=True; ord='nuc', axis=0; ord='nuc', axis=0, keepdims=True; ord='nuc',
  axis=-1; ord='nuc', axis=-1, keepdims=True; ord='nuc', axis=(0, 1); ord='nuc', axis=(0, 1), keepdims=True;
  ord='nuc', axis=None; ord='nuc', axis=None, keepdims=True
np.pad: mode='reflect', reflect_type='odd'; mode='symmetric', reflect_type='odd'; mode='linear_ramp', end_values=2.0;
  mode='linear_ramp', end_values=(1.0, 3.0); mode='mean', stat_length=2; mode='maximum', stat_length=(1, 2)
np.max: initial=-1.0, where=m2; initial=5.0, axis=0, keepdims=True
np.std: where=m2, ddof=1; axis=0, where=m2; mean=0.5, axis=0
np.sum: axis=1, keepdims=True; axis=(0, 1), keepdims=True; axis=0, dtype=np.float64
""")


def parameters(name: str, function: object) -> list[str]:
    """The names of the parameters that follow a function's operands."""
    if isinstance(function, np.ufunc):
        return ["out", "where", "dtype"]
    try:
        names = list(inspect.signature(function).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        names = ["dtype", "copy", "order", "ndmin"]
    if name == "np.pad":
        names += ["constant_values", "reflect_type", "stat_length", "end_values"]
    return [*names, "reverse", "descending"]


_ONE = tuple(f"{kind}{rank}" for rank in range(4) for kind in ("xnms" if rank in (0, 2) else "xl"))
_OTHER_ONE = (
    "special", "2", "0.5", "-3", "u1", "b1", "x1[:0]", "x2[:0]", "x2[:, :0]", "True", "[1.5, 2.0]", "p2",
    "[[1, 2], [3, 4]]",
)  # fmt: skip
_TWO = tuple(f"{a}{rank}, {b}{rank}" for rank in range(4) for a, b in ("xy", "nn", "mm", *(("ss", "ll") * (rank == 1))))
_OTHER_TWO = """x2, y1; x1, 2.0; x2, 2; n2, 3;
 n1, -2; 3, n1; 2, 3; -7, 2; 2.5, -2; special, others; others, special; x1, n1;
n1, 2.5; n1, l1; u1, b1; x1, y2; special, 0.0; 7, 0; n1, 40; 1, 40; n1, 0; True, True; b1, 2; u1, 3; x1[:0],
x1[:0]"""


def _defaults(name: str, function: object) -> tuple[str, ...]:
    """Arguments of calls that give nothing more than is needed."""
    if name in _FIRST:
        return _FIRST[name]
    if name == "np.concat":
        return _FIRST["np.concatenate"]
    if name == "np.argsort":  # equal elements stand in any order there
        return ("x0", "x1", "x2", "x3", "s1", "s2", "special[:5]", "sorted1[1:3]")
    if name in ("math.pow", "math.atan2", "math.gcd", "math.lcm", "math.hypot", "math.copysign"):
        return ("x0, y0", "2, 3", "n0, 2", "2.5, -1.5", "n0, n0", "7, 2.5", "2, -1", "5, 3")
    if name.startswith("math."):
        return ("x0", "2", "0.5", "n0", "x1", "s0", "-3", "1.5", "True")
    if isinstance(function, np.ufunc) and function.nin == 2:
        return (*_TWO, *_OTHER_TWO.replace("\n", " ").split("; "))
    return (*_ONE, *_OTHER_ONE)


def _spread(texts: list[str]) -> list[str]:
    """Up to four of them, from the first to the last."""
    return texts if len(texts) < 5 else [texts[i * (len(texts) - 1) // 3] for i in range(4)]


def calls(name: str, function: object) -> Iterator[str]:
    """Calls of a function as text: with defaults, each keyword alone, and keywords given by position."""
    plain = _defaults(name, function)
    for arguments in plain:
        yield f"{name}({arguments})"
    keyed = [p for p in plain if re.match(r"[\[(]?[xmqpn][123]", p)] or list(plain)
    for arguments in _spread(keyed):
        for keyword in parameters(name, function):
            if f"{keyword}=" not in arguments:
                yield from (f"{name}({arguments}, {keyword}={value})" for value in _VALUES.get(keyword, ()))
        yield from (f"{name}({arguments}, {more})" for more in _PAIRS.get(name, ()))
        if "=" not in arguments:
            yield from (f"{name}({arguments}, {more})" for more in _BY_POSITION)


_BY_POSITION = ("1", "0, None", "0, np.float64", "0, 'stable'", "0, 0, 1", "0, None, None, True")

METHODS = (
    "all", "any", "argmax", "argmin", "argsort", "astype", "choose", "clip", "compress", "conj", "copy", "cumprod",
    "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "prod", "ravel", "repeat", "reshape", "round",
    "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var",
)  # fmt: skip
_METHOD_ARGUMENTS = _table("""
choose: (x1, y1)
compress: m1; [True, False], 0; [False, True], axis=1
conj: ;
astype: np.float32; float; bool; np.float64, copy=False
clip: -1.0, 1.0; min=0.0; max=0.0; 0, 1; -1.0; None, 1.0
dot: x1; 2.0; q2; q3
repeat: 2; 2, 0; repeats=2; [1, 2]; 2, axis=-1
searchsorted: 0.0; x1; 0.0, 'right'; 0.0, side='right'
reshape: -1; 6; (3, 2); 3, 2; (2, -1); 2, -1; 1, -1; -1, order='F'; ()
swapaxes: 0, 1; 0, -1; -1, -2
take: i1; i0; 1; i2; i1, 0; i1, axis=-1; i1, mode='clip'; i1 + 5, 0, None, 'wrap'; [0, 1]; i1, axis=None
transpose: ; 1, 0; (1, 0); 2, 0, 1; (2, 0, 1); None; 0
""")
_AXES = tuple(
    """; 0; -1; None; axis=1; axis=None; axis=(0, 1); keepdims=True; 0, None; 0, np.float64; dtype=np.float64; 0, None,
None, True; where=m2; ddof=1; 0, 1; offset=1; 'F'; 0, 'stable'; 1; descending=True""".replace("\n", " ").split("; ")
)


def method_calls() -> Iterator[str]:
    """Calls of methods of arrays as text."""
    for name in METHODS:
        receivers = ["x0", "x1", "x2", "x3", "n2", "m1", "u1"] if name != "choose" else ["(n1 % 2)", "u1"]
        for receiver in receivers:
            for arguments in _METHOD_ARGUMENTS.get(name, _AXES):
                yield f"{receiver}.{name}({arguments})"


_NUMBERS = ("0", "3", "-7", "40", "-2.5", "0.0", "2**31", "2**40", "True")
_OTHERS = ("3.5", "-0.5", "1e20", "2.675", "-3")
_EXPRESSIONS = tuple(
    """1 << -1; 1 << 62; 1 << 64; 2**63-1; 2**64; -2**63; 0xffffffff; 10**18; (1 << 31) - 1; (1<<40) >> 38; 7 & ~2;
5 ^ 1 << 3; sum([1,2,3]); sum((1.5,2), 1); max([1,5,2]); min(3,1.5); len([1,2]); int('12'); float('inf'); int(2.9);
int(-2.9); (-8) ** (1/3); 0 ** -1; 0.0 ** -1; 2.0 ** 1024; -7 // 2; -7 % 3; 7 % -3; -7.5 % 2; 7.5 // -2; 5 % 0; 5.0
// 0; 1/0; 2 ** -1; (-2) ** -3; 2 ** 0.5; not 3; 1 if 2**40 > 5 else 0; (1<<40) * x0; x1 * (1 << 20); n1 + (1<<40);
l1 + (1<<40); l1 << 33; n1 << 3; n1 >> 1; n1 << 40; n1 // 3; n1 % -3; n1 // -3; n1 & 6; n1 ** 2; n1 ** -1; x1 ** -1;
x1 // 0.7; x1 % -0.7; divmod(n1, -3); divmod(x1, 0.7); round(x0); abs(n1); int(x0); float(n0); bool(n0); int(m0);
~m1; m1 + m1; m1 & m1; m1 ^ m1; n0 / 2; l0 // 3; 2 ** n1; 2.0 ** x1; 1 << i1[:1]; pow(n1, 2); pow(2, 3, 5); max(x0,
y0); min(n0, 2); sum(x1); sum(x2); max(x1); any(m1); all(m1); sorted([3,1,2]); min([2.5, 1]); 5 if n0 > 2 else 6; x0
< 1 < y0; 1 << 40 > 5; (2**40 + n0); 2**40 % 7""".replace("\n", " ").split("; ")
)


def number_expressions() -> Iterator[str]:
    """Python's operators and functions on numbers that are known, and on some of the run."""
    for a in _NUMBERS:
        for b in _NUMBERS:
            is_large = len(a) > 4 or len(b) > 4
            for operator in (
                "&",
                "|",
                "^",
                "//",
                "%",
                "/",
                "+",
                "*",
                "-",
                "<",
                "==",
                *(() if is_large else ("<<", ">>", "**")),
            ):
                yield f"({a}) {operator} ({b})"
    for a in (*_NUMBERS, *_OTHERS):
        if a != "True":  # a boolean is not an integer here, and ~ and + leave it one
            yield from (f"{f}({a})" for f in ("-", "~", "+"))
        yield from (f"{f}({a})" for f in ("abs", "round", "int", "float", "bool", "not "))
        yield from (f"round({a}, {digits})" for digits in (1, -1, 0))
        yield from (f"{f}({a})" for f in ("math.floor", "math.ceil", "math.trunc"))
        yield from (f"divmod({a}, 3)", f"divmod({a}, -2.5)", f"pow({a}, 2)", f"max({a}, 2)", f"min({a}, 2.5)")
    yield from _EXPRESSIONS
