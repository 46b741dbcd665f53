"""The registry of operators, with a decorator and a four-argument form to register them."""

from __future__ import annotations

import contextlib
import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, overload

import attrs
import numpy as np

from relay.errors import RegistrationError
from relay.ir.expr import Constant
from relay.ir.types import FunctionType, QuantifiedType, TensorType, Type
from relay.operator.composition import Composition
from relay.operator.definition import Operator, Pattern, Requirement
from relay.operator.expansion import Expansion
from relay.operator.facets import FACETS, Algebra, Batching, Indexing, Memory, Numerics
from relay.operator.relation import Relation
from relay.operator.soundness import check_compiler, check_name, check_parts, check_relation, takes_out_by_name
from relay.support.locks import Lock


class Environment:
    """Operators by name, and further names for some of them. Operators are never replaced; an alias may be."""

    def __init__(self) -> None:
        self._operators: dict[str, Operator] = {}
        self._aliases: dict[str, str] = {}
        self._reserved: frozenset[str] = frozenset()
        self._lock = Lock()

    def reserve(self, names: Iterable[str]) -> None:
        """Names that mean something else where operators are looked up, so that an operator could not be reached."""
        self._reserved = frozenset(names)

    def add(self, operator: Operator) -> None:
        """Register an operator. Raises RegistrationError for a name that programs cannot write or that is taken."""
        check_name(operator.name)
        with self._lock:
            if operator.name in self._operators:
                raise RegistrationError(f"an operator named {operator.name!r} is registered already")
            if operator.name in self._reserved:
                raise RegistrationError(f"relay.{operator.name} is something else already; choose another name")
            self._operators[operator.name] = operator
            self._aliases.pop(operator.name, None)

    def alias(self, name: str, operator: str) -> None:
        """Give an operator a further name, which a later registration may take over."""
        with self._lock:
            if name in self._operators or operator not in self._operators:
                raise RegistrationError(f"cannot make {name!r} another name of {operator!r}")
            self._aliases[name] = operator

    def find(self, name: str) -> Operator | None:
        """The operator with this name or alias, or None."""
        found = self._operators.get(name)  # no alias is an operator's name
        if found is None and name in self._aliases:
            found = self._operators.get(self._aliases[name])
        if found is None and (find := _finder.get()) is not None:
            return find(name)
        return found

    def __iter__(self) -> Iterator[Operator]:
        return iter(list(self._operators.values()))

    def names(self) -> list[str]:
        """All names and aliases, sorted."""
        return sorted([*self._operators, *self._aliases])


_environment = Environment()


def get_env() -> Environment:
    """The environment that programs are checked in; `register_op` adds to it."""
    return _environment


def lookup(name: str) -> Operator:
    """The operator of this name. Raises KeyError."""
    operator = _environment._operators.get(name)  # nearly all are found here, and all passes ask often
    if operator is None:
        operator = _environment.find(name)
        if operator is None:
            raise KeyError(name)
    return operator


def resolve_name(name: str) -> Operator | None:
    """The operator of this name, or None."""
    return _environment.find(name)


def operators() -> list[Operator]:
    """All registered operators, in the order of registration."""
    return list(_environment)


def alias(name: str, operator: str) -> None:
    """Give an operator a further name."""
    _environment.alias(name, operator)


@overload
def register_op(
    environment: Environment,
    name: str,
    type_: QuantifiedType | FunctionType,
    compiler: Callable[[FunctionType], Callable[..., Any]],
    /,
) -> Operator: ...
@overload
def register_op(
    *,
    relation: Relation | QuantifiedType | FunctionType | Callable[..., Type],
    name: str | None = ...,
    pattern: Pattern = ...,
    compute: Callable[..., Any] | None = ...,
    external: Callable[[FunctionType], Callable[..., Any]] | None = ...,
    gradient: Callable[..., Any] | None = ...,
    no_gradient: str | None = ...,
    layouts: Callable[..., Sequence[Sequence[str | None]]] | None = ...,
    requirements: tuple[Requirement, ...] = ...,
    algebra: Algebra = ...,
    indexing: Indexing = ...,
    memory: Memory = ...,
    batching: Batching = ...,
    numerics: Numerics = ...,
    sizes: frozenset[str] = ...,
    on_dims: Callable[..., Any] | None = ...,
    sampler: Callable[..., Any] | None = ...,
) -> Callable[[Callable[..., Any]], Operator]: ...
def register_op(*positional: Any, **definition: Any) -> Any:
    """Register an operator.

    As a decorator of its NumPy reference, with everything else as keywords (see `Operator`)::

        @register_op(relation=Relation("T:float -> T", same), pattern=Pattern.ELEMENTWISE,
                     compute=lambda x: topi.exp(x), gradient=lambda x, out, dout: dout * out)
        def exp(x: Tensor) -> Tensor:
            "Elementwise exponential."
            return np.exp(x)

    Parameters of the reference that are annotated `Tensor` are operands, one annotated `tuple[Tensor, ...]` makes the
    operator variadic, the rest are attributes.

    Or as in the 2018 presentation, `register_op(env, name, type, compiler)`: `compiler(func_ty)` gets the function type
    at the call's shapes and returns a function that is called with the inputs and then the output buffer. It is the
    reference, too, and there is no gradient.

    Raises RegistrationError before anything is registered.
    """
    if positional:
        if len(positional) != 4 or definition:
            raise RegistrationError(
                "register_op takes an environment, a name, a type and a compiler, or keywords only; found"
                f" {len(positional)} arguments and {len(definition)} keywords"
            )
        return _register_compiled(*positional)
    return lambda reference: _register_reference(reference, definition)


@overload
def composite(function: Callable[..., Any], /) -> Operator: ...
@overload
def composite(
    *,
    name: str | None = ...,
    relation: Relation | QuantifiedType | FunctionType | Callable[..., Type] | None = ...,
    reference: Callable[..., Any] | None = ...,
    gradient: Callable[..., Any] | None = ...,
    no_gradient: str | None = ...,
    pattern: Pattern = ...,
    compute: Callable[..., Any] | None = ...,
    algebra: Algebra = ...,
    indexing: Indexing = ...,
    batching: Batching = ...,
    numerics: Numerics = ...,
    sampler: Callable[..., Any] | None = ...,
) -> Callable[[Callable[..., Any]], Operator]: ...
def composite(function: Callable[..., Any] | None = None, /, **definition: Any) -> Any:
    """Register an operator whose definition is a program of the language, by decorating it::

        @relay.composite
        def swish(x: Tensor, beta: float = 1.0) -> Tensor:
            "x sigmoid(beta x). x: (T float, s) -> (T, s)."
            return x * relay.sigmoid(x * beta)

    Parameters that are annotated `Tensor` (or `Tensor[Float, (n, 3)]`, which is checked) are operands, one annotated
    `tuple[Tensor, ...]` makes the operator variadic, the rest are attributes, whose values specialize the body. The
    body is read at first use. It gives the operator's type, reference, gradient and code; where one of them is given as
    a keyword, as for `register_op`, that one is used instead, and must agree with the body.

    Raises RegistrationError before anything is registered.
    """
    if function is not None:
        return _register_composite(function, definition)
    return lambda body: _register_composite(body, definition)


def composite_operator(function: Callable[..., Any], name: str) -> Operator:
    """The operator that `composite` would register, as its body defines it. Raises RegistrationError."""
    return _make_composite(name, function, {}, Composition)


@contextlib.contextmanager
def finding(find: Callable[[str], Operator | None]) -> Iterator[None]:
    """Look up operators that are not registered by `find`, too: those of a file that is only read."""
    token = _finder.set(find)
    try:
        yield
    finally:
        _finder.reset(token)


_finder: ContextVar[Callable[[str], Operator | None] | None] = ContextVar("_finder", default=None)


def _register_compiled(
    environment: Environment,
    name: str,
    type_: QuantifiedType | FunctionType,
    compiler: Callable[[FunctionType], Callable[..., Any]],
) -> Operator:
    if not isinstance(environment, Environment):
        raise RegistrationError(f"the first argument of register_op must be relay.get_env(), found {environment!r}")
    check_name(name)
    function = type_.body if isinstance(type_, QuantifiedType) else type_
    if not isinstance(function, FunctionType):
        raise RegistrationError(f"the type of {name!r} must be a (quantified) function type, found {type_!r}")
    check_compiler(name, compiler)
    check_relation(name, type_, [""] * len(function.parameters), {}, False)

    def reference(*operands: np.ndarray) -> np.ndarray:
        types = [Constant(o).type for o in operands]
        result = operator.infer(types, {})
        assert isinstance(result, TensorType)
        out = np.empty(result.dims, result.dtype)
        compiler(FunctionType(tuple(types), result))(*(np.ascontiguousarray(o).reshape(o.shape) for o in operands), out)
        return out

    operator = Operator(
        name=name,
        operands=tuple(f"x{i + 1}" for i in range(len(function.parameters))),
        relation=type_,
        reference=reference,
        external=compiler,
        no_gradient="it was registered without one",
        documentation=f"{name}: {type_}",
    )
    environment.add(operator)
    return operator


def _register_reference(reference: Callable[..., Any], definition: dict[str, Any]) -> Operator:
    definition = dict(definition)
    name = _name(reference, definition)
    if "reference" in definition:
        raise RegistrationError(f"{name!r}: the decorated function is the reference, so there is no other")
    operands, attributes, variadic = _parameters(name, reference)
    relation = definition.get("relation")
    if relation is None:
        raise RegistrationError(f"{name!r} has no type: give `relation`")
    check_relation(name, relation, operands, attributes, variadic)
    if definition.get("compute") is None and definition.get("external") is None:
        raise RegistrationError(f"{name!r} has no code: give `compute`")
    if definition.get("gradient") is None and definition.get("no_gradient") is None:
        raise RegistrationError(f"{name!r} has no gradient: give `gradient`, or `no_gradient` with the reason")
    if definition.get("external") is not None and attributes:
        raise RegistrationError(
            f"{name!r}: an external function gets operands only; bind {', '.join(attributes)} with a closure"
        )
    check_parts(name, operands, attributes, definition)
    _name_outs(definition)
    operator = Operator(
        name=name,
        operands=operands,
        attributes=attributes,
        variadic=variadic,
        reference=reference,
        documentation=_documentation(name, reference),
        **definition,
    )
    _environment.add(operator)
    return operator


def expansion(**definition: Any) -> Callable[[Callable[..., Any]], Operator]:
    """Register a composite operator whose body Python writes, as a decorator of a function on symbolic values::

        @expansion(relation=Relation("T:float, T -> T", broadcast))
        def squared_difference(x: Value, y: Value) -> Value:
            "(x - y) squared. x: (T float, s1), y: (T, s2) -> (T, broadcast(s1, s2))."
            difference = x - y
            return difference * difference

    Keywords are those of `composite`. Raises RegistrationError before anything is registered.
    """
    return lambda function: _register_composite(function, definition, Expansion)


def _register_composite(
    function: Callable[..., Any], definition: dict[str, Any], kind: type[Composition] = Composition
) -> Operator:
    parts = dict(definition)
    operator = _make_composite(_name(function, parts), function, parts, kind)
    _environment.add(operator)
    return operator


def _make_composite(
    name: str, function: Callable[..., Any], definition: dict[str, Any], kind: type[Composition]
) -> Operator:
    operands, attributes, variadic = _parameters(name, function)
    spread = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(function).parameters.values())
    composition = kind(name, function, variadic)
    relation = definition.pop("relation", None)
    if relation is not None:
        check_relation(name, relation, operands, attributes, variadic)
    if definition.get("pattern") is not None and definition.get("compute") is None:
        raise RegistrationError(f"{name!r} is compiled as what it is composed of: `pattern` needs `compute`")
    check_parts(name, operands, attributes, definition)
    _name_outs(definition)
    return Operator(
        name=name,
        operands=operands,
        attributes=attributes,
        variadic=variadic,
        spread=spread,
        relation=composition.infer if relation is None else relation,
        reference=definition.pop("reference", None) or composition.reference,
        composition=composition,
        documentation=_documentation(name, function),
        **definition,
    )


def _name_outs(definition: dict[str, Any]) -> None:
    """Let a gradient that calls the result and its cotangent otherwise take them as `out` and `dout`."""
    gradient = definition.get("gradient")
    if gradient is None or takes_out_by_name(gradient):
        return

    def by_name(*operands: Any, out: Any, dout: Any, **attributes: Any) -> Any:
        return gradient(*operands, out, dout, **attributes)

    definition["gradient"] = by_name


def _name(function: Any, definition: dict[str, Any]) -> str:
    """The operator's name. Raises RegistrationError for a definition without a function, or with a part that cannot
    be one. Raises RegistrationError where there is no function, or a part of a definition is none."""
    if not inspect.isroutine(function):
        raise RegistrationError(f"an operator is defined by its reference, a function; found {function!r}")
    name: str = definition.pop("name", None) or function.__name__
    parts = [field.name for field in attrs.fields(Operator) if field.name not in _NO_PARTS]
    for part in definition:
        if part not in parts:
            raise RegistrationError(
                f"{name!r}: a definition has no part {part!r}", help=_help_with_part(part, definition[part], parts)
            )
    return name


def _help_with_part(part: str, value: Any, parts: Sequence[str]) -> str:
    for facet, type_ in FACETS.items():
        if any(field.name == part for field in attrs.fields(type_)):
            return f"give it in a facet: {facet}=relay.{type_.__name__}({part}={value!r})"
    near = difflib.get_close_matches(part, parts, 1)
    return f"did you mean {near[0]!r}?" if near else f"it has {', '.join(parts)}"


_NO_PARTS = ("operands", "attributes", "variadic", "spread", "composition", "documentation")
"""The fields that an operator has from its function."""


def _parameters(name: str, function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any], bool]:
    """The operands, the attributes with their defaults, and whether the one operand is a sequence."""
    operands: list[str] = []
    attributes: dict[str, Any] = {}
    variadic = False
    for parameter in inspect.signature(function).parameters.values():
        annotation = parameter.annotation if isinstance(parameter.annotation, str) else repr(parameter.annotation)
        if "Tensor" in annotation or "Value" in annotation:
            spread = parameter.kind is parameter.VAR_POSITIONAL
            variadic = variadic or spread or "tuple" in annotation
            if attributes and not spread:
                raise RegistrationError(f"{name!r}: the tensor {parameter.name!r} must come before the attributes")
            operands.append(parameter.name)
        else:
            attributes[parameter.name] = parameter.default
    if variadic and len(operands) != 1:
        raise RegistrationError(f"{name!r}: a variadic operator has exactly one operand, a tuple of tensors")
    return tuple(operands), attributes, variadic


def _documentation(name: str, function: Callable[..., Any]) -> str:
    documentation = inspect.getdoc(function)
    if not documentation:
        raise RegistrationError(f"{name!r} has no documentation: give its reference a docstring")
    return documentation
