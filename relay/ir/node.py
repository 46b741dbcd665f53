"""Declarations of nodes: the role of each field, and the functions on nodes that follow from the roles.

The declared type of a field is its role:

    Atom               an operand                   Type, Dim           may mention dims
    Var                bound for the node's blocks  DataDependentDim    bound by the node
    LoopLabel          a label                      DataDefinition      a data type
    Block              a block                      str, int, bool, ..  an attribute, which tells nodes apart
    another node       a part, which has roles too  Span                where it stands in the source

each also as `X | None`, `tuple[X, ...]` and `tuple[tuple[str, X], ...]`. So a new node is declared, and everything that
only needs its parts works: traversal, rebuilding, copies, free variables, liveness, equality up to names. `notation`
says how simple nodes are written, from which they are printed and read; `targets` how many variables a node binds
(None: any number).

Fields are visited in the order of scope: those with blocks after the others. Functions that are called often are
generated once for each class, when they are first needed.
"""

from __future__ import annotations

import enum
import string
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter, is_
from typing import Any, Protocol, TypeAlias, TypeVar, dataclass_transform, overload

import attrs

from relay.errors import InternalError

_T = TypeVar("_T")


class Role(enum.Enum):
    """The role of a node's field."""

    ATOM = "operand"
    VARIABLE = "bound variable"
    LABEL = "label"
    BLOCK = "block"
    PART = "part"
    TYPE = "type"
    DIM = "dim"
    NEW_DIM = "bound dim"
    DATA = "data type"
    ATTRIBUTE = "attribute"
    ATTRIBUTES = "attributes by name"
    PLACE = "place"
    VALUE = "value of an atom"


class Form(enum.Enum):
    """The number of values in a field: one, perhaps one, any number, or any number with a name for each."""

    ONE = "X"
    OPTIONAL = "X | None"
    MANY = "tuple[X, ...]"
    NAMED = "tuple[tuple[str, X], ...]"


_ROLES = {
    "Atom": Role.ATOM,
    "Var": Role.VARIABLE,
    "LoopLabel": Role.LABEL,
    "Block": Role.BLOCK,
    "Type": Role.TYPE,
    "Dim": Role.DIM,
    "DataDependentDim": Role.NEW_DIM,
    "DataDefinition": Role.DATA,
    "Mapping[str, AttributeValue]": Role.ATTRIBUTES,
    "Span": Role.PLACE,
    "object": Role.VALUE,
    "np.ndarray": Role.VALUE,
    **dict.fromkeys(("str", "int", "bool", "str | int", "BaseType", "Rule"), Role.ATTRIBUTE),
    **dict.fromkeys(("Function", "Counter", "Arm", "MatchArm", "Parameter"), Role.PART),
    **dict.fromkeys(("Pattern", "PatternCase", "Atom | Slice"), Role.PART),
}

_BLOCKS = ("Function", "Arm", "MatchArm", "PatternCase")
"""The parts that have blocks."""

ALIKE: Mapping[str, object] = {"alike": True}
"""Metadata of a field with parts that bind the same variables."""


@attrs.frozen
class Field:
    """A field of a node: its name, its role, and how many there are."""

    name: str
    type: str
    role: Role
    form: Form
    alike: bool = False

    @property
    def has_blocks(self) -> bool:
        """True if it contains blocks."""
        return self.role is Role.BLOCK or self.type in _BLOCKS


@cache
def fields(cls: type) -> tuple[Field, ...]:
    """The fields of a class of nodes, as they are declared."""
    return tuple(_field(cls, attribute) for attribute in attrs.fields(cls))


@cache
def in_scope_order(cls: type) -> tuple[Field, ...]:
    """The fields of a class of nodes, those with blocks last."""
    return tuple(sorted(fields(cls), key=lambda field: field.has_blocks))


def _field(cls: type, attribute: attrs.Attribute[Any]) -> Field:
    text, form = str(attribute.type), Form.ONE
    if text.endswith(" | None"):
        text, form = text.removesuffix(" | None"), Form.OPTIONAL
    if text.startswith("tuple[tuple[str, "):
        text, form = text.removeprefix("tuple[tuple[str, ").removesuffix("], ...]"), Form.NAMED
    elif text.startswith("tuple["):
        text, form = text.removeprefix("tuple[").removesuffix(", ...]"), Form.MANY
    role = _ROLES.get(text)
    if role is None:
        raise InternalError(f"{cls.__name__}.{attribute.name} has no role: {attribute.type}")
    return Field(attribute.name, text, role, form, "alike" in attribute.metadata)


# ---- declarations


@attrs.frozen
class _Declaration:
    notation: str | None
    targets: int | None


_DECLARED: dict[type, _Declaration] = {}


@overload
def node(cls: type[_T]) -> type[_T]: ...
@overload
def node(*, notation: str | None = None, targets: int | None = 1) -> Callable[[type[_T]], type[_T]]: ...
@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(attrs.field,))
def node(
    cls: type[_T] | None = None, *, notation: str | None = None, targets: int | None = 1
) -> type[_T] | Callable[[type[_T]], type[_T]]:
    """Make a class of nodes: immutable, compared by identity.

    `notation`: such as `"push {stack} {value}"`, a keyword, then the fields and punctuation.
    """

    def declare(cls: type[_T]) -> type[_T]:
        made = attrs.frozen(slots=True, eq=False)(cls)
        _DECLARED[made] = _Declaration(notation, targets)
        keywords.cache_clear()
        return made

    return declare if cls is None else declare(cls)


def nodes() -> tuple[type, ...]:
    """All classes of nodes, in the order of declaration."""
    return tuple(_DECLARED)


def target_count(cls: type) -> int | None:
    """The number of variables that an expression of this class binds; None: any number."""
    declared = _DECLARED.get(cls)
    return 1 if declared is None else declared.targets


@cache
def notation(cls: type) -> tuple[str | Field, ...]:
    """The notation of nodes of this class: words and punctuation, and fields. Empty: written by special code. Empty:
    as nothing else is."""
    declared = _DECLARED[cls]
    by_name = {field.name: field for field in fields(cls)}
    found: list[str | Field] = []
    for text, name, _, _ in string.Formatter().parse(declared.notation or ""):
        if text:
            found.append(text)
        if name is not None:
            found.append(by_name[name])
    return tuple(found)


@cache
def keywords() -> Mapping[str, type]:
    """The classes of nodes that have a notation, by its first word."""
    return {n.split("[")[0].split()[0]: cls for cls, d in _DECLARED.items() if (n := d.notation) is not None}


# ---- functions for each class


class ByClass(dict[type, _T]):
    """A value that is computed for each class of nodes when it is first needed."""

    def __init__(self, make: Callable[[type], _T]) -> None:
        self._make = make

    def __missing__(self, cls: type) -> _T:
        made = self[cls] = self._make(cls)
        return made


Items: TypeAlias = Callable[[Any], tuple[Any, ...]]


def selector(role: Role, in_part: Items) -> Callable[[type], Items]:
    """Makes, for a class of nodes, the function that gives what has a role in a node: in itself, and in its parts,
    where `in_part` finds it."""

    def make(cls: type) -> Items:
        found = [field for field in fields(cls) if field.role in (role, Role.PART)]
        forms = [field.form for field in found]
        if not found:
            return _no_parts
        is_plain = forms == [Form.MANY] or (len(forms) > 1 and set(forms) == {Form.ONE})
        if is_plain and all(field.role is role for field in found):
            return attrgetter(*[field.name for field in found])
        steps = [(attrgetter(field.name), field) for field in found]

        def select(node: Any) -> tuple[Any, ...]:
            items: list[Any] = []
            for get, field in steps:
                given = in_field(field.form, get(node))
                if field.role is role:
                    items += given
                else:
                    inside = [item for part in given for item in in_part(part)]
                    items += dict.fromkeys(inside) if field.alike else inside
            return tuple(items)

        return select

    return make


def in_field(form: Form, value: Any) -> Sequence[Any]:
    """The values in a field."""
    match form:
        case Form.ONE:
            return (value,)
        case Form.OPTIONAL:
            return () if value is None else (value,)
        case Form.MANY:
            return value  # type: ignore[no-any-return]
        case Form.NAMED:
            return [item for _, item in value]


def _no_parts(_: object) -> tuple[Any, ...]:
    return ()


class Rebuilding(Protocol):
    """The replacements for a node's parts: a function for each role. With `keeps`, a node in which nothing changes
    stays the same object."""

    @property
    def keeps(self) -> bool: ...
    @property
    def renames(self) -> bool: ...
    def shared_rebuilding(self) -> Rebuilding: ...


_OF_PARTS = {Role.ATOM: "atom", Role.VARIABLE: "var", Role.LABEL: "label", Role.BLOCK: "block", Role.PART: "part"}
_OF_DIMS = {Role.TYPE: "type", Role.DIM: "dim", Role.NEW_DIM: "new_dim", Role.ATTRIBUTES: "attributes"}


def rebuilder(cls: type) -> Callable[[Any, Any], Any]:
    """The function that makes a node of this class with other parts, as a `Rebuilding` says; its functions for dims are
    only asked if it `renames` any."""
    names = [field.name for field in fields(cls)]
    get = attrgetter(*names)
    steps = _steps(cls, _OF_PARTS)
    all_steps = _steps(cls, {**_OF_PARTS, **_OF_DIMS})

    def rebuild(node: Any, how: Any) -> Any:
        values = list(get(node)) if len(names) > 1 else [get(node)]
        same = how.keeps
        for position, role, form, alike in all_steps if how.renames else steps:
            old = values[position]
            change = getattr(how.shared_rebuilding() if alike else how, role)
            if form is None:
                new = change(old)
            elif old is None:
                continue
            else:
                new = form(change, old)
            if new is not old:
                values[position] = new
                same = False
        return node if same else cls(*values)

    return rebuild


def _steps(
    cls: type, roles: Mapping[Role, str]
) -> list[tuple[int, str, Callable[[Callable[[Any], Any], Any], Any] | None, bool]]:
    """For each field with one of these roles, in the order of scope: its position, the function for it, how it is
    applied (None: to the value itself), and whether the parts bind the same variables."""
    applied = {Form.ONE: None, Form.OPTIONAL: _changed_part, Form.MANY: _changed_parts, Form.NAMED: _each_named}
    positions = {field: position for position, field in enumerate(fields(cls))}
    found = [field for field in in_scope_order(cls) if field.role in roles]
    return [(positions[f], roles[f.role], applied[f.form], f.alike) for f in found]


def _changed_part(change: Callable[[Any], Any], item: Any) -> Any:
    return change(item)


def _changed_parts(change: Callable[[Any], Any], items: tuple[Any, ...]) -> tuple[Any, ...]:
    """All items changed; the same tuple if nothing is another."""
    made = tuple(map(change, items))
    return items if all(map(is_, made, items)) else made


def _each_named(change: Callable[[Any], Any], items: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    made = tuple([(name, change(item)) for name, item in items])
    return items if all(a is b for (_, a), (_, b) in zip(made, items, strict=True)) else made
