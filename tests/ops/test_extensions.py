"""Operators from callbacks, from hand-written TVM code, with types of the user's own, and from other distributions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise, modes

import relay
from relay import Algebra, Batching, Indexing, IndexKind, Memory, Relation, Tensor
from relay.codegen.kernels.sharing import with_shared_parts
from relay.codegen.runtime.cpu import compile_module
from relay.errors import CompileError, ExecutionError, RegistrationError, TypeMismatch
from relay.ir import FunctionType, Kind, TensorType, TypeId, mk_arrow, mk_quant
from relay.operator import lookup
from relay.ops.notation import making
from relay.ops.tir.tvm_modules import te
from relay.typecheck.relations import broadcast, same_shape

X = np.array([0.5, -1.0, 2.0])
FLOATS = Relation("T:float -> T", same_shape)


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before = relay.get_env().names()
    yield
    environment = relay.get_env()
    for name in set(environment.names()) - set(before):
        del environment._operators[name]


# ---- callbacks


def test_a_callback_runs_interpreted_and_compiled() -> None:
    calls: list[tuple[str, tuple[int, ...]]] = []

    @relay.pure_callback(relation=FLOATS, gradient=lambda x, out, dout: dout * relay.cos(x))
    def slow_sine(x: Tensor) -> Tensor:
        """sin(x). x: (T float, s) -> (T, s)."""
        calls.append((str(x.dtype), x.shape))
        return np.sin(x)

    @relay
    def total(x):  # type: ignore[no-untyped-def]
        return relay.sum(slow_sine(x) * 2.0)

    for run in modes(total):
        calls.clear()
        np.testing.assert_allclose(run(X), 2 * np.sin(X).sum())
        assert calls == [("float64", (3,))]
    assert_modes_agree(relay.grad(total), X, expected=2 * np.cos(X))
    assert relay.slow_sine is slow_sine and slow_sine.documentation.startswith("sin(x)")


def test_a_callback_without_a_gradient_says_so() -> None:
    @relay.pure_callback(relation=FLOATS)
    def rounded(x: Tensor) -> Tensor:
        """round(x). x: (T float, s) -> (T, s)."""
        return np.round(x)

    @relay
    def total(x):  # type: ignore[no-untyped-def]
        return relay.sum(rounded(x))

    with pytest.raises(relay.DifferentiationError, match="it is a callback without one"):
        relay.grad(total)(X)


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_a_callback_that_breaks_its_type_is_an_error_at_the_call(mode: str) -> None:
    @relay.pure_callback(relation=FLOATS)
    def halved(x: Tensor) -> Tensor:
        """Half of x. x: (T float, s) -> (T, s)."""
        return x[: len(x) // 2]

    @relay
    def call(x):  # type: ignore[no-untyped-def]
        return halved(x)

    with pytest.raises(ExecutionError, match=r"halved returned float64 \(1,\), its type says") as caught:
        (call if mode == "compiled" else call.interpret)(X)
    assert "return halved(x)" in str(caught.value)


def test_an_error_in_a_callback_names_it() -> None:
    @relay.pure_callback(relation=FLOATS)
    def failing(x: Tensor) -> Tensor:
        """Never. x: (T float, s) -> (T, s)."""
        raise ValueError("no luck")

    @relay
    def call(x):  # type: ignore[no-untyped-def]
        return failing(x)

    assert_modes_raise(call, X, error=ExecutionError, match="failing failed: no luck")


# ---- hand-written TVM code


def test_a_scheduled_function_is_an_operator() -> None:
    def compiler(type_: FunctionType) -> Any:
        import tvm
        from tvm import te

        (x,), _ = relay.func_ty_to_placeholders(type_)
        schedule = tvm.s_tir.Schedule(te.create_prim_func([x, te.compute(x.shape, lambda *i: x(*i) + x(*i))]))
        (loop,) = schedule.get_loops(schedule.get_child_blocks(schedule.get_sblock("root"))[0])
        schedule.unroll(schedule.split(loop, [None, 2])[1])
        return tvm.compile(schedule.mod, target="llvm")["main"]

    @relay.register_op(relation=FLOATS, external=compiler, gradient=lambda x, out, dout: dout * 2.0)
    def unrolled_double(x: Tensor) -> Tensor:
        """2 x. x: (T float, (n,)) -> (T, (n,))."""
        return x * 2

    @relay
    def total(x):  # type: ignore[no-untyped-def]
        return relay.sum(unrolled_double(x) * x)

    assert_modes_agree(total, X, expected=2 * (X * X).sum())
    np.testing.assert_allclose(relay.grad(total)(X), 4 * X)


# ---- types of the user's own


def test_a_shape_rule_in_python_and_its_message() -> None:
    def halves(shape: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(shape) != 1 or shape[0] % 2:
            raise TypeMismatch("first_half needs a vector of even length")
        return (shape[0] // 2,)

    @relay.pure_callback(relation=Relation("T -> T", halves))
    def first_half(x: Tensor) -> Tensor:
        """The first half. x: (T, (2 n,)) -> (T, (n,))."""
        return x[: len(x) // 2].copy()

    @relay
    def call(x):  # type: ignore[no-untyped-def]
        return first_half(x)

    np.testing.assert_array_equal(call(np.arange(4.0)), [0, 1])
    with pytest.raises(TypeMismatch, match="first_half needs a vector of even length") as caught:
        call(X)
    assert "return first_half(x)" in str(caught.value)


# ---- what does not fit together


def triple(x: Tensor) -> Tensor:
    """3 x. x: (T, s) -> (T, s)."""
    return x * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"relation": Relation("T -> U", same_shape)}, "the variable U, which no operand"),
        ({"relation": Relation("T -> @dtype", same_shape)}, "it has no such attribute"),
        ({"compute": lambda x, y: x}, "`compute` does not take 1 tensors"),
        ({"gradient": lambda x, dout: dout}, "`gradient` does not take 1 operands, the result and its cotangent"),
        ({"algebra": Algebra(linear=(1,))}, "`linear` names operand 1, but there are 1"),
        ({"algebra": Algebra(linear=0)}, "`linear` in `algebra` is a tuple of operands' positions, found 0"),
        ({"algebra": Algebra(accumulates=2)}, "`accumulates` names operand 2"),
        ({"algebra": Algebra(commutative=True)}, "`commutative` is for operators with 2 operands, but this one has 1"),
        ({"algebra": Algebra(identity=0)}, "`identity` is for operators with 2 operands"),
        ({"algebra": Algebra(identity="0")}, "`identity` in `algebra` is a number, found '0'"),
        ({"algebra": Algebra(involution=1)}, "`involution` in `algebra` is True or False, found 1"),
        ({"algebra": {"linear": (0,)}}, "`algebra` is a relay.Algebra, found"),
        ({"indexing": Indexing(axis="axis")}, "`axis` names 'axis', but the attributes are"),
        ({"indexing": Indexing(axis="a", reduction_axes="b")}, "has `axis` and `reduction_axes`, which contradict"),
        ({"indexing": Indexing(kind=IndexKind.SLICE)}, "SLICE is for operators of relay.Pattern.INJECTIVE, but"),
        ({"memory": Memory(fill="zeros")}, "`fill` in `memory` is a number or relay.UNDEFINED, found 'zeros'"),
        ({"batching": Batching(rule=True)}, "`rule` in `batching` is a function or relay.LOOP, found True"),
        ({"sizes": {"shape"}}, "`sizes` names 'shape', but the attributes are"),
        ({"no_gradient": "later"}, "has `gradient` and `no_gradient`, of which there is one"),
        ({"gradient": None, "no_gradient": ""}, "`no_gradient` says why there is none"),
        ({"gradient": 2.0}, "`gradient` is a function, found 2.0"),
        ({"external": lambda func_ty: print}, "has `compute` and `external`"),
        ({"compute": None, "external": lambda: print}, "`external` does not take a function type"),
        ({"pattern": "elementwise"}, "`pattern` is a relay.Pattern, found 'elementwise'"),
        ({"sampler": list}, "`sampler` does not take a generator and a dtype"),
        ({"layouts": lambda: ("NCHW",)}, "`layouts` gives 1, not 1 and the result's"),
        ({"layouts": lambda layout: ()}, "`layouts` does not take the attributes"),
        ({"requirements": "x"}, "`requirements` is a tuple of relay.Requirement"),
        ({"relation": "T -> T"}, "its type must be a Relation"),
        ({"name": "lambda"}, "an operator's name is an identifier, found 'lambda'"),
        ({"name": "grad"}, "relay.grad is something else already"),
        ({"requirements": (relay.Requirement(lambda: None, "never"),)}, "a requirement does not take 1 operands"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    complete: dict[str, Any] = {
        "relation": FLOATS,
        "compute": lambda x: x,
        "gradient": lambda x, out, dout: dout,
    }
    before = relay.get_env().names()
    with pytest.raises(RegistrationError, match=message):
        relay.register_op(**{**complete, **changes})(triple)
    assert relay.get_env().names() == before


def test_a_gradient_names_result_and_cotangent_as_it_likes() -> None:
    from tvm import te

    @relay.register_op(
        relation=Relation("T:float, T -> T", broadcast),
        compute=lambda x, y, power: te.compute(x.shape, lambda *i: x(*i) * y(*i)),
        gradient=lambda x, y, result, cotangent, power: (cotangent * y, result * cotangent / y),
    )
    def times_with_names(x: Tensor, y: Tensor, power: int = 1) -> Tensor:
        """x y. x: (T, s), y: (T, s) -> (T, s)."""
        return x * y

    gradient = relay.grad(relay.from_source("def f(x, y):\n    return op(x, y).sum()\n", {"op": times_with_names}))
    x, y = np.arange(1.0, 4.0), np.arange(2.0, 5.0)
    found = assert_modes_agree(gradient, x, y)
    np.testing.assert_allclose(found[0], y)
    np.testing.assert_allclose(found[1], x)


def newton_root(steps: int, guarded: bool = False) -> Any:
    """An operator whose compute function uses each value three times."""
    from tvm import te, tirx

    def compute(x: Any) -> Any:
        def element(*index: Any) -> Any:
            half = tirx.const(0.5, x.dtype)
            a = tirx.if_then_else(index[0] > 0, x(index[0] - 1), half) + half if guarded else x(*index)
            y = a
            for _ in range(steps):
                y = y - (y * y - a) / (y + y)
            return y

        return te.compute(x.shape, element)

    def root(x: Tensor) -> Tensor:
        """The square root of x, nearly. x: (T, s) -> (T, s)."""
        a = np.append(0.5, x[:-1]) + 0.5 if guarded else x
        y = a
        for _ in range(steps):
            y = y - (y * y - a) / (y + y)
        return y

    root.__name__ = f"root_in_{steps}_steps_{guarded}"
    return relay.register_op(relation=FLOATS, compute=compute, no_gradient="none", pattern=relay.Pattern.OPAQUE)(root)


def test_values_that_a_compute_function_uses_often_are_computed_once() -> None:
    work = []
    for steps in (4, 4, 8):  # the first one fills caches
        function = relay.from_source("def f(x):\n    return op(x)\n", {"op": newton_root(steps)})
        core = function.core(np.arange(1.0, 5.0))
        calls = 0

        def profile(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(profile)
        try:
            compile_module(core)
        finally:
            sys.setprofile(None)
        work.append(calls)
        del relay.get_env()._operators[f"root_in_{steps}_steps_False"]
    assert work[2] <= 2.3 * work[1], work


def chosen_steps(steps: int, form: str) -> Any:
    """An operator whose compute function uses each value three times: in both arms of choices, in one of them (`arm`),
    or beside an element that is read only there (`read`)."""
    from tvm import te, tirx

    def compute(x: Any) -> Any:
        def element(*index: Any) -> Any:
            (i,) = index
            a = y = x(i)
            half = tirx.const(0.5, x.dtype)
            for k in range(steps):
                if form == "both":
                    y = tirx.if_then_else(a > tirx.const(0.1 * k, x.dtype), y * y * half, y + half)
                elif form == "read":
                    y = tirx.if_then_else(i > k, x(i - k - 1) * half + y * y * half, y + half)
                else:
                    y = y * y * half + y
            return tirx.if_then_else(a > half, y, a) if form == "arm" else y

        return te.compute(x.shape, element)

    def stepped(x: Tensor) -> Tensor:
        """Some steps. x: (T, s) -> (T, s)."""
        y, places = x, np.arange(len(x))
        for k in range(steps):
            if form == "both":
                y = np.where(x > 0.1 * k, y * y * 0.5, y + 0.5)
            elif form == "read":
                y = np.where(places > k, x[np.maximum(places - k - 1, 0)] * 0.5 + y * y * 0.5, y + 0.5)
            else:
                y = y * y * 0.5 + y
        return np.where(x > 0.5, y, x) if form == "arm" else y

    stepped.__name__ = f"{form}_in_{steps}_steps"
    return relay.register_op(relation=FLOATS, compute=compute, no_gradient="none", pattern=relay.Pattern.OPAQUE)(
        stepped
    )


@pytest.mark.parametrize("form", ["both", "read", "arm"])
def test_values_that_arms_of_choices_use_often_are_named(form: str) -> None:
    x = np.linspace(-1.0, 1.0, 13)
    sizes = []
    for steps in (3, 6):
        operator = chosen_steps(steps, form)
        function = relay.from_source("def f(x):\n    return op(x)\n", {"op": operator})
        np.testing.assert_allclose(function(x), function.interpret(x), rtol=1e-12)
        with making((13,), "float64"):
            stage = with_shared_parts(lookup(operator.name).compute(te.placeholder((13,), "float64")))
        sizes.append(len(str(stage.op.body[0])))
    assert sizes[1] <= 2.5 * sizes[0], sizes


@pytest.mark.parametrize("guarded", [False, True])
def test_named_values_are_right(guarded: bool) -> None:
    function = relay.from_source("def f(x):\n    return op(x)\n", {"op": newton_root(5, guarded)})
    x = np.arange(1.0, 9.0)
    np.testing.assert_allclose(function(x), function.interpret(x), rtol=1e-12)


@pytest.mark.parametrize("reduced", [False, True])
def test_an_expression_that_would_be_written_out_forever(reduced: bool) -> None:
    from tvm import te, tirx

    def compute(x: Any) -> Any:
        def element(*index: Any) -> Any:
            places = te.reduce_axis((0, x.shape[0])) if reduced else None
            a = y = x(places) if reduced else x(*index)
            for _ in range(40):
                y = y - (y * y * y - a) / (y * y * tirx.const(3.0, x.dtype) + tirx.const(1.0, x.dtype))
            return te.sum(y, axis=places) if reduced else y

        return te.compute(() if reduced else x.shape, element)

    def often_used(x: Tensor) -> Tensor:
        """Steps toward the cubic root, or their sum. x: (T, (n,)) -> (T, ..)."""
        y = x
        for _ in range(40):
            y = y - (y * y * y - x) / (y * y * 3.0 + 1.0)
        return np.sum(y) if reduced else y

    often_used.__name__ = f"often_used_{reduced}"
    relation = relay.Relation("T:float -> T", lambda shape: () if reduced else shape)
    operator = relay.register_op(relation=relation, compute=compute, no_gradient="none")(often_used)
    function = relay.from_source("def f(x):\n    return op(x)\n", {"op": operator})
    if reduced:
        with pytest.raises(CompileError, match=r"make a te\.compute of its own"):
            function(np.ones(3))
    else:
        np.testing.assert_allclose(function(np.arange(1.0, 5.0)), np.cbrt(np.arange(1.0, 5.0)), rtol=1e-9)


def test_a_fact_that_there_is_not_is_refused() -> None:
    with pytest.raises(RegistrationError, match="Algebra has no field 'comutative'") as caught:
        Algebra(comutative=True)  # type: ignore[call-arg]
    assert caught.value.help == "did you mean 'commutative'?"
    with pytest.raises(RegistrationError, match="Memory takes keywords only"):
        Memory(0)  # type: ignore[misc]
    with pytest.raises(RegistrationError, match="a definition has no part 'commutative'") as caught:
        relay.register_op(relation=FLOATS, commutative=True)(triple)  # type: ignore[call-overload]
    assert caught.value.help == "give it in a facet: algebra=relay.Algebra(commutative=True)"


def test_a_result_with_an_unbound_variable_is_refused() -> None:
    n, m = TypeId("n", Kind.Dim), TypeId("m", Kind.Dim)
    floats = TensorType(relay.Float32, (n,))
    before = relay.get_env().names()
    type_ = mk_quant(n, mk_quant(m, mk_arrow([floats], TensorType(relay.Float32, (m,)))))
    with pytest.raises(RegistrationError, match="mentions the variable m"):
        relay.register_op(relay.get_env(), "stretched", type_, print)
    free = mk_arrow([floats], floats)
    with pytest.raises(RegistrationError, match="mentions n, which it does not quantify"):
        relay.register_op(relay.get_env(), "free", free, print)
    made = mk_quant(n, mk_arrow([floats], mk_arrow([floats], floats)))
    with pytest.raises(RegistrationError, match="operators take and give tensors, its type has fn"):
        relay.register_op(relay.get_env(), "made", made, print)
    pair = mk_quant(n, mk_arrow([floats, floats], floats))
    with pytest.raises(RegistrationError, match="its type has 2 parameters, its reference 1"):
        relay.register_op(relation=pair, compute=lambda x: x, no_gradient="none")(triple)
    longer = mk_quant(n, mk_quant(m, mk_arrow([floats], TensorType(relay.Float32, (n + m,)))))  # type: ignore[operator]
    with pytest.raises(RegistrationError, match="mentions the variable m"):
        relay.register_op(relay.get_env(), "longer", longer, print)
    assert relay.get_env().names() == before


def test_a_callback_has_no_attributes() -> None:
    with pytest.raises(RegistrationError, match="gets operands only; bind scale with a closure"):

        @relay.pure_callback(relation=Relation("T, T -> T", broadcast))
        def scaled(x: Tensor, y: Tensor, scale: float = 1.0) -> Tensor:
            """scale x y. x: (T, s), y: (T, s) -> (T, s)."""
            return x * y * scale


WRONG_GRADIENTS = {
    "has 2 parts for 1 operands": lambda x, out, dout: (dout, dout),
    r"has a cotangent of type Tensor\[float64, \(\)\] for": lambda x, out, dout: dout.op("sum"),
    r"has a cotangent of type Tensor\[bool, \(3,\)\] for": lambda x, out, dout: dout > 0,
    "has 2.0 for an operand, neither a symbolic value nor None": lambda x, out, dout: 2.0,
    "failed: division by zero": lambda x, out, dout: 1 / 0,
}


@pytest.mark.parametrize("message", WRONG_GRADIENTS)
def test_a_wrong_gradient_is_an_error_at_the_call(message: str) -> None:
    relay.register_op(relation=FLOATS, compute=lambda x: x, gradient=WRONG_GRADIENTS[message])(triple)

    @relay
    def total(x):  # type: ignore[no-untyped-def]
        return relay.sum(relay.triple(x))

    gradient = relay.grad(total)
    for run in (gradient.core, gradient.interpret):
        with pytest.raises(relay.DifferentiationError, match=f"the gradient of triple {message}") as caught:
            run(X)
        assert "return relay.sum(relay.triple(x))" in str(caught.value)


def test_a_wrong_reference_or_shape_rule_is_an_error_at_the_call() -> None:
    @relay.register_op(relation=FLOATS, compute=lambda x: x, no_gradient="none")
    def shortened(x: Tensor) -> Tensor:
        """The first half. x: (T, s) -> (T, s)."""
        return x[:1]

    @relay
    def call(x):  # type: ignore[no-untyped-def]
        return relay.shortened(x)

    with pytest.raises(
        ExecutionError, match=r"the reference of shortened returned shape \(1,\), its type says"
    ) as caught:
        call.interpret(X)
    assert "return relay.shortened(x)" in str(caught.value)

    rules = {"halved": lambda shape: shape[0] // 0, "nothing": lambda shape: None}
    for name, rule in rules.items():
        rule.__name__ = name
        relay.register_op(relation=Relation("T -> T", rule), compute=lambda x: x, no_gradient="none", name=name)(triple)
    for name, message in (("halved", "failed: integer division"), ("nothing", "returned None, which is not a shape")):
        with pytest.raises(TypeMismatch, match=f"the shape rule {name} {message}") as raised:
            relay.from_source(f"def call(x):\n    return relay.{name}(x)\n", {"relay": relay}).interpret(X)
        assert f"return relay.{name}(x)" in str(raised.value)


def failing(x: Any) -> Any:
    raise ValueError("no type today")


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        (Relation("T -> T", lambda shape: (1.5, *shape[1:])), "1.5 is not an extent of an axis"),
        (Relation("T -> T", lambda shape: (True,)), "True is not an extent of an axis"),
        (Relation("T -> T", lambda shape: (shape[0] - 5,)), "no extent is less than 0"),
        (lambda x: "float", "the type rule of strange returned 'float', which is not a type of tensors"),
        (lambda x: None, "the type rule of strange returned None, which is not a type of tensors"),
        (lambda x: TensorType(x.base, (-3,)), "no extent is less than 0"),
        (lambda x: x.elements, "the type rule of strange failed: 'TensorType' object has no attribute 'elements'"),
        (failing, "the type rule of strange failed: no type today"),
    ],
)
def test_a_rule_that_gives_no_type_is_an_error_at_the_call(relation: Any, message: str) -> None:
    relay.register_op(relation=relation, compute=lambda x: x, no_gradient="none", name="strange")(triple)
    function = relay.from_source("def call(x):\n    return relay.strange(x)\n", {"relay": relay})
    with pytest.raises(TypeMismatch) as raised:
        function.interpret(X)
    assert message in str(raised.value) and "return relay.strange(x)" in str(raised.value)


def test_what_a_shape_rule_subtracts_has_to_be_there() -> None:
    rule = Relation("T -> T", lambda shape: (shape[0] - 2,))

    @relay.register_op(relation=rule, compute=lambda x: x, no_gradient="none")
    def inner_part(x: Tensor) -> Tensor:
        """Without the ends. x: (T, s) -> (T, s)."""
        return x[1:-1]

    (n,) = relay.dims("n")
    names = {"relay": relay, "Tensor": Tensor, "Float": relay.Float, "n": n}
    text = "def call(x: Tensor[Float, (n,)]):\n    return relay.inner_part(x)\n"
    function = relay.from_source(text, names)
    assert str(function.type).endswith("-> Tensor[float32, (n - 2,)] where n >= 2")
    assert function.interpret(np.ones(5, np.float32)).shape == (3,)
    with pytest.raises(TypeMismatch, match="no extent is less than 0"):
        function.interpret(np.ones(1, np.float32))


# ---- other distributions


def installed(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Import Relay where a distribution with one pack of operators is installed."""
    (folder / "signal_pack.py").write_text(source)
    information = folder / "signal_pack-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: signal-pack\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[relay.operators]\nsignal = signal_pack\n")
    code = "import numpy as np, relay; print(relay.mirrored(np.float32([1, 2])))"
    path = os.pathsep.join([str(folder), str(Path(relay.__file__).parent.parent)])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


PACK = '''
import relay
from relay import Tensor

@relay.composite
def mirrored(x: Tensor) -> Tensor:
    """x and its mirror image, added. x: (T, s) -> (T, s)."""
    return x + relay.flip(x)
'''


def test_packs_of_operators_come_with_relay(tmp_path: Path) -> None:
    assert installed(tmp_path, PACK).stdout == "[3. 3.]\n"


def test_a_pack_that_fails_is_named(tmp_path: Path) -> None:
    message = installed(tmp_path, "raise ValueError('half of it is missing')").stderr
    assert "the operators 'signal' of the distribution signal-pack cannot be loaded: half of it is missing" in message


# ---- stages of compute functions


def test_stages_that_are_read_many_times_are_computed_once() -> None:
    """A stage that reads the one before four times, twenty times over: 4**20 reads, were each computed where it is
    read."""
    steps = 20

    def step(x: Any) -> Any:
        return te.compute(x.shape, lambda *i: x(*i) - (x(*i) * x(*i) - 2.0) / (x(*i) * 2.0))

    def roots(x: Any) -> Any:
        for _ in range(steps):
            x = step(x)
        return x

    @relay.register_op(relation=FLOATS, pattern=relay.Pattern.ELEMENTWISE, compute=roots, no_gradient="a test")
    def newton_steps(x: Tensor) -> Tensor:
        """Newton's steps towards the root of 2. x: (T float, s) -> (T, s)."""
        for _ in range(steps):
            x = x - (x * x - 2.0) / (x * 2.0)
        return x

    @relay
    def total(x):  # type: ignore[no-untyped-def]
        return relay.newton_steps(x * 2.0).sum()  # type: ignore[attr-defined]

    assert_modes_agree(total, np.array([1.0, 2.0, 3.0]), expected=3 * np.sqrt(2))
