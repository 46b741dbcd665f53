"""Shape rules: what numbers decide, what is an error and says so, and what variables leave open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relay.errors import ShapeError
from relay.ir.types import ANY, Kind, TypeId, Unknown
from relay.operator import Undetermined
from relay.typecheck import relations

N, M = TypeId("n", Kind.Dim), TypeId("m", Kind.Dim)
FIVE = Unknown(Kind.Dim, binding=5)


@pytest.mark.parametrize(
    ("rule", "shapes", "attributes", "result"),
    [
        (relations.broadcast, [(2, 1), (3,)], {}, (2, 3)),
        (relations.broadcast, [(0,), (1,)], {}, (0,)),
        (relations.broadcast, [(), ()], {}, ()),
        (relations.broadcast, [(N, 3), (N, 1), ()], {}, (N, 3)),
        (relations.broadcast, [(N,), (1, 1)], {}, (1, N)),
        (relations.broadcast, [(ANY,), (1,)], {}, (ANY,)),
        (relations.broadcast, [(FIVE,), (5,)], {}, (5,)),
        (relations.same_shape, [(N, 2), (N, 2)], {}, (N, 2)),
        (relations.matmul, [(N, 3), (3, M)], {}, (N, M)),
        (relations.matmul, [(2, N), (N,)], {}, (2,)),
        (relations.matmul, [(4, 1, 2, 3), (5, 3, 6)], {}, (4, 5, 2, 6)),
        (relations.dense, [(N, 3), (4, 3)], {}, (N, 4)),
        (relations.reduce, [(N, M)], {"axis": -1}, (N,)),
        (relations.reduce, [(N, 2)], {"axis": None, "keepdims": True}, (1, 1)),
        (relations.reshape, [(N, 3)], {"shape": (3, -1)}, (3, N)),
        (relations.reshape, [(0, N)], {"shape": (0, 7)}, (0, 7)),
        (relations.reshape, [(2, 3)], {"shape": -1}, (6,)),
        (relations.concatenate, [[(2, N), (3, N)]], {"axis": 0}, (5, N)),
        (relations.concatenate, [[(N,), (0,)]], {"axis": 0}, (N,)),
        (relations.concatenate, [[(N,), (2,), (M,)]], {"axis": 0}, (N + M + 2,)),
        (relations.broadcast, [(N + 1, 1), (1 + N, M)], {}, (N + 1, M)),
        (relations.reshape, [(N, M, 6)], {"shape": (2, M, -1)}, (2, M, 3 * N)),
        (relations.reshape, [(N, M)], {"shape": (M, N)}, (M, N)),
        (relations.reshape, [(N * M,)], {"shape": (M, -1)}, (M, N)),
        (relations.strided_slice, [(N + 3,)], {"begin": (1,), "end": (N + 3,), "strides": (2,)}, ((N + 3) // 2,)),
        (relations.strided_slice, [(N,)], {"begin": (N - 1,), "end": (-1,), "strides": (-1,)}, (N,)),
        (relations.broadcast_to, [(N, 1)], {"shape": (2, N, M)}, (2, N, M)),
        (relations.arange, [], {"start": 0, "stop": 2 * N, "step": 2}, (N,)),
        (relations.stack, [[(N,), (N,)]], {"axis": -1}, (N, 2)),
        (relations.take, [(N, 3), (4, M)], {"axis": 1}, (N, 4, M)),
        (relations.expand_dims, [(N,)], {"axis": (0, -1)}, (1, N, 1)),
        (relations.squeeze, [(N, 1)], {"axis": 1}, (N,)),
        (relations.index, [(N, M), ()], {}, (M,)),
        (relations.strided_slice, [(FIVE,)], {"begin": (4,), "end": (-1,), "strides": (-2,)}, (3,)),
    ],
)
def test_decided(rule: Callable[..., Any], shapes: list[Any], attributes: dict[str, Any], result: Any) -> None:
    assert rule(*shapes, **attributes) == result


@pytest.mark.parametrize(
    ("rule", "shapes", "attributes", "message"),
    [
        (relations.broadcast, [(2,), (3,), (1,)], {}, r"\(2,\), \(3,\) and \(1,\) cannot be broadcast together"),
        (relations.broadcast, [(N, 2), (M, 3)], {}, r"\(n, 2\) and \(m, 3\) cannot be broadcast"),
        (relations.broadcast, [(0,), (2,)], {}, r"\(0,\) and \(2,\) cannot"),
        (relations.broadcast_to, [(2,)], {"shape": (2, 3)}, r"\(2,\) cannot be broadcast to \(2, 3\)"),
        (relations.sum_to, [(2, 3)], {"shape": (2,)}, r"\(2, 3\) cannot be summed to \(2,\)"),
        (relations.matmul, [(2, 3), (4, 5)], {}, r"\(2, 3\) and \(4, 5\) .* inner extents 3 and 4 differ"),
        (relations.matmul, [(2, 2, 3), (3, 3, 5)], {}, r"leading axes \(2,\) and \(3,\)"),
        (relations.matmul, [(), (3,)], {}, "needs operands with axes"),
        (relations.dense, [(2, 3), (4, 5)], {}, "inner extents 3 and 5 differ"),
        (relations.reduce, [(2, 3)], {"axis": 2}, "axis 2 is out of range for a tensor of rank 2"),
        (relations.reduce, [(2, 3)], {"axis": (0, -2)}, r"axes \(0, -2\) .* repeat"),
        (relations.reduce_nonempty, [(2, 0)], {}, r"axis 1 of the shape \(2, 0\) is empty"),
        (relations.arg_reduce, [()], {"axis": 0}, "axis 0 is out of range for a tensor of rank 0"),
        (relations.along_axis, [()], {"axis": -1}, "axis -1 is out of range for a tensor of rank 0"),
        (relations.reshape, [(2, 3)], {"shape": (4,)}, r"\(2, 3\), with 6 elements, cannot be reshaped to \(4,\)"),
        (relations.reshape, [(2, 3)], {"shape": (4, -1)}, r"cannot be reshaped to \(4, -1\)"),
        (relations.reshape, [(2, 3)], {"shape": (-1, -1)}, "only one extent"),
        (relations.reshape, [(2, 3)], {"shape": (-2, -3)}, "not negative"),
        (relations.transpose, [(2, 3)], {"axes": (0, 0)}, "name each of the 2 axes once"),
        (relations.squeeze, [(2, 1)], {"axis": 0}, r"axis 0 of the shape \(2, 1\) cannot be removed"),
        (
            relations.concatenate,
            [[(2, 3), (2, 4)]],
            {"axis": 0},
            r"\(2, 3\) and \(2, 4\) cannot be concatenated along axis 0",
        ),
        (relations.concatenate, [[]], {"axis": 0}, "at least one tensor"),
        (relations.stack, [[(2,), (3,)]], {"axis": 0}, "they must be equal"),
        (
            relations.strided_slice,
            [(3,)],
            {"begin": (0,), "end": (4,), "strides": (1,)},
            "leaves axis 0, which has extent 3",
        ),
        (relations.strided_slice, [(3,)], {"begin": (0,), "end": (3,), "strides": (0,)}, "stride along axis 0 is 0"),
        (
            relations.update_slice,
            [(3,), (1,)],
            {"begin": (0,), "end": (3,), "strides": (1,)},
            r"\(3,\) cannot hold .* \(1,\)",
        ),
        (relations.index, [(), ()], {}, "rank 0 cannot be indexed"),
        (relations.index, [(3,), (1,)], {}, "an index must have rank 0"),
        (relations.index_update, [(3, 2), (), (3,)], {}, r"has the shape \(2,\), found \(3,\)"),
        (relations.scatter_add, [(3,), (2,), (3,)], {"axis": 0}, r"must have the shape \(2,\), found \(3,\)"),
        (relations.shape_attribute, [], {"shape": (2, -1)}, "not negative"),
        (relations.arange, [], {"start": 0, "stop": 3, "step": 0}, "step of arange is 0"),
    ],
)
def test_refused(rule: Callable[..., Any], shapes: list[Any], attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        rule(*shapes, **attributes)


SOLVED_LATER = Unknown(Kind.Dim)


@pytest.mark.parametrize(
    ("rule", "shapes", "attributes", "waits"),
    [
        (relations.broadcast, [(N,), (3,)], {}, False),
        (relations.broadcast, [(N,), (M,)], {}, False),
        (relations.broadcast, [(ANY,), (ANY,)], {}, False),
        (relations.broadcast, [(SOLVED_LATER,), (3,)], {}, True),
        (relations.same_shape, [(SOLVED_LATER,), (3,)], {}, True),
        (relations.matmul, [(2, SOLVED_LATER), (3, 4)], {}, True),
        (relations.reshape, [(SOLVED_LATER, 3)], {"shape": (2, -1)}, True),
        (relations.broadcast_to, [(N,)], {"shape": (3,)}, False),
        (relations.squeeze, [(SOLVED_LATER, 1)], {}, True),
        (relations.strided_slice, [(N,)], {"begin": (0,), "end": (1,), "strides": (1,)}, False),
    ],
)
def test_left_open(rule: Callable[..., Any], shapes: list[Any], attributes: dict[str, Any], waits: bool) -> None:
    with pytest.raises(Undetermined) as caught:
        rule(*shapes, **attributes)
    assert caught.value.unknowns == ((SOLVED_LATER,) if waits else ())
