"""Relay's notation for the intermediate representation, of every stage.

    data List { Nil, Cons(Tensor[float32, ()], List) }

    entry fn total(%xs: List) -> Tensor[float32, ()] {
      let %sum: Tensor[float32, ()] = loop 'rest (%xs1: List = %xs, %sum1: Tensor[float32, ()] = 0.0f32) {
        match %xs1 {
          Nil -> { exit 'rest(%sum1) }
          Cons(%head: Tensor[float32, ()], %tail: List) -> {
            let %sum2: Tensor[float32, ()] = add(%sum1, %head);
            next 'rest(%tail, %sum2)
          }
        };
        dead
      };
      %sum
    }

`%x` is a variable, `@f` a function of the module, `'l` a loop. A number has its dtype as a suffix (`2.0f32`, `3i64`),
or none in the untyped surface IR, whose text begins with `surface;`; a large array appears as `constant#0[float32, (64,
64)]`, and its bytes are at the end of the module, in `constants { .. }`. Symbolic dims, and assumptions about them, are
at its beginning: `dims n, m where n >= 1, n % 2 == 0;`; `dims made k;` is a data-dependent one. Within a function,
variables with one name are told apart by a number. The text of a module depends on its structure and names only;
`relay.text.parser` reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from relay.ir.dims import DataDependentDim
from relay.ir.expr import Block, Constant, Derivative, Expr, Function, Module
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.types import Constructor, DataDefinition, show
from relay.ir.validation.check_surface import is_untyped
from relay.text.body_printer import BodyPrinter, grad_options
from relay.text.constants import encode
from relay.text.lexer import name_text, quote_text
from relay.text.pieces import INDENT, Line, Names

Printable: TypeAlias = "Module | Function | Derivative | Block | Expr"


def to_text(
    part: Printable,
    *,
    elide: bool = False,
    constants: dict[str, np.ndarray] | None = None,
    objects: dict[str, object] | None = None,
    spans: bool = False,
    sources: bool = False,
) -> str:
    """A module, function, block or expression as text, without a newline at its end. Linear in its size.

    The text of a module is complete: `relay.parse` reads it back. An untyped one (`f.surface`) may mention objects of
    Python; they are put into `objects` by their names in the text, for `relay.parse(text, objects=..)`. With `elide`,
    which is for reading, it lacks the elements of large constants. With `constants` they are put into this dict instead
    of the text, by names that the text mentions, for `numpy.savez` and `relay.parse(text, constants=..)`. With `spans`
    it says where expressions come from, `at "0:3:5-3:9"` (source, line, column, end), and has the sources at its end.
    With `sources` the lines of the source are comments above the code made of them.
    """
    printer = _Printer(spans)
    printer.sources = sources
    match part:
        case Module():
            printer.module(part, elide, constants)
        case Function():
            printer.function(part)
        case Derivative():
            printer.derivative(part)
        case Block():
            printer.block_lines(part)
        case _:
            printer.expression(part)
    if objects is not None:
        objects.update(printer.objects.named)
    return printer.text()


def to_lines(module: Module, *, elide: bool = True) -> list[Line]:
    """The text of a module by lines, with the bindings that they show. Linear in its size."""
    printer = _Printer()
    printer.module(module, elide)
    return printer.lines()


class _Printer(BodyPrinter):
    """Appends modules."""

    def module(self, module: Module, elide: bool, aside: dict[str, np.ndarray] | None = None) -> None:
        is_surface = is_untyped(module)
        if is_surface:
            self._open = {}
        elif module.entry in module.functions:
            self._dim_names = Names(dim.name for dim in symbolic_dims(module))
        for definition in module.data:
            self._data_name(definition)
        for position, (name, function) in enumerate(module.functions.items()):
            self._put("\n\n" if position else "", "entry " if name == module.entry else "")
            if isinstance(function, Derivative):
                self.derivative(function)
            else:
                self._names, self._labels = Names(), Names()
                self.function(function)
        declared: list[str] = [] if is_surface else _dims_text(module, list(self._made.values()))
        for definition in self._data:  # which grows if a field mentions one more
            declared += self._declaration(definition), "\n\n"
        if self._open is not None:  # to which fields of data types may have added
            names = "".join(f" ({v.name}: {v.kind.value})" for v in self._open.values())
            declared[:0] = [f"surface{names};", "\n\n"]
        self._pieces[:0] = declared
        self._declared = len(declared)
        if self._constants and not elide:
            self._put("\n\nconstants {")
            for number, array in self._constants.values():
                name, elements = f"constant{number}", quote_text(encode(array)) if aside is None else ""
                if aside is not None:
                    aside[name] = array
                    elements = f"file {quote_text(name)}"
                self._put(f"\n{INDENT}constant#{number}: {show(Constant(array).type)} = ", elements, ";")
            self._put("\n}")
        if self._sources:
            self._put("\n\nsources {")
            for source in self._sources:
                self._put(f"\n{INDENT}{quote_text(source.filename)} {source.first_line} {quote_text(source.text)};")
            self._put("\n}")

    def _declaration(self, definition: DataDefinition) -> str:
        parameters = ", ".join(f"{p.name}: {p.kind.value}" for p in definition.parameters)
        constructors = ", ".join(map(self._constructor, definition.constructors))
        name = f"{self._data_name(definition)}{f'[{parameters}]' * bool(parameters)}"
        made = definition.gradient
        if made is not None and made is not definition and made in self._data_names:
            name = f"{name} gradient {self._data_name(made)}"
        return f"data {name} {{ {constructors} }}"

    def _constructor(self, constructor: Constructor) -> str:
        fields = [self._type(t) for t in constructor.fields]
        if len(constructor.names) == len(fields):
            fields = [f"{name_text(n)}: {t}" for n, t in zip(constructor.names, fields, strict=True)]
        return name_text(constructor.name) + (f"({', '.join(fields)})" if fields else "")

    def derivative(self, derivative: Derivative) -> None:
        self._put(
            f"derivative {name_text(derivative.name)}: {self._type(derivative.type)} = ",
            f"grad{grad_options(derivative.grad)} @{name_text(derivative.of)}",
        )


def _dims_text(module: Module, made: Sequence[DataDependentDim]) -> list[str]:
    """The declaration of the symbolic dims, and of the data-dependent ones."""
    dims = [name_text(dim.name) for dim in symbolic_dims(module)] if module.entry in module.functions else []
    names = ", ".join([*dims, *(f"made {'wide ' * dim.is_wide}{name_text(dim.name)}" for dim in made)])
    where = ", ".join(f"{c} {quote_text(c.reason)}" if c.reason else str(c) for c in module.where)
    return [f"dims {names}{' where ' * bool(where)}{where};", "\n\n"] if names else []
