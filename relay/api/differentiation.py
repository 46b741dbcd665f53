"""Derivatives as public transformations, in Python and inside programs alike.

`grad` and `value_and_grad` are nodes of the language. The others are written in it: a template is the text of a
function about `f__`, for given parameters (`relay/typecheck/elaboration/derivatives/templates.py` says what the
text may use). Forward mode is reverse mode twice: `seed -> <vjp(f, x)(seed), tangent>` is linear, and its gradient
is the derivative along the tangent. What only the first of the two backward parts computes is dead code then.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, ParamSpec, TypeVar

import attrs

from relay.calling.closures import ReturnedFunction
from relay.errors import TypeCheckError, TypeMismatch
from relay.frontend.lower import lower_text
from relay.function import RelayFunction
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Function, Grad, Parameter, Recompute, Static
from relay.operator import lookup
from relay.support.foreign_names import argument_help
from relay.typecheck.elaboration.closures.returned_functions import GradientNode
from relay.typecheck.elaboration.derivatives.derivatives import components, keeping_option, memory_option, output_option
from relay.typecheck.elaboration.derivatives.templates import TemplateScope, parameters_of_code, positional_parameters
from relay.typecheck.elaboration.values.objects import derived_entity

Parameters = Sequence[tuple[str, Parameter]]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _refusing_other_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, with an error that says what it calls an option of another library."""
    names = inspect.signature(function).parameters

    @functools.wraps(function)
    def checked(*arguments: _P.args, **options: _P.kwargs) -> _R:
        __tracebackhide__ = True
        unknown = [name for name in options if name not in names]
        if unknown:
            message = f"{function.__name__} has no option {unknown[0]!r}; it has {', '.join(list(names)[1:])}"
            raise TypeCheckError(message, help=argument_help(unknown[0], names))
        return function(*arguments, **options)

    return checked


# ---- the node


@_refusing_other_options
def grad(
    f: Any,
    wrt: int | str | Sequence[int | str] | None = None,
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
        output: which component of a result of several is differentiated, which has to be said.
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


@_refusing_other_options
def value_and_grad(
    f: Any,
    wrt: int | str | Sequence[int | str] | None = None,
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
        raise _not_decorated("grad", function)
    positions: Any = None if wrt is None else tuple(wrt) if isinstance(wrt, list | tuple) else (wrt,)
    component, kept = components(output_option(output), keeping_option(keeping), with_value, has_aux)
    node = Grad(Static(None), None, component, kept, seedable, with_value, has_aux, memory_option(memory))
    if is_returned:
        return _derivative_of_returned(function, node, positions)
    assert isinstance(definition, Definition | DerivedDefinition)
    derived = DerivedDefinition(definition, node, positions)
    derived_entity(derived)  # checks the names and positions
    return _derived_function(function, ("grad", *node.options, positions), lambda: derived)


def _derivative_of_returned(
    function: ReturnedFunction, grad: Grad, wrt: tuple[int | str, ...] | None
) -> ReturnedFunction:
    """The derivative of a function that a program has returned, which is one, too."""
    node = attrs.evolve(grad, wrt=None if wrt is None else function.positions(wrt))  # type: ignore[misc]
    return function.with_node(GradientNode(function.node, node.options, node))


grad.__relay_builtin__ = "grad"  # type: ignore[attr-defined]
value_and_grad.__relay_builtin__ = "value_and_grad"  # type: ignore[attr-defined]


# ---- templates


OPERATORS = ("reshape", "zeros", "zeros_like", "sum", "multiply", "stack")
"""The operators that templates use."""


@attrs.frozen(eq=False)
class TextTemplate:
    """A template by its text: `text(parameters, options)`."""

    name: str
    called: bool
    text: Callable[[Parameters, Mapping[str, object]], str]
    options: tuple[str, ...] = ()
    of_gradient: bool = False
    recomputes: bool = False
    repeats: bool = False

    def function(self, parameters: Parameters, options: Mapping[str, object]) -> Function:
        """The surface code for a function with these parameters. Raises TypeCheckError for wrong options."""
        rule = Recompute() if self.recomputes else None
        code = _parse_template(f"<relay.{self.name}>", self.text(parameters, options)).function
        if self.called:
            return code
        return attrs.evolve(code, signature=tuple(s for _, s in parameters), rule=rule)  # type: ignore[misc]

    def globals(self) -> Mapping[str, object]:
        """The objects that its code mentions."""
        operators = {f"{name}__": lookup(name) for name in OPERATORS}
        return {"grad__": grad, "value_and_grad__": value_and_grad, "enumerate": enumerate, "range": range, **operators}

    def definition(
        self, of: Definition | DerivedDefinition, parameters: Parameters, options: Mapping[str, object]
    ) -> Definition:
        """The function that it makes of one, outside of a program."""
        return Definition(self.function(parameters, options), TemplateScope({**self.globals(), "f__": of}))


@functools.lru_cache(maxsize=256)
def _parse_template(filename: str, text: str) -> Definition:
    return next(iter(lower_text(text, filename, {}).values()))


def _names(parameters: Parameters) -> str:
    return ", ".join(name for name, _ in parameters)


def _call(parameters: Parameters) -> str:
    return ", ".join(f"{name}={name}" if s.kind == "keyword_only" else name for name, s in parameters)


def _vjp_text(parameters: Parameters, options: Mapping[str, object]) -> str:
    names = _names(parameters)
    return f"""\
def vjp({names}):
    def pullback(seed__):
        def paired({names}):
            return dot__(f__({names}), seed__)
        return grad__(quiet__(paired))({names})
    return f__({names}), pullback
"""


def _pullback_text(parameters: Parameters, options: Mapping[str, object]) -> str:
    names = _names(parameters)
    return f"""\
def pullback({names}, seed__):
    def paired({names}):
        return dot__(f__({names}), seed__)
    return grad__(quiet__(paired))({names})
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
    names, call, given = _names(parameters), _call(parameters), ", ".join(chosen)
    places = {name: position for position, (name, _) in enumerate(parameters)}
    asked = "".join(f"    {name} = tensor__({name})\n" for name in wrt or ())  # also a default
    checked = "".join(f"    {name} = by__({name}, f__, {places[name]})\n" for name in wrt or ())
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
{checked}\
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
def checkpointed({_names(parameters)}):
    return f__({_call(parameters)})
"""


VJP = TextTemplate("vjp", True, _vjp_text)
PULLBACK = TextTemplate("vjp", True, _pullback_text)
JVP = TextTemplate("jvp", True, _jvp_text, ("primals", "tangents"))
JACOBIAN = TextTemplate("jacobian", False, _jacobian_text, ("wrt",), repeats=True)
CHECKPOINT = TextTemplate("checkpoint", False, _checkpoint_text, recomputes=True)
HESSIAN = TextTemplate("hessian", False, _jacobian_text, ("wrt",), True, repeats=True)


# ---- the functions


def vjp(f: Any, *arguments: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The value of f and its pullback, which maps a cotangent of the value to those of the arguments.

    The pullback takes a structure as the value's and returns one cotangent for each argument, bare for one argument;
    None where there is no gradient. It may be called any number of times; each call computes f anew.

    Raises DifferentiationError where there is no derivative, TypeMismatch for a cotangent of another shape or dtype.
    """
    if isinstance(f, ReturnedFunction):
        names = [f"x{i}" for i in range(len(arguments))]
        value, pulled = f.wrapper_function("vjp", names, f"vjp__({', '.join(['{}', *names])})", {"vjp__": vjp})(
            f, *arguments
        )
        return value, lambda cotangent: pulled(_no_none(cotangent))
    of, count = _definition(f, "vjp"), len(arguments)
    if not arguments:
        raise TypeMismatch("vjp takes the function's arguments, too", help="call relay.vjp(f, x)")
    pull = _derived_function(f, ("vjp", count), lambda: PULLBACK.definition(of, positional_parameters(count), {}))

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
    of = _definition(f, "jvp")
    run = _derived_function(f, ("jvp",), lambda: JVP.definition(of, (), {}))
    value, tangent = run(tuple(primals), _no_none(tuple(tangents)))
    return value, tangent


@_refusing_other_options
def jacobian(f: Any, wrt: int | str | Sequence[int | str] | None = None) -> RelayFunction:
    """The function that returns the derivative of each element of f's result.

    For a result of shape s and an argument of shape t it is a tensor of shape (*s, *t). A structure as the result of f
    gives a structure of these; several `wrt` (by default all parameters) give a tuple inside of it, as for `grad`.

    Raises DifferentiationError where there is no derivative.
    """
    if isinstance(f, ReturnedFunction):
        returned: RelayFunction = f.wrapper_function(
            "jacobian", [], f"jacobian__({{}}, wrt={wrt!r})", {"jacobian__": jacobian}
        )(f)
        return returned
    of = _definition(f, "jacobian")
    parameters = _parameters(f)
    options = {"wrt": wrt if wrt is None or isinstance(wrt, int | str) else tuple(wrt)}
    return _derived_function(f, ("jacobian", options["wrt"]), lambda: JACOBIAN.definition(of, parameters, options))


@_refusing_other_options
def hessian(f: Any, wrt: int | str | Sequence[int | str] | None = None) -> RelayFunction:
    """The function that returns the second derivatives of f, whose result has one element.

    For one argument of shape t a tensor of shape (*t, *t), for several a tuple of tuples of them: `jacobian(grad(f))`.
    """
    return jacobian(grad(f, wrt), wrt)


def checkpoint(f: Any) -> RelayFunction:
    """The same function, whose derivatives compute it again in their backward part instead of storing what they need.

    The arguments are all that is kept: less memory for one more evaluation. What f prints is printed once.
    """
    if isinstance(f, ReturnedFunction):
        returned: RelayFunction = f.wrapper_function(
            "checkpoint", [], "checkpoint__({})", {"checkpoint__": checkpoint}
        )(f)
        return returned
    of, parameters = _definition(f, "checkpoint"), _parameters(f)
    return _derived_function(f, ("checkpoint",), lambda: CHECKPOINT.definition(of, parameters, {}))


checkpoint.__relay_template__ = CHECKPOINT  # type: ignore[attr-defined]
vjp.__relay_template__ = VJP  # type: ignore[attr-defined]
jvp.__relay_template__ = JVP  # type: ignore[attr-defined]
jacobian.__relay_template__ = JACOBIAN  # type: ignore[attr-defined]
hessian.__relay_template__ = HESSIAN  # type: ignore[attr-defined]


def _definition(f: Any, name: str) -> Definition | DerivedDefinition:
    definition = getattr(f, "__relay__", None)
    if not isinstance(definition, Definition | DerivedDefinition):
        raise _not_decorated(name, f)
    return definition


def _not_decorated(name: str, f: Any) -> TypeMismatch:
    """The error for a derivative of something else than a function of Relay's."""
    message = f"{name} needs a function decorated with @relay, found"
    if not callable(f):
        call = f"relay.{name}(f, x)" if name in ("vjp", "jvp") else f"relay.{name}(f)(x)"
        help = f"pass the function itself, and not what it returns: {call}"
        return TypeMismatch(f"{message} a value, of type {type(f).__name__}", help=help)
    code = getattr(f, "__code__", None)
    if not isinstance(code, CodeType):
        return TypeMismatch(
            f"{message} {type(f).__name__}", help="write a function that calls it: relay(lambda x: f(x))"
        )
    is_lambda = code.co_name == "<lambda>"
    found = TypeMismatch(
        f"{message} {'a lambda' if is_lambda else f'the Python function {code.co_name!r}'}",
        help="write relay(lambda ..)" if is_lambda else "write @relay above it",
    )
    found.notes = (f"it is defined at {code.co_filename}:{code.co_firstlineno}",)
    return found


def _parameters(f: RelayFunction) -> Parameters:
    seeds = [(f"seed{i or ''}", Parameter()) for i in range(f._seeds)]
    return [*parameters_of_code(f._function), *seeds]


def _derived_function(
    f: RelayFunction, key: tuple[object, ...], make: Callable[[], Definition | DerivedDefinition]
) -> RelayFunction:
    """A function derived from f, the same object each time, so that `grad(f)(x)` in a loop compiles once."""
    found = f._made.get(key)
    if found is None:
        found = f._made.setdefault(key, RelayFunction(make(), f._options))
    assert isinstance(found, RelayFunction)
    return found


def _no_none(value: Any) -> Any:
    """A structure with () for None, which is how programs take it."""
    if value is None:
        return ()
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(_no_none, value))
    if isinstance(value, list):
        return list(map(_no_none, value))
    if isinstance(value, dict):
        return {k: _no_none(v) for k, v in value.items()}
    return value
