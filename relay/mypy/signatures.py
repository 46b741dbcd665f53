"""Python-facing signatures of decorated functions: mypy types for Relay types."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

from mypy.nodes import ARG_POS, FuncDef, MypyFile, SymbolTableNode, TypeInfo
from mypy.typeops import make_simplified_union
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    TupleType,
    Type,
    TypeOfAny,
    UnboundType,
    UnionType,
    get_proper_type,
)

from relay.ir import types as relay_types

_CHECKED = re.compile(r"<check \d+: (.*)>")  # what the module of a class is called whose file was only read


class Signatures:
    """Python-facing types. `lookup` finds a name of a module, `modules` has those of this run."""

    def __init__(
        self, lookup: Callable[[str], SymbolTableNode | None], modules: Callable[[], Mapping[str, MypyFile]]
    ) -> None:
        self._lookup = lookup
        self._modules = modules
        self._by_path: dict[str, str] = {}

    def named_type(self, fullname: str, *arguments: Type) -> Type:
        """A loaded class; missing parameters may be anything. Any, if mypy is configured to skip the class's module."""
        symbol = self._lookup(fullname)
        if symbol is None or not isinstance(symbol.node, TypeInfo):
            return any_type()
        info = symbol.node
        if info.tuple_type is not None:
            return info.tuple_type
        return Instance(info, list(arguments) or [any_type() for _ in info.type_vars])

    def function_class(self) -> Instance:
        """The class of decorated functions."""
        found = self.named_type("relay.api.function.RelayFunction")
        assert isinstance(found, Instance)
        return found

    def decorated_signature(
        self, function: CallableType, definition: FuncDef | None, found: relay_types.FunctionType | None
    ) -> CallableType:
        """The signature of a decorated function, from its annotations and the type that Relay finds, if any."""
        written = definition.unanalyzed_type if definition is not None else None
        types, result = list(function.arg_types), function.ret_type
        if isinstance(written, CallableType) and len(written.arg_types) == len(types):
            known = [None] * len(types) if found is None else found.parameters
            types = [self._parameter_type(*each) for each in zip(written.arg_types, types, known, strict=True)]
            result = self._result_type(written.ret_type, result)
        if found is not None:
            result = self.result(found.result)
        return function.copy_modified(arg_types=types, ret_type=result, fallback=self.function_class(), implicit=False)

    def derivative(self, function: CallableType, found: relay_types.FunctionType | None) -> CallableType | None:
        """The signature of a function's derivative: its parameters, perhaps a seed, and the result that Relay finds."""
        result = any_type() if found is None else self.result(found.result)
        made = function.copy_modified(ret_type=result, fallback=self.function_class(), name=function.name)
        if found is None or len(found.parameters) == len(function.arg_types):
            return made
        if len(found.parameters) != len(function.arg_types) + 1 or not all(k.is_positional() for k in made.arg_kinds):
            return None
        return made.copy_modified(
            arg_types=[*made.arg_types, any_type()],
            arg_kinds=[*made.arg_kinds, ARG_POS],
            arg_names=[*made.arg_names, "seed"],
        )

    def pair(self, first: Type, second: Type) -> Type:
        """A tuple of two."""
        return self._tuple([first, second])

    def pullback(self, result: Type) -> Type:
        """A function of one argument."""
        fallback = self.named_type("builtins.function")
        assert isinstance(fallback, Instance)
        return CallableType([any_type()], [ARG_POS], [None], result, fallback)

    # ---- results

    def result(self, type_: relay_types.Type) -> Type:
        """The Python type of a value."""
        match type_:
            case relay_types.TensorType():
                return self.named_type("relay.calling.array.Array")
            case relay_types.TupleType(items):
                return self._structure(type_, [self.result(item) for item in items])
            case relay_types.DataType():
                owner = getattr(type_.definition.origin, "cls", None)
                return any_type() if owner is None else self._class(owner)
            case relay_types.StackType(relay_types.RefType(content)):
                return self.named_type("builtins.list", self.result(content))
            case _:
                return any_type()

    def tangent(self, type_: relay_types.Type) -> Type:
        """The Python type of the derivative of a value along a tangent; None if it has no derivative."""
        match type_:
            case relay_types.TensorType(base):
                is_number = isinstance(base, relay_types.BaseType) and not base.is_float
                return NoneType() if is_number else self.result(type_)
            case relay_types.TupleType(items):
                return self._structure(type_, [self.tangent(item) for item in items])
            case _:
                return self.result(type_)

    def _structure(self, type_: relay_types.TupleType, items: Sequence[Type]) -> Type:
        if type_.form is None:
            return self._tuple(items)
        if type_.form.cls is type(None):
            return NoneType()
        shared = items[0] if items and all(item == items[0] for item in items) else any_type()
        if type_.form.cls is dict:
            return self.named_type("builtins.dict", self.named_type("builtins.str"), shared)
        return self.named_type("builtins.list", shared) if type_.form.cls is list else self._class(type_.form.cls)

    def _tuple(self, items: Sequence[Type]) -> Type:
        fallback = self.named_type("builtins.tuple")
        assert isinstance(fallback, Instance)
        return TupleType(list(items), fallback)

    def _class(self, cls: type) -> Type:
        """A class of the user's. That of a file that was read is found by the file."""
        read = _CHECKED.fullmatch(cls.__module__)
        module = cls.__module__ if read is None else self._module_of(read[1])
        return any_type() if module is None else self.named_type(f"{module}.{cls.__qualname__}")

    def _module_of(self, path: str) -> str | None:
        modules = self._modules()
        if len(self._by_path) != len(modules):
            self._by_path = {os.path.realpath(module.path): name for name, module in modules.items() if module.path}
        return self._by_path.get(os.path.realpath(path))

    # ---- annotations

    def _parameter_type(self, written: Type, analyzed: Type, found: relay_types.Type | None) -> Type:
        """The type of arguments that Python may pass for an annotation. A name for a type has the meaning that Relay
        finds."""
        other = _or_none(written)
        if other is not None:
            taken = self._parameter_type(other, analyzed, found)
            return taken if taken is analyzed else make_simplified_union([taken, NoneType()])
        arrays = [self.named_type("relay.calling.array.ArrayLike"), self.named_type("numpy.generic")]
        what = kind(written)
        if what is None and isinstance(found, relay_types.TensorType) and isinstance(written, UnboundType):
            what = "tensor" if _has_axes(found) else "scalar"
        match what:
            case "tensor":
                return UnionType(arrays)
            case "scalar":
                return UnionType([self.named_type("builtins.float"), *arrays])
            case "tuple":
                return any_type()
            case _:
                return analyzed

    def _result_type(self, written: Type, analyzed: Type) -> Type:
        """The Python type of a result with this annotation."""
        match kind(written):
            case "tensor" | "scalar":
                return self.named_type("relay.calling.array.Array")
            case "tuple":
                return any_type()
            case _:
                return analyzed if not isinstance(get_proper_type(analyzed), NoneType) else NoneType()


def _has_axes(type_: relay_types.TensorType) -> bool:
    """True if a tensor cannot be a number."""
    return any(not isinstance(d, relay_types.TypeId) or d.kind is relay_types.Kind.Dim for d in type_.shape)


def any_type() -> AnyType:
    """The type of what may be anything."""
    return AnyType(TypeOfAny.special_form)


def _or_none(written: Type) -> Type | None:
    """The other part of `A | None` and `Optional[A]`; None for anything else."""
    match written:
        case UnionType(items=items):
            others = [item for item in items if not _is_none(item)]
            return others[0] if len(others) == 1 < len(items) else None
        case UnboundType(name=name, args=[item]) if name.rpartition(".")[2] == "Optional":
            return item
        case _:
            return None


def _is_none(written: Type) -> bool:
    return isinstance(written, NoneType) or (isinstance(written, UnboundType) and written.name == "None")


def kind(written: Type) -> str | None:
    """The kind of Relay type that an annotation is: "tensor", "scalar", "tuple"; None for others."""
    if not isinstance(written, UnboundType):
        return None
    name = written.name.rpartition(".")[2]
    if name == "Tensor" and len(written.args) in (2, 3):
        shape = written.args[1]
        return "scalar" if getattr(shape, "items", None) == [] else "tensor"
    if name in ("int", "float", "bool"):
        return "scalar"
    return "tuple" if name == "tuple" and written.args else None
