"""A definition that is incomplete or contradicts itself is refused, and nothing of it stays in the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from relay.errors import RegistrationError, ShapeError, TypeMismatch
from relay.ir import FunctionType, Kind, TensorType, TypeId, mk_arrow, mk_quant
from relay.ir.types import FLOAT32, INT32
from relay.operator import Environment, Relation, alias, get_env, register_op, resolve_name
from relay.typecheck.relations import broadcast, same_shape

Tensor = np.ndarray[Any, np.dtype[Any]]
COMPLETE: dict[str, Any] = {
    "relation": Relation("T:float -> T", same_shape),
    "compute": lambda x: x,
    "gradient": lambda x, out, dout: dout,
}


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before = get_env().names()
    yield
    environment = get_env()
    for name in set(environment.names()) - set(before):
        del environment._operators[name]


def triple(x: Tensor) -> Tensor:
    """3 x. x: (T, s) -> (T, s)."""
    return x * 3


def undocumented(x: Tensor) -> Tensor:
    return x


def attribute_first(scale: float, x: Tensor) -> Tensor:
    """scale * x. x: (T, s) -> (T, s)."""
    return x * scale


def pairs(x: tuple[Tensor, ...], y: Tensor) -> Tensor:
    """A tuple and one more. -> (T, s)."""
    return y


@pytest.mark.parametrize(
    ("reference", "changes", "message"),
    [
        (triple, {"relation": None}, "'triple' has no type"),
        (triple, {"relation": Relation("T, T -> T", broadcast)}, "its relation has 2 operands, its reference 1"),
        (triple, {"relation": Relation("T.. -> T", same_shape)}, "its relation has 1 operands"),
        (triple, {"compute": None}, "'triple' has no code"),
        (triple, {"gradient": None}, "give `gradient`, or `no_gradient` with the reason"),
        (undocumented, {}, "'undocumented' has no documentation"),
        (attribute_first, {}, "must come before the attributes"),
        (pairs, {}, "exactly one operand"),
        (triple, {"name": "add"}, "'add' is registered already"),
    ],
)
def test_a_wrong_definition_is_refused(reference: Callable[..., Any], changes: dict[str, Any], message: str) -> None:
    before = get_env().names()
    add = resolve_name("add")
    with pytest.raises(RegistrationError, match=message):
        register_op(**{**COMPLETE, **changes})(reference)
    assert get_env().names() == before
    assert resolve_name("add") is add


def test_an_unknown_keyword_registers_nothing() -> None:
    before = get_env().names()
    with pytest.raises(RegistrationError, match="'triple': a definition has no part 'gradiant'") as caught:
        register_op(**COMPLETE, gradiant=None)(triple)
    assert caught.value.help == "did you mean 'gradient'?"
    with pytest.raises(RegistrationError, match=r"an operator is defined by its reference, a function; found None"):
        register_op(**COMPLETE)(None)  # type: ignore[arg-type]
    assert get_env().names() == before


@pytest.mark.parametrize("text", ["T, T", "T:real -> T", ": -> T", "T: -> T", "T ->"])
def test_a_base_signature_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"'->'|class of base types|not a base type"):
        Relation(text, same_shape)


def test_a_registered_operator_is_complete() -> None:
    operator = register_op(**COMPLETE)(triple)
    assert resolve_name("triple") is operator
    np.testing.assert_array_equal(operator(np.float32([1, 2])), np.float32([3, 6]))
    assert operator.infer([TensorType(FLOAT32, (2,))], {}) == TensorType(FLOAT32, (2,))
    with pytest.raises(TypeMismatch, match="needs a float dtype, found int32"):
        operator(np.int32([1]))


def test_an_alias_gives_way_to_an_operator_and_never_hides_one() -> None:
    register_op(**COMPLETE)(triple)
    alias("threefold", "triple")
    assert resolve_name("threefold") is resolve_name("triple")
    for name, operator in (("add", "triple"), ("fourfold", "quadruple")):
        with pytest.raises(RegistrationError, match="cannot make"):
            alias(name, operator)
    threefold = register_op(**COMPLETE, name="threefold")(triple)
    assert resolve_name("threefold") is threefold is not resolve_name("triple")


# ---- the form of the talk


def vector_sum_type() -> Any:
    length = TypeId("n", Kind.Dim)
    return mk_quant(length, mk_arrow([TensorType(FLOAT32, (length,))], TensorType(FLOAT32, ())))


def compile_vector_sum(function: FunctionType) -> Callable[..., None]:
    def run(x: Tensor, out: Tensor) -> None:
        out[...] = x.sum()

    return run


def test_the_talks_form_registers_a_reference_and_code() -> None:
    operator = register_op(get_env(), "vector_sum", vector_sum_type(), compile_vector_sum)
    assert operator(np.float32([1, 2, 3])) == 6
    assert operator.no_gradient
    with pytest.raises(TypeMismatch, match="argument 1 of vector_sum must be"):
        operator.infer([TensorType(INT32, (3,))], {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, "vector_sum", vector_sum_type(), compile_vector_sum), "relay.get_env"),
        ((Environment(), "vector_sum", TensorType(FLOAT32, ()), compile_vector_sum), "function type"),
        ((Environment(), "vector_sum", vector_sum_type(), None), "callable"),
        ((Environment(), "vector_sum", vector_sum_type(), lambda: None), "compiler does not take a function type"),
        ((Environment(), "vector sum", vector_sum_type(), compile_vector_sum), "an operator's name is an identifier"),
        ((Environment(), "vector_sum", vector_sum_type()), "register_op takes an environment, a name, a type and a"),
    ],
)
def test_the_talks_form_refuses_wrong_arguments(arguments: tuple[Any, ...], message: str) -> None:
    before = get_env().names()
    with pytest.raises(RegistrationError, match=message):
        register_op(*arguments)
    assert get_env().names() == before


def test_shape_errors_reach_the_caller() -> None:
    with pytest.raises(ShapeError, match=r"the shapes \(3,\) and \(4,\) cannot be broadcast together"):
        resolve_name("add")(np.zeros(3), np.zeros(4))  # type: ignore[misc]


def test_shape_rule_must_take_the_operands_and_attributes() -> None:
    with pytest.raises(RegistrationError, match="shape rule does not take 1 shapes"):
        register_op(**{**COMPLETE, "relation": Relation("T:float -> T", lambda x, y: x)})(triple)
    assert resolve_name("triple") is None
