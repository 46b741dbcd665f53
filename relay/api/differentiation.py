"""Derivatives as public transformations, in Python and inside programs alike.

`grad` and `value_and_grad` are nodes of the language. The others are written in it: a template is the text of a
function about `f__`, for given parameters (`relay/typecheck/elaboration/derivatives/templates.py` says what the
text may use). Forward mode is reverse mode twice: `seed -> <vjp(f, x)(seed), tangent>` is linear, and its gradient
is the derivative along the tangent. What only the first of the two backward parts computes is dead code then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import attrs

from relay.api.function import RelayFunction
from relay.api.templates import (
    Parameters,
    TextTemplate,
    call_arguments,
    definition_of,
    derived_function,
    parameter_names,
    parameters_of,
    readable_operand,
    undecorated_error,
    with_checked_options,
)
from relay.calling.closures import ReturnedFunction
from relay.errors import TypeCheckError, TypeMismatch
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Grad, Static
from relay.support import python_mode
from relay.typecheck.elaboration.closures.returned_functions import GradientNode
from relay.typecheck.elaboration.derivatives.derivatives import components, keeping_option, memory_option, output_option
from relay.typecheck.elaboration.derivatives.templates import static_parameters
from relay.typecheck.elaboration.values.objects import derived_entity

if TYPE_CHECKING:
    from relay.api.plain_functions import Decorated, P, R

_Wrt = int | str | Sequence[int | str] | None

# ---- the node


@overload
def grad(
    f: Callable[P, Any],
    wrt: list[Any] | tuple[int | str, ...],
    output: int | None = None,
    keeping: int | Sequence[int] = (),
    seedable: Literal[False] = False,
    memory: str | int = "store",
    has_aux: Literal[False] = False,
) -> Decorated[P, tuple[Any, ...]]: ...
@overload
def grad(
    f: Callable[P, Any],
    wrt: _Wrt = None,
    output: int | None = None,
    keeping: int | Sequence[int] = (),
    seedable: Literal[False] = False,
    memory: str | int = "store",
    has_aux: Literal[False] = False,
) -> Decorated[P, Any]: ...
@overload
def grad(
    f: Callable[P, Any],
    wrt: _Wrt = None,
    output: int | None = None,
    keeping: int | Sequence[int] = (),
    seedable: Literal[False] = False,
    memory: str | int = "store",
    *,
    has_aux: Literal[True],
) -> Decorated[P, tuple[Any, Any]]: ...
@overload
def grad(
    f: Callable[..., Any],
    wrt: _Wrt = None,
    output: int | None = None,
    keeping: int | Sequence[int] = (),
    *,
    seedable: bool,
    memory: str | int = "store",
    has_aux: bool = False,
) -> RelayFunction: ...
@overload
def grad(
    f: Callable[..., Any],
    wrt: _Wrt = None,
    output: int | None = None,
    keeping: int | Sequence[int] = (),
    seedable: bool = False,
    memory: str | int = "store",
    *,
    has_aux: bool,
) -> RelayFunction: ...
@with_checked_options
def grad(
    f: Any,
    wrt: _Wrt = None,
    output: int | None = None,
    keeping: int | Sequence[int] = (),
    seedable: bool = False,
    memory: str | int = "store",
    has_aux: bool = False,
) -> RelayFunction:
    """The derivative of a function, as a function of the same arguments.

    Args:
        f: a decorated function (inside a program: any function).
        wrt: positions or names of the parameters to differentiate; None: all, with None for those without a gradient.
        output: which component of a result of several is differentiated, which must be named.
        keeping: components of the original result that are returned after the gradients.
        seedable: add a last argument, the incoming cotangent; otherwise the output must have one element.
        memory: "store" what the backward part needs of every round of a loop, or "recompute" it: of n rounds, the tape
            holds about sqrt(n) states, for one more evaluation of the loop. A number of bytes chooses for loops whose
            length is known.
        has_aux: f returns a pair, the value that is differentiated and anything else, and the derivative a pair of the
            gradients and this.

    Returns a tuple with one gradient for each `wrt`, bare for a single one with nothing kept, then the kept outputs.
    Raises DifferentiationError where there is no derivative.
    """
    made: RelayFunction = _derivative(f, wrt, output, keeping, seedable, False, memory, has_aux)
    return made


@overload
def value_and_grad(
    f: Callable[P, Any],
    wrt: _Wrt = None,
    output: int | None = None,
    keeping: int | Sequence[int] = (),
    seedable: Literal[False] = False,
    memory: str | int = "store",
    has_aux: bool = False,
) -> Decorated[P, tuple[Any, Any]]: ...
@overload
def value_and_grad(
    f: Callable[..., Any],
    wrt: _Wrt = None,
    output: int | None = None,
    keeping: int | Sequence[int] = (),
    *,
    seedable: bool,
    memory: str | int = "store",
    has_aux: bool = False,
) -> RelayFunction: ...
@with_checked_options
def value_and_grad(
    f: Any,
    wrt: _Wrt = None,
    output: int | None = None,
    keeping: int | Sequence[int] = (),
    seedable: bool = False,
    memory: str | int = "store",
    has_aux: bool = False,
) -> RelayFunction:
    """Like `grad`, but the result is the pair (value, gradients); with `has_aux` the value is (value, auxiliary)."""
    made: RelayFunction = _derivative(f, wrt, output, keeping, seedable, True, memory, has_aux)
    return made


def _derivative(
    function: Any,
    wrt: int | str | Sequence[int | str] | None,
    output: int | None,
    keeping: int | Sequence[int],
    seedable: bool,
    with_value: bool,
    memory: str | int,
    has_aux: bool,
) -> Any:
    """`grad` and `value_and_grad` outside of a program."""
    definition = getattr(function, "__relay__", None)
    is_returned = isinstance(function, ReturnedFunction)
    if not is_returned and not isinstance(definition, Definition | DerivedDefinition):
        raise undecorated_error("grad", function)
    positions: Any = None if wrt is None else tuple(wrt) if isinstance(wrt, list | tuple) else (wrt,)
    component, kept = components(output_option(output), keeping_option(keeping), with_value, has_aux)
    node = Grad(Static(None), None, component, kept, seedable, with_value, has_aux, memory_option(memory))
    if is_returned:
        return _derivative_of_returned(function, node, positions)
    assert isinstance(definition, Definition | DerivedDefinition)
    derived = DerivedDefinition(definition, node, positions)
    derived_entity(derived)  # checks the names and positions
    return derived_function(function, ("grad", *node.options, positions), lambda: derived)


def _derivative_of_returned(
    function: ReturnedFunction, grad: Grad, wrt: tuple[int | str, ...] | None
) -> ReturnedFunction:
    """The derivative of a function that a program has returned, which is one, too."""
    node = attrs.evolve(grad, wrt=None if wrt is None else function.positions(wrt))  # type: ignore[misc]
    return function.with_node(GradientNode(function.node, node.options, node))


grad.__relay_builtin__ = "grad"  # type: ignore[attr-defined]
value_and_grad.__relay_builtin__ = "value_and_grad"  # type: ignore[attr-defined]


# ---- templates


def _parameter_lines(parameters: Parameters) -> str:
    """Parameters, each in a line of its own, as static ones are written."""
    return "".join(f"    {name},{'  # relay: static' if s.static else ''}\n" for name, s in parameters)


def _dynamic_parameters(parameters: Parameters) -> tuple[str, str]:
    """The parameters that are not static, and the text that takes their cotangents out of `found__`, those of all."""
    chosen = [name for name, s in parameters if not s.static]
    parts = iter(["found__"] if len(chosen) == 1 else [f"found__[{i}]" for i in range(len(chosen))])
    listed = ["None" if s.static else next(parts) for _, s in parameters]
    whole = len(chosen) == len(parameters)
    return ", ".join(chosen), "found__" if whole else listed[0] if len(listed) == 1 else f"({', '.join(listed)})"


def _vjp_text(parameters: Parameters, options: Mapping[str, object]) -> str:
    names, (chosen, found) = parameter_names(parameters), _dynamic_parameters(parameters)
    return f"""\
def vjp(
{_parameter_lines(parameters)}):
    def pullback(seed__):
        def paired({chosen}):
            return dot__(f__({names}), seed__)
        found__ = {f"grad__(quiet__(paired))({chosen})" if chosen else "None"}
        return {found}
    return f__({names}), pullback
"""


def _pullback_text(parameters: Parameters, options: Mapping[str, object]) -> str:
    names, (chosen, found) = parameter_names(parameters), _dynamic_parameters(parameters)
    return f"""\
def pullback(
{_parameter_lines(parameters)}    seed__,
):
    def paired({chosen}):
        return dot__(f__({names}), seed__)
    found__ = {f"grad__(quiet__(paired))({chosen})" if chosen else "None"}
    return {found}
"""


def _jvp_text(parameters: Parameters, options: Mapping[str, object]) -> str:
    return (
        """\
def jvp(primals, tangents):
    def again(primals):
        return lists__(stack__, f__(*primals))
    start = blank__(quiet__(again), (primals,))
    def transposed(seed):
        def paired(primals):
            value = f__(*primals)
            return dot__(lists__(stack__, value), seed), value
        (_, value), gradients = value_and_grad__(partial__(paired), output=0)(primals)
        return dot__(gradients, tangents), value
    (_, value), tangent = value_and_grad__(transposed, output=0)(start)
"""
        + _ROWS
        + """\
    return value, listed__(rows__, tangent, value)
"""
    )


def _jacobian_text(parameters: Parameters, options: Mapping[str, object]) -> str:
    wrt = _wrt(parameters, options.get("wrt"))
    chosen = [name for name, s in parameters if not s.static] if wrt is None else wrt
    start = chosen[0] if len(chosen) == 1 else f"({', '.join(chosen)})"
    found = "found__"
    if wrt is None and len(chosen) < len(parameters):
        parts = ["found__"] if len(chosen) == 1 else [f"found__[{i}]" for i in range(len(chosen))]
        rest = iter(parts)
        found = f"({', '.join('None' if s.static else next(rest) for _, s in parameters)})"
    names, call, given = parameter_names(parameters), call_arguments(parameters), ", ".join(chosen)
    places = {name: position for position, (name, _) in enumerate(parameters)}
    asked = "".join(f"    {name} = tensor__({name})\n" for name in wrt or ())  # also a default
    checks = "".join(f"    {name} = by__({name}, f__, {places[name]})\n" for name in wrt or ())
    return f"""\
def jacobian({names}):
{asked}\
    def component__(
        leaf__,
        number__,  # relay: static
    ):
        zero__ = reshape__(zeros_like__(leaf__), (-1,))
        size__ = zero__.shape[0]
        def start__(x__, k__):
            return zeros__((size__, *x__.shape), dtype=x__.dtype)
        def finish__(x__, of__):
            return axes__(reshape__(of__, (*leaf__.shape, *x__.shape)), leaf__, x__)
        rows__ = leaves__(start__, {start})
        for j__ in range(size__):
            seed__ = zero__
            seed__[j__] = 1.0
            shaped__ = reshape__(seed__, leaf__.shape)
            def paired__({given}):
                return sum__(multiply__(pick__(lists__(stack__, f__({call})), number__), shaped__))
            def put__(x__, new__):
                x__[j__] = new__
                return x__
            rows__ = merge__(put__, rows__, grad__(quiet__(paired__))({given}))
        found__ = merge__(finish__, {start}, rows__)
        return {found}
{_ROWS}\
    value__ = floats__(often__(f__)({call}), f__)
{checks}\
    return listed__(rows__, leaves__(component__, lists__(stack__, value__)), value__)
"""


_ROWS = """\
    def rows__(block__):
        def row__(i__):
            def item__(x__, k__):
                return x__[i__]
            return leaves__(item__, block__)
        return [row__(i__) for i__, _ in enumerate(pick__(block__, 0))]
"""
"""A structure of tensors as the list of those of their rows."""


def _wrt(parameters: Parameters, wrt: object) -> list[str] | None:
    """The names of the parameters in `wrt`. Raises TypeCheckError."""
    if wrt is None:
        return None
    names = [name for name, _ in parameters]
    found = []
    for item in wrt if isinstance(wrt, tuple | list) else (wrt,):
        if isinstance(item, int) and -len(names) <= item < len(names):
            found.append(names[item])
        elif item in names:
            found.append(str(item))
        else:
            raise TypeCheckError(f"wrt: there is no parameter {item!r}; there are {', '.join(names)}")
    return found


def _checkpoint_text(parameters: Parameters, options: Mapping[str, object]) -> str:
    return f"""\
def checkpointed({parameter_names(parameters)}):
    return f__({call_arguments(parameters)})
"""


_NAMES: Mapping[str, object] = {"grad__": grad, "value_and_grad__": value_and_grad}

VJP = TextTemplate("vjp", True, _vjp_text, names=_NAMES)
PULLBACK = TextTemplate("vjp", True, _pullback_text, names=_NAMES)
JVP = TextTemplate("jvp", True, _jvp_text, ("primals", "tangents"), names=_NAMES)
JACOBIAN = TextTemplate("jacobian", False, _jacobian_text, ("wrt",), repeats=True, names=_NAMES)
CHECKPOINT = TextTemplate("checkpoint", False, _checkpoint_text, recomputes=True, names=_NAMES)
HESSIAN = TextTemplate("hessian", False, _jacobian_text, ("wrt",), True, repeats=True, names=_NAMES)


# ---- the functions


def vjp(f: Any, *arguments: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The value of f and its pullback, which maps a cotangent of the value to those of the arguments.

    The pullback takes a structure as the value's and returns one cotangent for each argument, bare for one argument;
    None where there is no gradient. It may be called any number of times; each call evaluates f again.

    Raises DifferentiationError where there is no derivative, TypeMismatch for a cotangent of another shape or dtype.
    """
    f = readable_operand(f)
    if isinstance(f, ReturnedFunction):
        names = [f"x{i}" for i in range(len(arguments))]
        value, pulled = f.wrapper_function("vjp", names, f"vjp__({', '.join(['{}', *names])})", {"vjp__": vjp})(
            f, *arguments
        )
        return value, lambda cotangent: pulled(_no_none(cotangent))
    of, count = definition_of(f, "vjp"), len(arguments)
    if not arguments:
        raise TypeMismatch("vjp takes the function's arguments, too", help="call relay.vjp(f, x)")
    parameters = static_parameters(count, [s.static for _, s in parameters_of(f)])
    pull = derived_function(f, ("vjp", count), lambda: PULLBACK.definition(of, parameters, {}))

    def pullback(cotangent: Any) -> Any:
        return pull(*arguments, _no_none(cotangent))

    return f(*arguments), pullback


def jvp(f: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of f at the primals, and its derivative along the tangents.

    `tangents` has the structure of `primals`, with None where there is none. The tangent of the value has the value's
    structure, with None for what has no derivative.

    Raises DifferentiationError where there is no derivative, TypeMismatch for a tangent of another shape or dtype.
    """
    if isinstance(f, ReturnedFunction):
        call = f.wrapper_function("jvp", ["primals", "tangents"], "jvp__({}, primals, tangents)", {"jvp__": jvp})
        value, tangent = call(f, tuple(primals), _no_none(tuple(tangents)))
        return value, tangent
    f = readable_operand(f)
    of = definition_of(f, "jvp")
    run = derived_function(f, ("jvp",), lambda: JVP.definition(of, (), {}))
    value, tangent = run(tuple(primals), _no_none(tuple(tangents)))
    return value, tangent


@with_checked_options
def jacobian(f: Callable[P, Any], wrt: _Wrt = None) -> Decorated[P, Any]:
    """The function that returns the derivative of each element of f's result.

    For a result of shape s and an argument of shape t it is a tensor of shape (*s, *t). A structure as the result of f
    gives a structure of these; several `wrt` (by default all parameters) give a tuple inside of it, as for `grad`.

    Raises DifferentiationError where there is no derivative.
    """
    made: Decorated[P, Any] = _jacobian(f, wrt)
    return made


def _jacobian(f: Any, wrt: _Wrt) -> Any:
    """`jacobian` outside of a program."""
    if isinstance(f, ReturnedFunction):
        returned: RelayFunction = f.wrapper_function(
            "jacobian", [], f"jacobian__({{}}, wrt={wrt!r})", {"jacobian__": jacobian}
        )(f)
        return returned
    of = definition_of(f, "jacobian")
    parameters = parameters_of(f)
    options = {"wrt": wrt if wrt is None or isinstance(wrt, int | str) else tuple(wrt)}
    return derived_function(f, ("jacobian", options["wrt"]), lambda: JACOBIAN.definition(of, parameters, options))


@with_checked_options
def hessian(f: Callable[P, Any], wrt: _Wrt = None) -> Decorated[P, Any]:
    """The function that returns the second derivatives of f, whose result has one element.

    For one argument of shape t a tensor of shape (*t, *t), for several a tuple of tuples of them: `jacobian(grad(f))`.
    """
    made: Decorated[P, Any] = _jacobian(grad(f, wrt), wrt)
    return made


@overload
def checkpoint(f: Decorated[P, R]) -> Decorated[P, R]: ...
@overload
def checkpoint(f: Callable[P, Any]) -> Decorated[P, Any]: ...
def checkpoint(f: Any) -> RelayFunction:
    """The same function, whose derivatives compute it again in their backward part instead of storing what they need.

    The arguments are all that is kept: less memory for one more evaluation. What f prints is printed once.
    """
    mode = python_mode.active.get()
    if mode is not None and (own := mode.checkpointed_function(f)) is not None:
        return own  # type: ignore[no-any-return]
    if isinstance(f, ReturnedFunction):
        returned: RelayFunction = f.wrapper_function(
            "checkpoint", [], "checkpoint__({})", {"checkpoint__": checkpoint}
        )(f)
        return returned
    f = readable_operand(f)
    of, parameters = definition_of(f, "checkpoint"), parameters_of(f)
    return derived_function(f, ("checkpoint",), lambda: CHECKPOINT.definition(of, parameters, {}))


checkpoint.__relay_template__ = CHECKPOINT  # type: ignore[attr-defined]
vjp.__relay_template__ = VJP  # type: ignore[attr-defined]
jvp.__relay_template__ = JVP  # type: ignore[attr-defined]
jacobian.__relay_template__ = JACOBIAN  # type: ignore[attr-defined]
hessian.__relay_template__ = HESSIAN  # type: ignore[attr-defined]


def _no_none(value: Any) -> Any:
    """A structure with () for None, which is how programs take it. Raises TypeMismatch for one that contains itself."""
    try:
        return _with_unit(value)
    except RecursionError:
        raise TypeMismatch("a cotangent or tangent is nested too deeply, or contains itself") from None


def _with_unit(value: Any) -> Any:
    if value is None:
        return ()
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(_with_unit, value))
    if isinstance(value, list):
        return list(map(_with_unit, value))
    if isinstance(value, dict):
        return {k: _with_unit(v) for k, v in value.items()}
    return value
