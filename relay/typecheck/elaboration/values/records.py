"""Records: dicts with string keys, dataclasses and named tuples. At run time they are tuples of their fields."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import types
from collections.abc import Sequence
from typing import Any

import attrs

from relay.errors import Span, TypeCheckError
from relay.ir.definition import Definition, giving_back
from relay.ir.partial_calls import PartialCall
from relay.ir.structure import (
    computes,
    field_names,
    is_key,
    is_named_tuple,
    is_plain_class,
    is_record_class,
    ordered_keys,
    parameter_names,
)
from relay.ir.types import Form
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    PythonObject,
    Text,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.expressions.known_strings import RunTimeValue, known_value
from relay.typecheck.elaboration.library import overloads, undecorated
from relay.typecheck.elaboration.restarts import KeysOfRun
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.objects import object_entity

Keywords = Sequence[tuple[str, AbstractValue]]


def as_record(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> Tuple | None:
    """The entity as a tuple with named fields, or None."""
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    return entity if isinstance(entity, Tuple) and is_record(entity) else None


def is_record(entity: Tuple) -> bool:
    """True if a structure has named fields, or may have them: a dict, or an object."""
    return entity.form is not None and bool(entity.form.names or entity.form.cls is dict or is_object(entity))


def is_object(entity: Tuple) -> bool:
    """True for an object of a plain class of the user's."""
    return entity.form is not None and is_plain_class(entity.form.cls) and not is_record_class(entity.form.cls)


def is_sequence(entity: Tuple) -> bool:
    """True if a structure has items and a length: a tuple, list, dict or named tuple, and no other record."""
    cls = tuple if entity.form is None else entity.form.cls
    return issubclass(cls, tuple | list | dict)


def iteration_items(entity: Tuple, span: Span | None) -> tuple[AbstractValue, ...]:
    """The items of a `for` over a tuple: of a dict, its keys."""
    if entity.form is None or entity.form.cls is list or is_named_tuple(entity.form.cls):
        return entity.items
    if entity.form.cls is dict:
        return tuple(key_entity(name, span) for name in entity.form.names)
    raise TypeCheckError(f"a {entity.form.cls.__name__} cannot be iterated over", span, help="name its fields")


# ---- making records


def make_dict(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None
) -> AbstractValue:
    """`dict(d, .., name=value)`, which is also what `{**d, "name": value}` means."""
    fields: dict[str, AbstractValue] = {}
    for argument in arguments:
        record = as_record(checker, out, argument, span)
        if record is None and checker.is_open(argument):
            raise SchemeOnly(span, "the merged value")
        if record is None or record.form is None or record.form.cls is not dict:
            raise TypeCheckError("only a dict can be merged into a dict", span)
        fields.update(zip(record.form.names, record.items, strict=True))
    fields.update(keywords)
    return Tuple(tuple(fields.values()), Form(dict, tuple(fields), origin=span))


def of_origin(made: AbstractValue, record: AbstractValue) -> AbstractValue:
    """A dict that another one has become, which is made where that was."""
    assert isinstance(made, Tuple) and made.form is not None
    origin = record.form.origin if isinstance(record, Tuple) and record.form is not None else None
    return Tuple(made.items, attrs.evolve(made.form, origin=origin))


def make(cls: type, arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None) -> AbstractValue:
    """`Class(..)`: an instance of a dataclass or named tuple, whose fields are its arguments."""
    names = field_names(cls)
    if (computation := computes(cls)) is not None:
        message = f"{cls.__name__} has a {computation}, which is not a part of a program"
        raise TypeCheckError(message, span, help="make it outside")
    try:
        bound = inspect.signature(cls).bind(*arguments, **dict(keywords))
    except TypeError as error:
        raise TypeCheckError(f"{cls.__name__}: {error}", span) from None
    bound.apply_defaults()
    given = {id(entity) for entity in (*arguments, *(v for _, v in keywords))}
    found = dict(zip(names, (bound.arguments.get(name, _MISSING) for name in parameter_names(cls)), strict=True))
    for name in [name for name, value in found.items() if value is _MISSING]:  # field(init=False)
        found[name] = getattr(cls, name, _MISSING)
        if found[name] is _MISSING:
            del found[name]
    values = [v if id(v) in given else _default(cls, n, v, span) for n, v in found.items()]
    return Tuple(tuple(values), Form(cls, tuple(found)))


_MISSING = object()


def in_field_order(record: Tuple) -> Tuple:
    """An object of a dataclass with its fields in their order."""
    assert record.form is not None
    names = sorted(record.form.names, key=field_names(record.form.cls).index)
    items = tuple(record.items[record.form.names.index(name)] for name in names)
    return Tuple(items, attrs.evolve(record.form, names=tuple(names)))


def _default(cls: type, name: str, value: object, span: Span | None) -> AbstractValue:
    """The default of a field; `field(default_factory=list)` is a new list in each value."""
    fields = getattr(cls, "__dataclass_fields__", {})
    factory = fields[name].default_factory if name in fields else dataclasses.MISSING
    if factory is dataclasses.MISSING:
        return object_entity(value, span)
    if factory in (list, dict):
        return Tuple((), Form(factory), None, span if factory is list else None)
    help = f"give {name} where the value is made"
    raise TypeCheckError(f"the field {name} of {cls.__name__} is made by a function", span, help=help)


def replace(record: Tuple, keywords: Keywords, span: Span | None) -> AbstractValue:
    """The record with some fields replaced: `dataclasses.replace(p, w=v)`, `p._replace(w=v)`."""
    assert record.form is not None
    items = list(record.items)
    for name, value in keywords:
        if name not in record.form.names:
            raise _missing_item(record, name, span)
        items[record.form.names.index(name)] = value
    return Tuple(tuple(items), record.form)


# ---- reading records


def getter(record: Tuple, name: str, owner: type | None = None) -> GlobalFunction | None:
    """The function of a property that the record's class, or one above it, has under this name."""
    found = member(record, name, owner)
    return _translated_method(found.fget) if isinstance(found, property) and record.field(name) is None else None


def attribute(record: Tuple, name: str, span: Span | None) -> AbstractValue:
    """`p.name` of a dataclass, named tuple or plain object. Raises TypeCheckError."""
    assert record.form is not None
    if record.form.cls is dict:
        help = f'write ["{name}"]' if name in record.form.names else None
        raise TypeCheckError(f"a dict has no attribute {name!r}", span, help=help)
    found = record.field(name)
    if found is None and (kept := of_class(record.form.cls, name, span)) is not None:
        return kept
    if found is None:
        raise _missing_item(record, name, span)
    return found


METHODS = ("_replace", "_asdict")
"""The methods of named tuples."""


TAKING = ("pop", "setdefault", "popitem", "__next__")
STATEMENTS = {
    "spread": "extend",
    **{name: name for name in ("append", "insert", "clear", "reverse", "sort", "add", "discard", "remove", "update")},
    **{name: name for name in ("intersection_update", "difference_update", "symmetric_difference_update")},
}
"""The methods of lists, dicts and sets that the front end knows, by the intrinsics that it makes of their calls: those
that give a value, and those that give none. Objects may have them, too."""


def has_method(record: Tuple, name: str) -> bool:
    """True if a record has a method of this name."""
    assert record.form is not None
    if is_of_user(record, name) or _translated_method(member(record, name)) is not None:
        return True
    return is_named_tuple(record.form.cls) and name in METHODS


def is_of_user(record: Tuple, name: str) -> bool:
    """True if the user's class of a record has a method of this name that programs call."""
    found = member(record, name)
    return undecorated.is_written(found) or (isinstance(found, types.FunctionType) and hasattr(found, "__relay__"))


def member(record: Tuple, name: str, owner: type | None = None) -> object:
    """The attribute of a record's class, or of one above it, with a name, or None."""
    if record.form is None or record.form.cls in (dict, list):
        return None
    return class_member(record.form.cls if owner is None else owner, name)


def class_member(cls: type, name: str) -> object:
    """The attribute that a class, or one above it, has under a name, as it is written; None if there is none."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def of_class(cls: type, name: str, span: Span | None) -> AbstractValue | None:
    """`Class.name`: a method as a function of `self` and the rest, or what the class keeps; None if it has neither."""
    if name == "__name__":
        return PythonObject(cls.__name__)
    found = class_member(cls, name)
    if (own := _translated_method(found)) is not None:
        return own
    if isinstance(found, staticmethod):
        return object_entity(found.__func__, span)
    if isinstance(found, classmethod):
        return _with_class(cls, found, span)
    if found is None or callable(found) or isinstance(found, property) or name.startswith("__"):
        return None
    return object_entity(found, span)


def _with_class(cls: type, method: classmethod[Any, Any, Any], span: Span | None) -> AbstractValue:
    """A method of a class as a function of the other parameters."""
    parts = object_entity(method.__func__, span), Tuple((PythonObject(cls),)), Tuple((), Form(dict))
    return Tuple(parts, Form(PartialCall, ("func", "args", "keywords")))


def _translated_method(method: object) -> GlobalFunction | None:
    """A method that is decorated with @relay, or has an overload, as a function."""
    if isinstance(method, staticmethod):
        return None
    found = getattr(method, "__relay__", None)
    known = overloads.find(method) if method is not None and found is None else ()
    found = known[0].definition if known else found
    if found is None and undecorated.is_written(method):
        return GlobalFunction(undecorated.definition(method))
    return GlobalFunction(found) if isinstance(found, Definition) else None


def own_method(record: Tuple, name: str, owner: type | None = None) -> GlobalFunction | None:
    """A method of a record's class, or of one above it, that is read, is decorated with @relay, or has an overload."""
    return _translated_method(member(record, name, owner))


def changing_method(record: Tuple, name: str, owner: type | None = None) -> GlobalFunction | None:
    """A method that changes its object, or another argument, as a function that gives these back; None for others."""
    own = own_method(record, name, owner)
    definition = None if own is None else giving_back(own.definition)
    return None if definition is None else GlobalFunction(definition)


def defined_method(record: Tuple, name: str, span: Span | None) -> GlobalFunction | None:
    """A method that the user's class of a record defines; None if it has none but what its decorator or base wrote.
    Raises TypeCheckError for one that is Python's alone."""
    found = member(record, name)
    is_function = isinstance(found, types.FunctionType)
    if is_function and found.__code__.co_filename.startswith("<") and not overloads.find(found):  # type: ignore[attr-defined]
        return None
    own = _translated_method(found)
    if own is None and is_function:
        assert record.form is not None
        raise TypeCheckError(
            f"the method {name} of {record.form.cls.__name__} is not part of Relay",
            span,
            help="decorate it with @relay, or the class with @relay.data",
        )
    return own


def call_method(
    record: Tuple, name: str, arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None
) -> AbstractValue:
    """`p._replace(x=v)` and `p._asdict()` of a named tuple."""
    assert record.form is not None
    if name == "_replace" and not arguments:
        return replace(record, keywords, span)
    if name == "_asdict" and not arguments and not keywords:
        return Tuple(record.items, Form(dict, record.form.names))
    raise TypeCheckError(f"`{name}` of a record does not take these arguments", span)


def key_of(item: object, span: Span | None) -> Any:
    """The key of `d[item]`. Raises TypeCheckError if it is not known, or none that a dict has."""
    try:
        key = known_value(item)  # type: ignore[arg-type]
    except RunTimeValue:
        error = TypeCheckError("the key of a dict must be known at compile time", span)
        raise error.needing_value(*(part.atom for part in _parts_of_run(item))) from None
    if not is_key(key):
        message = f"a dict has strings, integers, members of enumerations and tuples as keys, found {key!r}"
        raise TypeCheckError(message, span)
    return key


def key_in(checker: Checker, record: Tuple, item: AbstractValue, span: Span | None) -> Any:
    """The key of `d[item]`, for a certain dict. Raises KeysOfRun for one that is known at run time only, if the program
    makes the dict, and copies of a loop's rounds would not tell it."""
    try:
        return key_of(item, span)
    except TypeCheckError as error:
        origin = None if record.form is None else record.form.origin
        counted = bool(checker.frame.filling) and all(part.of_range for part in _parts_of_run(item))
        if error.needs_value and origin is not None and not counted:
            raise KeysOfRun([origin]) from None
        raise


def _parts_of_run(key: object) -> list[DynamicValue]:
    match key:
        case DynamicValue():
            return [key]
        case Tuple(items):
            return [part for item in items for part in _parts_of_run(item)]
        case Text(values=values):
            return list(values)
        case _:
            return []


def key_entity(key: Any, span: Span | None) -> AbstractValue:
    """A key of a dict, as a loop over it gives it."""
    return PythonObject(key) if isinstance(key, str) else object_entity(key, span)


def item(record: Tuple, key: Any, span: Span | None) -> AbstractValue:
    """`d["key"]`. Raises TypeCheckError."""
    found = record.field(key)
    if found is None:
        raise _missing_item(record, key, span)
    return found


def in_order(entity: AbstractValue, like: AbstractValue) -> AbstractValue:
    """A dict with its items in the order of another one, if it has the same keys; anything else as it is."""
    if not isinstance(entity, Tuple) or not isinstance(like, Tuple) or entity.form is None or like.form is None:
        return entity
    names, wanted = entity.form.names, like.form.names
    if entity.form.cls is not dict or names == wanted or ordered_keys(names) != ordered_keys(wanted):
        return entity
    return Tuple(tuple(entity.items[names.index(name)] for name in wanted), like.form)


def with_item(record: Tuple, key: Any, value: AbstractValue) -> Tuple:
    """The dict after `d["key"] = value`."""
    assert record.form is not None
    fields = dict(zip(record.form.names, record.items, strict=True))
    fields[key] = value
    return Tuple(tuple(fields.values()), Form(dict, tuple(fields), origin=record.form.origin))


def with_field(record: Tuple, name: str, value: AbstractValue, span: Span | None) -> Tuple:
    """The record after `p.name = value`. Raises TypeCheckError for what its class does not have, and for named
    tuples."""
    assert record.form is not None
    if is_named_tuple(record.form.cls):
        message = f"{record.form.cls.__name__} is a named tuple, whose fields cannot be assigned"
        raise TypeCheckError(message, span, help=f"write `p = p._replace({name}=..)`")
    if name not in record.form.names:
        if is_object(record) or name in field_names(record.form.cls):
            return Tuple((*record.items, value), attrs.evolve(record.form, names=(*record.form.names, name)))
        raise _missing_item(record, name, span)
    items = list(record.items)
    items[record.form.names.index(name)] = value
    return Tuple(tuple(items), record.form)


def _missing_item(record: Tuple, name: Any, span: Span | None) -> TypeCheckError:
    assert record.form is not None
    methods = [] if record.form.cls is dict else [n for n in dir(record.form.cls) if not n.startswith("_")]
    texts = [n for n in (*record.form.names, *methods) if isinstance(n, str)]
    close = difflib.get_close_matches(name, texts, n=1) if isinstance(name, str) else []
    is_method = bool(close) and close[0] in methods and callable(getattr(record.form.cls, close[0], None))
    kind = "method" if is_method else "field"
    what = "the dict has no key" if record.form.cls is dict else f"{record.form.cls.__name__} has no {kind}"
    known = ", ".join(map(str, record.form.names))
    help = f"did you mean {close[0]!r}?" if close else f"it has {known}" if known else None
    if record.form.cls is dict and not known:
        help = f"it is empty; `d.get({name!r}, 0)` has a value for a missing key"
    if isinstance(name, str) and member(record, name) is not None:
        help = f"decorate the method with @relay, or the class with @relay.data: {name} is not translated yet"
    return TypeCheckError(f"{what} {name!r}", span, help=help).wherever_it_runs()
