"""Pieces of text, one after the other, and the names that variables, labels, data types and sizes have in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs
import numpy as np

from relay.errors import Source
from relay.ir.dims import DataDependentDim, DimExpr, TypeId, Unknown, made_dim, substitute, variables
from relay.ir.expr import Binding, LoopLabel, Var
from relay.ir.rebuild import renamed_type
from relay.ir.types import (
    Base,
    DataDefinition,
    DataType,
    Dim,
    Form,
    FunctionType,
    RefType,
    Shape,
    StackType,
    TensorType,
    TupleType,
    Type,
    map_dims,
    prune,
    show,
    show_argument,
)
from relay.text.lexer import name_text, quote_text
from relay.text.surface import Objects
from relay.text.type_parser import RESERVED

INDENT = "  "


@attrs.frozen(eq=False)
class Line:
    """A line of a text, and the binding that begins on it, if one does."""

    text: str
    binding: Binding | None = None


class Names:
    """Unique names in the order of asking: the wanted one, then with a number."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._names: dict[object, str] = {}
        self._taken: set[str] = set(taken)
        self._counts: dict[str, int] = {}

    def __contains__(self, thing: object) -> bool:
        return thing in self._names

    def name_of(self, thing: Var | LoopLabel | DataDefinition | TypeId) -> str:
        name = self._names.get(thing)
        if name is None:
            name = base = re.sub(r"[^A-Za-z0-9_]", "_", thing.name) or "_"
            while name in self._taken:
                count = self._counts[base] = self._counts.get(base, 0) + 1
                name = f"{base}_{count}" if base[-1].isdigit() else f"{base}{count}"
            self._taken.add(name)
            self._names[thing] = name
        return name


class Pieces:
    """Appends pieces of text; `indentation` is that of the current line."""

    def __init__(self, spans: bool = False) -> None:
        self._spans = spans
        self._sources: dict[Source, int] = {}
        self._pieces: list[str] = []
        self._indentation = 0
        self._names, self._labels = Names(), Names()
        self._function_label: LoopLabel | None = None
        self._constants: dict[int, tuple[int, np.ndarray]] = {}  # the number and array, by the array's identity
        self._data_names = Names(RESERVED)
        self._data: list[DataDefinition] = []
        self._starts: dict[int, Binding] = {}  # where bindings begin, as the number of pieces before them
        self.sources = False
        self._last_source: tuple[object, int] | None = None
        self._dim_names = Names()
        self._made: dict[
            DataDependentDim, DataDependentDim
        ] = {}  # data-dependent sizes, with other names where theirs is taken
        self.objects = Objects()
        self._open: dict[TypeId, TypeId] | None = None  # of an untyped module: the variables of its annotations
        self._declared = 0  # how many pieces were put before all others at the end

    def lines(self) -> list[Line]:
        """The text by lines."""
        lines: list[Line] = []
        binding: Binding | None = None
        words: list[str] = []
        for position, piece in enumerate(self._pieces):
            binding = self._starts.get(position - self._declared, binding)
            first, *others = piece.split("\n")
            words.append(first)
            for other in others:
                lines.append(Line("".join(words), binding))
                words, binding = [other], None
        return [*lines, Line("".join(words), binding)]

    def text(self) -> str:
        return "".join(self._pieces)

    def _put(self, *pieces: str) -> None:
        self._pieces += pieces

    def _line(self) -> None:
        self._pieces.append("\n" + INDENT * self._indentation)

    # ---- names and types

    def _data_name(self, definition: DataDefinition) -> str:
        if definition not in self._data_names:
            self._data.append(definition)
        return self._data_names.name_of(definition)

    def _type(self, type_: Type) -> str:
        """As `show`, with the names that the data types of this text have."""
        type_ = prune(type_)  # type: ignore[assignment]
        match type_:
            case TensorType(base, shape) if self._open is not None:
                named = map_dims(type_, lambda dim: substitute(dim, self._unique_variable))
                assert isinstance(named, TensorType)
                return show(attrs.evolve(named, base=self._unique_variable(base) if isinstance(base, TypeId) else base))
            case TensorType(_, shape):
                return show(renamed_type(type_, self._name_dims(shape)))
            case TypeId() if self._open is not None:
                return self._unique_variable(type_).name
            case TupleType(items, Form(cls, names)) if names and self._open is not None:
                fields = ", ".join(f"{name_text(n)}: {self._type(t)}" for n, t in zip(names, items, strict=True))
                return f"record {quote_text(self.objects.name(cls))}({fields})"
            case TupleType(_, Form(cls)) if cls is type(None) and self._open is not None:
                return "None"
            case TupleType(items):
                return f"({', '.join(map(self._type, items))}{',' if len(items) == 1 else ''})"
            case FunctionType(parameters, result, ()):
                return f"fn({', '.join(map(self._type, parameters))}) -> {self._type(result)}"
            case RefType(content):
                return f"Ref[{self._type(content)}]"
            case StackType(element):
                return f"Stack[{self._type(element)}]"
            case DataType(definition, arguments):
                inside = ", ".join(self._type_argument(a) for a in arguments)
                return self._data_name(definition) + (f"[{inside}]" if arguments else "")
            case _:
                return show(type_)

    def _type_argument(self, argument: Type | Base | Shape | Dim) -> str:
        is_type = isinstance(argument, TensorType | TupleType | FunctionType | RefType | StackType | DataType)
        return self._type(argument) if is_type else show_argument(argument)  # type: ignore[arg-type]

    def _unique_variable(self, variable: TypeId | Unknown) -> TypeId:
        """A variable of an untyped module's annotations, with another name where its own is taken."""
        assert self._open is not None and isinstance(variable, TypeId)
        if variable not in self._open:
            self._open[variable] = TypeId(self._dim_names.name_of(variable), variable.kind)
        return self._open[variable]

    def _name_dims(self, part: object) -> Mapping[DataDependentDim, DataDependentDim]:
        """Names for data-dependent sizes, after those in a dim, shape or attribute have got theirs."""
        match part:
            case tuple():
                for item in part:
                    self._name_dims(item)
            case TypeId() | DimExpr():
                for dim in sorted({v for v in variables(part) if isinstance(v, DataDependentDim)}, key=str):
                    if dim not in self._made:
                        self._made[dim] = made_dim(self._dim_names.name_of(dim), dim.is_wide)
        return self._made
