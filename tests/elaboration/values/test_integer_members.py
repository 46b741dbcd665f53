"""Members of enumerations that are integers: static, with their names, and numbers where a run decides."""

import enum
from typing import Any

import numpy as np
from support.agreement import assert_modes_agree

from relay import relay


class Op(enum.IntEnum):
    NOTHING = 0
    ADD = 1
    DOUBLE = 2


class Right(enum.IntFlag):
    READ = 1
    WRITE = 2


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def test_a_member_is_its_integer_where_it_meets_numbers() -> None:
    @relay
    def meets(op: Any, x: Any) -> Any:
        x[Op.DOUBLE] += Op.ADD
        return (
            [op == Op.ADD, op != Op.ADD, op < Op.DOUBLE, op in (Op.NOTHING, Op.DOUBLE)],
            [x * Op.DOUBLE, np.maximum(x, Op.ADD), x[Op.ADD], [5, 6, 7][Op.DOUBLE], np.zeros(Op.DOUBLE)],
            [op & Right.WRITE, (op | Right.READ) == Right.READ | Right.WRITE, int(Op.DOUBLE), -Op.ADD],
        )

    for op in (1, np.int64(2)):
        assert_modes_agree(meets, op, np.arange(4.0), expected=meets.__wrapped__(op, np.arange(4.0)))


def test_different_members_meet() -> None:
    @relay
    def chosen(op: Any) -> Any:
        return Op.DOUBLE if op > 0 else Op.ADD

    @relay
    def meet(xs: Any) -> Any:
        state, seen = Op.NOTHING, []
        for x in xs:
            match state:
                case Op.NOTHING:
                    state = chosen(x)
                case Op.DOUBLE if x < 0:
                    state = Op.ADD
                case _:
                    state = Op.NOTHING
            seen.append(state)
        return state == Op.ADD, seen, state + 1

    xs = np.array([1.0, -1.0, 2.0, -3.0])
    assert_modes_agree(meet, xs, expected=meet.__wrapped__(xs))


def test_a_known_member_has_its_name() -> None:
    @relay
    def described(op: Any, color: Any) -> Any:
        match op:
            case Op.ADD:
                text = f"{op.name} {op.value}"
            case _:
                text = "other"
        match color:
            case Color.RED:
                return text == "ADD 1", {Op.ADD: 1.0, Op.DOUBLE: 2.0}[op]
            case Color.BLUE:
                return text == "other", 3.0

    assert_modes_agree(described, Op.ADD, Color.RED, expected=(True, 1.0))
    assert_modes_agree(described, Op.DOUBLE, Color.BLUE, expected=(True, 3.0))


def test_members_of_other_enumerations_meet() -> None:
    @relay
    def states(x: Any) -> Any:
        state = Color.RED if x > 0 else Color.BLUE
        return state == Color.RED

    assert states.interpret(1.0) and not states.interpret(-1.0)
