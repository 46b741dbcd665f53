"""Classes decorated with `relay.data`, for mypy: data classes, whose methods are Relay's code."""

from __future__ import annotations

from mypy.nodes import AssignmentStmt, Block, ClassDef, FuncDef, NameExpr, RaiseStmt, RefExpr, TypeInfo, Var
from mypy.plugin import ClassDefContext
from mypy.plugins.dataclasses import dataclass_class_maker_callback
from mypy.types import AnyType, CallableType, Instance, Type, TypeOfAny, get_proper_type

from relay.mypy.reports import drop_errors
from relay.mypy.signatures import any_type, kind


def data_class(context: ClassDefContext) -> bool:
    """A record is a data class. The nested classes of a sum are data classes that derive from it."""
    context.cls.info.metadata[DATA] = {}
    members = context.cls.defs.body
    nested = [node for node in members if isinstance(node, ClassDef)]
    for node in members:
        if isinstance(node, FuncDef):
            _hide_method(context, node)
    if not nested:
        _free_fields(context.cls)
        return dataclass_class_maker_callback(context)
    whole = context.cls.info
    whole.metadata.pop("dataclass_tag", None)  # it has no fields that would have to be known first
    ready = True
    for constructor in nested:
        info = constructor.info
        if whole not in info.mro:
            info.bases = [Instance(whole, [any_type() for _ in whole.type_vars])]
            info.mro = [info, *whole.mro]
        _free_fields(constructor)
        ready &= dataclass_class_maker_callback(ClassDefContext(constructor, context.reason, context.api))
    return ready


def _free_fields(cls: ClassDef) -> None:
    """A field for numbers may be any number of Python or NumPy, or an array."""
    for node in cls.defs.body:
        match node:
            case AssignmentStmt(lvalues=[NameExpr(node=Var() as field)], unanalyzed_type=written):
                if written is not None and kind(written) is not None:
                    field.type = any_type()


def _hide_method(context: ClassDefContext, node: FuncDef) -> None:
    drop_errors(context.api.errors, node)  # type: ignore[attr-defined]
    empty(node)
    if isinstance(node.type, CallableType):
        types = [any_type() if is_missing(t) else t for t in node.type.arg_types]
        result = any_type() if is_missing(node.type.ret_type) else node.type.ret_type
        node.type = node.type.copy_modified(arg_types=types, ret_type=result, implicit=False)
    elif node.type is None:
        fallback = context.api.named_type("builtins.function")
        unknown = any_type()
        types = [unknown for _ in node.arguments]
        node.type = CallableType(types, node.arg_kinds, node.arg_names, unknown, fallback, name=node.name)


def is_missing(type_: Type) -> bool:
    """True if a type stands for a missing annotation."""
    proper = get_proper_type(type_)
    return isinstance(proper, AnyType) and proper.type_of_any == TypeOfAny.unannotated


def is_data(info: TypeInfo) -> bool:
    """True if a class is decorated with `relay.data`, or is a constructor of such a class."""
    decorators = [d.fullname for d in info.defn.decorators if isinstance(d, RefExpr)]
    return DATA in info.metadata or f"relay.{DATA}" in decorators


DATA = "data"


def empty(function: FuncDef) -> None:
    """Leave a function without a body that could be checked."""
    body = Block([RaiseStmt(None, None)])
    body.set_line(function.body)
    function.body = body
