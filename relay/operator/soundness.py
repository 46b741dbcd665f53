"""Consistency checks of an operator's definition before its registration."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from relay.errors import RegistrationError
from relay.ir.dims import DimExpr
from relay.ir.dims import variables as dims_in
from relay.ir.types import (
    DataType,
    FunctionType,
    QuantifiedType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeId,
)
from relay.operator.definition import REQUIRED, Pattern, Requirement
from relay.operator.facets import FACETS, LOOP, IndexKind, InPlace, Undefined
from relay.operator.relation import Relation


def check_relation(
    name: str, relation: Any, operands: Sequence[str], attributes: Mapping[str, Any], variadic: bool
) -> None:
    """Raises RegistrationError if the type is not that of an operator with these operands and attributes."""
    if isinstance(relation, QuantifiedType | FunctionType):
        _check_function_type(name, relation, len(operands))
        return
    if not isinstance(relation, Relation) and not callable(relation):
        raise RegistrationError(
            f"{name!r}: its type must be a Relation, a (quantified) function type or a function of types,"
            f" found {relation!r}"
        )
    if isinstance(relation, Relation):
        wanted = len(relation.base.operands)
        if relation.base.variadic is not variadic or (not variadic and wanted != len(operands)):
            raise RegistrationError(f"{name!r}: its relation has {wanted} operands, its reference {len(operands)}")
        _check_result(name, relation, attributes)
    rule = relation.shape if isinstance(relation, Relation) else relation
    if callable(rule):
        what = f"its shape rule does not take {len(operands)} shapes and the attributes {_attribute_list(attributes)}"
        _check_call(name, what, rule, len(operands), attributes)


def _check_result(name: str, relation: Relation, attributes: Mapping[str, Any]) -> None:
    result = relation.base.result
    if result.text.startswith("@") and result.text[1:] not in attributes:
        raise RegistrationError(f"{name!r}: its result's dtype is {result.text}, but it has no such attribute")
    if result.is_variable and result.text not in {token.text for token in relation.base.operands}:
        raise RegistrationError(
            f"{name!r}: its result has the variable {result.text}, which no operand has in {relation.base.text!r}"
        )


def _check_function_type(name: str, type_: QuantifiedType | FunctionType, operands: int) -> None:
    function = type_.body if isinstance(type_, QuantifiedType) else type_
    if not isinstance(function, FunctionType):
        raise RegistrationError(f"the type of {name!r} must be a (quantified) function type, found {type_!r}")
    if len(function.parameters) != operands:
        raise RegistrationError(
            f"{name!r}: its type has {len(function.parameters)} parameters, its reference {operands}"
        )
    for part in (*function.parameters, function.result):
        if not isinstance(part, TensorType | TupleType):
            raise RegistrationError(f"{name!r}: operators take and give tensors, its type has {part}")
    known = {v for parameter in function.parameters for v in _variables(parameter)}
    for variable in _variables(function.result):
        if variable not in known:
            raise RegistrationError(
                f"{name!r}: its result mentions the variable {variable.name}, which no parameter of {type_} has"
            )
    quantified = type_.identifiers if isinstance(type_, QuantifiedType) else ()
    for variable in known:
        if variable not in quantified:
            raise RegistrationError(
                f"{name!r}: its type mentions {variable.name}, which it does not quantify",
                help=f"mk_quant({variable.name}, ..)",
            )


def _variables(type_: Type) -> list[TypeId]:
    match type_:
        case TypeId():
            return [type_]
        case TensorType(base, shape):
            named = [part for part in (base, *shape) if isinstance(part, TypeId)]
            inside = [v for dim in shape if isinstance(dim, DimExpr) for v in dims_in(dim)]
            return [*named, *(v for v in inside if isinstance(v, TypeId))]
        case TupleType(items):
            return [v for item in items for v in _variables(item)]
        case RefType(content):
            return _variables(content)
        case FunctionType(parameters, result):
            return [v for part in (*parameters, result) for v in _variables(part)]
        case DataType(_, arguments):
            return [a for a in arguments if isinstance(a, TypeId)]
        case _:
            return []


def check_name(name: object) -> None:
    """Raises RegistrationError unless programs can write `relay.name`."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise RegistrationError(f"an operator's name is an identifier, found {name!r}")


def check_compiler(name: str, compiler: object) -> None:
    """Raises RegistrationError unless this can be the compiler in the form of the 2018 presentation: a function of a
    function type."""
    if not callable(compiler):
        raise RegistrationError(f"the compiler of {name!r} must be callable, found {compiler!r}")
    _check_call(name, "its compiler does not take a function type", compiler, 1, {})


def check_parts(
    name: str, operands: Sequence[str], attributes: Mapping[str, Any], definition: Mapping[str, Any]
) -> None:
    """Raises RegistrationError if a part is not what it has to be, or does not go with the others."""
    given = {part: value for part, value in definition.items() if value is not None}
    _check_kinds(name, given)
    for one, other in (("gradient", "no_gradient"), ("compute", "external")):
        if one in given and other in given:
            raise RegistrationError(f"{name!r} has `{one}` and `{other}`, of which there is one")
    if given.get("no_gradient") == "":
        raise RegistrationError(f"{name!r}: `no_gradient` says why there is none, found an empty text")
    _check_functions(name, len(operands), attributes, given)
    facts = _facts(name, given)
    _check_facts(name, len(operands), given.get("pattern", Pattern.OPAQUE), facts)
    named = [("sizes", size) for size in given.get("sizes", ())]
    named += [(field, facts[field]) for field in _ATTRIBUTES if field in facts]
    for part, attribute in named:
        if attribute not in attributes:
            raise RegistrationError(
                f"{name!r}: `{part}` names {attribute!r}, but the attributes are {_attribute_list(attributes)}"
            )


_FUNCTIONS = ("compute", "external", "gradient", "layouts", "on_dims", "sampler")
_FUNCTIONS_OF_FACETS = ("columns", "summed", "work", "quantized")
_ATTRIBUTES = ("axis", "reduction_axes", "joins")
"""Fields of facets that name an attribute."""

_OPERANDS = {
    "commutative": (2,),
    "associative": (2,),
    "identity": (2,),
    "idempotent": (1, 2),
    "involution": (1,),
    "coercion": (1,),
    "maps_over_tree": (1,),
}
"""The number of operands that an operator needs for a fact to be possible."""


_Kind: TypeAlias = "tuple[Callable[[Any], bool], str]"
_FUNCTION: _Kind = (callable, "a function")
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(_FUNCTIONS, _FUNCTION),
    **{
        name: (lambda v, type_=type_: isinstance(v, type_), f"a relay.{type_.__name__}")  # type: ignore[misc]
        for name, type_ in FACETS.items()
    },
    "pattern": (lambda v: isinstance(v, Pattern), "a relay.Pattern"),
    "no_gradient": (lambda v: isinstance(v, str), "a text that says why"),
    "sizes": (lambda v: isinstance(v, frozenset | set | tuple), "a set of attributes' names"),
    "requirements": (
        lambda v: isinstance(v, tuple) and all(isinstance(r, Requirement) for r in v),
        "a tuple of relay.Requirement",
    ),
}
_KINDS_OF_FIELDS: dict[str, _Kind] = {
    **dict.fromkeys(_FUNCTIONS_OF_FACETS, _FUNCTION),
    **dict.fromkeys(_ATTRIBUTES, (lambda v: isinstance(v, str), "an attribute's name")),
    "rule": (lambda v: callable(v) or v is LOOP, "a function or relay.LOOP"),
    "kind": (lambda v: isinstance(v, IndexKind), "a relay.IndexKind"),
    "accumulates": (
        lambda v: _is_integer(v) or isinstance(v, str), "the position of an operand, or an operator's name",
    ),
    "forwards": (lambda v: _is_integer(v), "the position of an operand"),
    "identity": (lambda v: isinstance(v, int | float), "a number"),
    "fill": (lambda v: isinstance(v, int | float | Undefined), "a number or relay.UNDEFINED"),
    "in_place": (lambda v: isinstance(v, InPlace), "an InPlace"),
    "of_booleans": (lambda v: v in ("booleans", "integers"), "'booleans' or 'integers'"),
    "linear": (lambda v: isinstance(v, tuple) and all(map(_is_integer, v)), "a tuple of operands' positions"),
}  # fmt: skip
"""The types of facets' fields that are not True or False."""


def _check_kinds(name: str, given: Mapping[str, Any]) -> None:
    for part, value in given.items():
        if part in _KINDS and not _KINDS[part][0](value):
            raise RegistrationError(f"{name!r}: `{part}` is {_KINDS[part][1]}, found {value!r}")


def _facts(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The facts in a definition's facets, by field. Raises RegistrationError for a value of another kind."""
    facts: dict[str, Any] = {}
    for facet in FACETS.keys() & given.keys():
        for field in attrs.fields(type(given[facet])):
            value = getattr(given[facet], field.name)
            right, kind = _KINDS_OF_FIELDS.get(field.name, (lambda v: isinstance(v, bool), "True or False"))
            if value is None and field.default is None:
                continue
            if not right(value):
                raise RegistrationError(f"{name!r}: `{field.name}` in `{facet}` is {kind}, found {value!r}")
            if value is not field.default:
                facts[field.name] = value
    return facts


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_functions(name: str, count: int, attributes: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    known = _attribute_list(attributes)
    if "compute" in given:
        what = f"`compute` does not take {count} tensors and the attributes {known}"
        _check_call(name, what, given["compute"], count, attributes)
    if "external" in given:
        _check_call(name, "`external` does not take a function type", given["external"], 1, {})
    if "gradient" in given:
        what = (
            f"`gradient` does not take {count} operands, the result and its cotangent (as the next two, or as `out` and"
            f" `dout`), and the attributes {known}"
        )
        named = takes_out_by_name(given["gradient"])
        outs = dict.fromkeys(("out", "dout")) if named else {}
        _check_call(name, what, given["gradient"], count + 2 - len(outs), {**outs, **attributes})
    for requirement in given.get("requirements", ()):
        what = f"a requirement does not take {count} operands and the attributes {known}"
        _check_call(name, what, requirement.holds, count, attributes)
    if "layouts" in given:
        _check_call(name, f"`layouts` does not take the attributes {known}", given["layouts"], 0, attributes)
        if all(default is not REQUIRED for default in attributes.values()):
            found = given["layouts"](**attributes)
            if len(found) != count + 1:
                raise RegistrationError(
                    f"{name!r}: `layouts` gives {len(found)}, not {count} and the result's: {found}"
                )
    if "sampler" in given:
        _check_call(name, "`sampler` does not take a generator and a dtype", given["sampler"], 2, {})


def takes_out_by_name(gradient: Callable[..., Any]) -> bool:
    """True if a gradient has parameters `out` and `dout`; others may name the result and its cotangent as they like."""
    try:
        parameters = inspect.signature(gradient).parameters
    except (TypeError, ValueError):
        return True
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return all(name in parameters for name in ("out", "dout")) or (takes_all and "out" not in parameters)


def _check_facts(name: str, count: int, pattern: Pattern, facts: Mapping[str, Any]) -> None:
    positions = {"linear": facts.get("linear", ())}
    for fact in ("accumulates", "forwards"):
        if isinstance(facts.get(fact), int):
            positions[fact] = (facts[fact],)
    if "in_place" in facts:
        positions["in_place"] = (facts["in_place"].operand,)
    for field, found in positions.items():
        for position in found:
            if not 0 <= position < count:
                raise RegistrationError(
                    f"{name!r}: `{field}` names operand {position}, but there are {count}, from 0 on"
                )
    for fact, counts in _OPERANDS.items():
        if fact in facts and count not in counts:
            wanted = " or ".join(map(str, counts))
            raise RegistrationError(
                f"{name!r}: `{fact}` is for operators with {wanted} operands, but this one has {count}"
            )
    for one, other in (("axis", "reduction_axes"), ("axis", "kind"), ("reduction_axes", "kind"), ("fill", "in_place")):
        if one in facts and other in facts:
            raise RegistrationError(f"{name!r} has `{one}` and `{other}`, which contradict each other")
    if "kind" in facts and pattern is not Pattern.INJECTIVE:
        raise RegistrationError(
            f"{name!r}: {facts['kind']} is for operators of relay.Pattern.INJECTIVE, but its pattern is {pattern}"
        )


def _check_call(name: str, what: str, function: Callable[..., Any], count: int, attributes: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a builtin that does not tell its parameters
    try:
        signature.bind(*([()] * count), **attributes)
    except TypeError as error:
        raise RegistrationError(f"{name!r}: {what}: {error}") from None


def _attribute_list(attributes: Mapping[str, Any]) -> str:
    return ", ".join(attributes) or "(none)"
