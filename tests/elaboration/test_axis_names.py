"""Names of axes and layouts: they go with types, are checked, and leave no trace in programs. The refusals are in
`typecheck/cases/types_axes.test`."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_modes_agree
from operator_samples import OF, OPERATORS

import relay as R
from relay import Float, Tensor, dims, relay
from relay.ir import alpha_equal, alpha_hash
from relay.ir.types import TensorType
from relay.ir.validation.check import check
from relay.operator import Operator, lookup
from relay.operator.axes import AxesDiffer, axis_rule
from relay.operator.relation import Relation
from relay.text.type_parser import parse_type

n, c, h, w, d, m = dims("n c h w d m")
Vector = Tensor[Float, (n,), "N"]


@R.data
class Layer:
    weight: Tensor[Float, dict(feature=3, hidden=4)]
    bias: Tensor[Float, dict(hidden=4)]


@relay
def normalized(x: Tensor[Float, dict(batch=n, feature=d)]):
    return x - x.mean(axis="feature", keepdims=True)


@relay
def plain(x, k):
    return R.conv2d(x, k, padding=1).sum(axis=(2, 3)).max(axis=1)


@relay
def labeled(x: Tensor[Float, (n, c, h, w), R.NCHW], k: Tensor[Float, (m, c, 3, 3), R.OIHW]) -> Vector:
    y: Tensor[Float, (n, m, h, w), R.NCHW] = R.conv2d(x, k, padding=1)
    return y.sum(axis="HW").max(axis="C")


@pytest.mark.parametrize(
    "text",
    [
        "Tensor[float32, (n, c, h, w), NCHW]",
        "Tensor[float32, (n, 3), N_]",
        "Tensor[float32, dict(batch=n, feature=2*n + 1)]",
        'Tensor[float32, (n, 1), ("batch", None)]',
        'Tensor[float32, (n, n), ("feature", "feature")]',
        'Tensor[float32, (n,), ("x y",)]',
    ],
)
def test_types_with_names_print_and_parse(text: str) -> None:
    quantified = f"forall (n: Dim) (c: Dim) (h: Dim) (w: Dim). fn({text}) -> {text}"
    if "x y" in text:
        with pytest.raises(R.FrontendError, match="'x y' is not a name for an axis"):
            parse_type(quantified)
    else:
        assert str(parse_type(quantified)) == quantified


def test_annotations_say_the_same_in_python() -> None:
    assert str(Tensor[Float, (n, c, h, w), R.NHWC]) == "Tensor[float32, (n, c, h, w), NHWC]"
    assert str(Tensor[Float, dict(batch=n)]) == str(Tensor[Float, (n,), ["batch"]]) == "Tensor[float32, dict(batch=n)]"
    assert Tensor[Float, dict(batch=n)] == Tensor[Float, (n,)]
    with pytest.raises(R.FrontendError, match="4 names for a shape with 2 axes: NCHW"):
        Tensor[Float, (n, c), R.NCHW]


@pytest.mark.parametrize(
    "written", ['(n, 3), "NC"', '{"N": n, "C": 3}', "dict(N=n, C=3)", '(n, 3), ("N", "C")', "(n, 3), NC"]
)
def test_annotations_in_all_forms(written: str) -> None:
    text = f"def f(x: Tensor[Float, {written}]):\n    return x.T\n"
    found = R.from_source(text, {"Tensor": Tensor, "Float": Float, "n": n, "NC": "NC"})
    assert str(found.type).endswith("-> Tensor[float32, (3, n), CN]")


def test_names_are_part_of_a_functions_type() -> None:
    assert str(normalized.type).endswith("-> Tensor[float32, dict(batch=n, feature=d)]")
    assert str(labeled.type).endswith("OIHW]) -> Tensor[float32, (n,), N]")
    assert "dict(batch=n, feature=d)" in normalized.text()


def test_names_are_gone_when_a_program_is_typed() -> None:
    x, k = np.ones((2, 3, 4, 4), np.float32), np.ones((5, 3, 3, 3), np.float32)
    ours, theirs = labeled.typed(x, k), plain.typed(x, k)
    assert "NCHW]" not in R.to_text(ours)
    assert alpha_hash(ours) == alpha_hash(theirs) and alpha_equal(ours, theirs)
    assert alpha_hash(labeled.core(x, k)) == alpha_hash(plain.core(x, k))
    np.testing.assert_array_equal(labeled.interpret(x, k), plain.interpret(x, k))


def test_fields_of_data_have_names() -> None:
    @relay
    def apply(layer: Layer, x: Tensor[Float, dict(batch=n, feature=3)]):
        return x @ layer.weight + layer.bias

    assert str(apply.type).endswith("-> Tensor[float32, dict(batch=n, hidden=4)]")
    layer = Layer(np.ones((3, 4), np.float32), np.ones(4, np.float32))
    check(apply.typed(layer, np.ones((2, 3), np.float32)))
    np.testing.assert_array_equal(apply.interpret(layer, np.ones((2, 3), np.float32)), np.full((2, 4), 4.0))

    @relay
    def made(x: Tensor[Float, dict(hidden=3, feature=4)]):
        return Layer(x, x[0])

    with pytest.raises(R.TypeMismatch, match="the field weight of Layer must be"):
        str(made.type)


def test_gradients_have_the_names_of_what_they_are_by() -> None:
    @relay
    def loss(x: Tensor[Float, dict(batch=n, feature=d)], v: Tensor[Float, dict(feature=d)]):
        return (x @ v).sum()

    result = "(Tensor[float32, dict(batch=n, feature=d)], Tensor[float32, dict(feature=d)])"
    assert str(R.grad(loss).type).endswith(f"-> {result}")
    by_x, by_v = R.grad(loss)(np.ones((2, 3), np.float32), np.ones(3, np.float32))
    assert by_x.shape == (2, 3) and by_v.shape == (3,)


def test_a_function_without_annotations_keeps_names() -> None:
    @relay
    def helper(x):
        return R.tanh(x) * 2.0

    @relay
    def both(x: Tensor[Float, dict(batch=n, feature=n)]):
        return helper(x), helper(x.T)

    assert str(both.type).endswith(
        "-> (Tensor[float32, dict(batch=n, feature=n)], Tensor[float32, dict(feature=n, batch=n)])"
    )


def test_a_convolution_follows_the_layout_of_its_argument() -> None:
    @relay
    def f(x: Tensor[Float, (n, 8, 8, 3), R.NHWC], k: Tensor[Float, (3, 3, 3, 4), R.HWIO]):
        return R.conv2d(x, k)

    x, k = np.ones((1, 8, 8, 3), np.float32), np.ones((3, 3, 3, 4), np.float32)
    assert f.interpret(x, k).shape == (1, 6, 6, 4)
    assert 'layout="NHWC"' in f.text()


def test_an_operator_of_ones_own_declares_its_layouts() -> None:
    @R.register_op(
        relation=Relation("T:float -> T", lambda x, layout: x),
        layouts=lambda layout: (layout, layout),
        compute=lambda x, layout: x,
        no_gradient="not needed",
    )
    def of_images(x: Tensor, layout: str = "NCHW") -> Tensor:
        """The image itself. x: (T float, s) -> (T, s)."""
        return np.array(x)

    @relay
    def good(x: Tensor[Float, (1, 2, 3, 4), R.NHWC]):
        return of_images(x)

    @relay
    def wrong(x: Tensor[Float, (1, 2, 3, 4), R.NHWC]):
        return of_images(x, layout="NCHW")

    assert "NHWC]" in str(good.type).partition("->")[2]
    with pytest.raises(R.TypeMismatch, match="x is NHWC, of_images wants NCHW"):
        str(wrong.type)
    with pytest.raises(R.RegistrationError, match="`layouts` does not take the attributes layout"):
        R.register_op(
            name="wrong_layouts",
            relation=Relation("T:float -> T", lambda x, layout: x),
            layouts=lambda: ("NCHW",),
            compute=lambda x, layout: x,
            no_gradient="not needed",
        )(of_images.reference)


def test_names_go_through_the_body_of_a_composite_operator() -> None:
    @R.composite
    def softened(x: Tensor, scale: float = 1.0) -> Tensor:
        """tanh of each row's distance to the mean. x: (T float, s) -> (T, s)."""
        return R.tanh(x * scale - x.mean(axis=-1, keepdims=True)).T

    @relay
    def use(x: Tensor[Float, dict(batch=2, feature=3)]):
        return softened(x, scale=2.0)

    @relay
    def forgotten(x: Tensor[Float, (2, 3)]):
        return softened(x, scale=2.0)

    assert str(use.type).endswith("-> Tensor[float32, dict(feature=3, batch=2)]")
    assert str(forgotten.type).endswith("-> Tensor[float32, (3, 2)]")
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(use.interpret(x), forgotten.interpret(x))


def test_definitions_tell_to_which_operators_a_layout_matters() -> None:
    assert lookup("relu").is_layout_agnostic and lookup("add").is_layout_agnostic
    assert not lookup("conv2d").is_layout_agnostic and not lookup("matmul").is_layout_agnostic
    assert lookup("conv2d").layouts(**lookup("conv2d").attributes) == ("NCHW", "OIHW", "NCHW")
    for name, operator in OPERATORS.items():  # Relay's own, without those that other tests register
        if operator.layouts is not None:
            assert not operator.is_layout_agnostic, name
        if operator.is_layout_agnostic and isinstance(operator.relation, Relation):
            assert axis_rule(operator.relation.shape) is not None, f"{name} forgets names"


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda o: o.name)
def test_rules_name_every_axis_of_the_result(operator: Operator) -> None:
    """With names for one operand at a time: as many as the result has axes, and each one of that operand's."""
    relation = operator.relation
    rule = axis_rule(relation.shape if isinstance(relation, Relation) else relation)
    samples = OF.get(operator.name, ())[:12]
    for sample in samples:
        result = operator.infer(sample.types, sample.attributes)
        for named in range(len(sample.operands)):
            names = [
                tuple(f"a{axis}" if operand == named else None for axis in range(array.ndim))
                for operand, array in enumerate(sample.operands)
            ]
            if rule is not None and isinstance(result, TensorType):
                given = dict(sample.attributes)
                if getattr(rule, "__of_shapes__", False):
                    shapes = [t.shape for t in sample.types]
                    given.update(shapes=shapes, result=lambda shape=result.shape: shape)
                try:
                    found = rule(*((tuple(names),) if operator.variadic else names), **given)
                except AxesDiffer:  # a diagonal, "ii->i"
                    continue
                assert found is None or len(found) == result.rank, (sample, names, found)
                assert set(found or ()) <= {None, *names[named]}, (sample, names, found)
            if operator.layouts is not None:
                layouts = operator.layouts(**sample.attributes)
                assert [len(word) for word in layouts[:-1]] == [array.ndim for array in sample.operands]
                assert isinstance(result, TensorType) and len(layouts[-1]) == result.rank


FORGET = {
    "characters": "a text has an axis of its own",
    "parse_float": "a text's axis is no axis of the number",
    "parse_integer": "a text's",
    "overlap_add": "its result's axis is made of two",
    "quantized_dense": "quantization comes after names are gone",
    "random_randint": "bounds are numbers",
    "random_bits": "a key's axes are no axes of the result",
    "random_exponential": "a key's",
    "random_gumbel": "a key's",
    "random_key": "of a seed",
    "random_normal": "a key's",
    "random_split": "a key's",
    "random_uniform": "a key's",
}
"""Operators of tensors that forget the names of axes, and why."""


def test_operators_that_forget_names_are_known() -> None:
    forgetting = set()
    for operator in OPERATORS.values():
        relation = operator.relation
        rule = axis_rule(relation.shape if isinstance(relation, Relation) else relation)
        takes_tensors = bool(operator.operands) or operator.variadic
        if takes_tensors and rule is None and operator.layouts is None and operator.composition is None:
            forgetting.add(operator.name)
    assert forgetting == set(FORGET)


@relay
def rearranged(x: Tensor[Float, (2, 3, 4, 5), R.NCHW]):
    first, _ = R.split(x, 2, axis=2)
    values, places = R.topk(x, 2)
    return (
        x.reshape((2, 3, 4, 5)),
        x.reshape((2, -1)),
        x.reshape((2, 3, 2, 2, 5)),
        x.reshape((-1, 5)),
        R.flatten(x, start_axis=2),
        x[:, :1].squeeze(),
        first,
        values,
        places,
        R.rename_axes(x, "NHWC"),
        R.rename_axes(x, None),
        R.rename_axes(x, ("batch", None, None, "time")),
    )


def test_reshaping_leaves_axes_what_they_are() -> None:
    assert str(rearranged.type).partition(" -> ")[2] == (
        "(Tensor[float32, (2, 3, 4, 5), NCHW], Tensor[float32, (2, 60), N_], Tensor[float32, (2, 3, 2, 2, 5), NC__W],"
        " Tensor[float32, (24, 5), _W], Tensor[float32, (2, 3, 20), NC_], Tensor[float32, (2, 4, 5), NHW],"
        " Tensor[float32, (2, 3, 2, 5), NCHW], Tensor[float32, (2, 3, 4, 2), NCHW], Tensor[int32, (2, 3, 4, 2), NCHW],"
        " Tensor[float32, (2, 3, 4, 5), NHWC], Tensor[float32, (2, 3, 4, 5)],"
        ' Tensor[float32, (2, 3, 4, 5), ("batch", None, None, "time")])'
    )


def test_derivatives_by_all_elements_have_the_names_of_both() -> None:
    @relay
    def derivatives(a: Tensor[Float, dict(batch=n, feature=m)], x: Tensor[Float, (n, m)]):
        by_row = relay.jacobian(lambda v: v.sum(axis="batch"))(a)
        _, tangent = relay.jvp(lambda v: v * 2.0, (a,), (x,))
        return by_row, tangent, relay.hessian(lambda v: v.sum())(a)

    result = str(derivatives.type).partition(" -> ")[2]
    assert result == (
        '(Tensor[float32, (m, n, m), ("feature", "batch", "feature")], Tensor[float32, dict(batch=n, feature=m)],'
        ' Tensor[float32, (n, m, n, m), ("batch", "feature", "batch", "feature")])'
    )
    ones = np.ones((2, 3), np.float32)
    assert [part.shape for part in derivatives.interpret(ones, ones)] == [(3, 2, 3), (2, 3), (2, 3, 2, 3)]


# ---- alignment


@relay
def mixed(x: Tensor[Float, (2, 3, 4, 5), R.NCHW], y: Tensor[Float, (2, 4, 5, 3), R.NHWC], b: Tensor[Float, dict(C=3)]):
    return x * R.align(y, x) + R.align(b, "NCHW")


def test_alignment_puts_axes_in_order_and_broadcasts_those_that_are_missing() -> None:
    random = np.random.default_rng(0)
    x, y, b = (random.standard_normal(s).astype(np.float32) for s in ((2, 3, 4, 5), (2, 4, 5, 3), (3,)))
    turned = y.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(assert_modes_agree(mixed, x, y, b), x * turned + b[:, None, None], rtol=1e-5)


def test_gradients_keep_the_order_of_what_was_aligned() -> None:
    @relay
    def loss(x, y, b):
        return R.sum(mixed(x, y, b))

    random = np.random.default_rng(1)
    x, y, b = (random.standard_normal(s).astype(np.float32) for s in ((2, 3, 4, 5), (2, 4, 5, 3), (3,)))
    dx, dy, db = R.grad(loss)(x, y, b)
    np.testing.assert_allclose(dx, y.transpose(0, 3, 1, 2), rtol=1e-5)
    np.testing.assert_allclose(dy, x.transpose(0, 2, 3, 1), rtol=1e-5)
    np.testing.assert_allclose(db, [40, 40, 40], rtol=1e-5)


def test_aligned_programs_are_those_with_transpositions() -> None:
    @relay
    def by_hand(x: Tensor[Float, dict(a=2, b=3)], y: Tensor[Float, dict(b=3, a=2)]):
        return x + R.transpose(y, (1, 0))

    @relay
    def aligned(x: Tensor[Float, dict(a=2, b=3)], y: Tensor[Float, dict(b=3, a=2)]):
        return x + R.align(y, ("a", "b"))

    arguments = np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)
    assert alpha_equal(aligned.typed(*arguments), by_hand.typed(*arguments))
