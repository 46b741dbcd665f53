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
or none in the untyped surface IR, whose text begins with `surface;`; a large array appears as `constant#0[float32,
(64, 64)]`, and its bytes stand at the end of the module, in `constants { .. }`. Symbolic dims, and what is assumed of
them, stand at its beginning: `dims n, m where n >= 1, n % 2 == 0;`; `dims made k;` is one that the run makes.
Within a function, variables with one name are told apart by a number. The text of a module depends on its structure and
names only; `relay.text.parser` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, assert_never

import attrs
import numpy as np

from relay.errors import Source, Span
from relay.ir.check_surface import is_untyped
from relay.ir.dims import DimExpr, MadeDim, TypeId, Unknown, made_dim, substitute, variables
from relay.ir.expr import (
    Annotated,
    Apply,
    Arm,
    Ascribe,
    Assert,
    Atom,
    Attribute,
    AxisSize,
    BindDim,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    CustomGradient,
    Dead,
    Derivative,
    Exit,
    Expr,
    Extent,
    ForEach,
    Function,
    Global,
    Grad,
    If,
    Index,
    IndexUpdate,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Module,
    Next,
    OpCall,
    Parameter,
    PatternCase,
    PatternMatch,
    Print,
    Project,
    Quiet,
    Recompute,
    RefNew,
    RefRead,
    RefWrite,
    SetAttribute,
    Shadow,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Static,
    Unpack,
    Var,
    Yield,
)
from relay.ir.extents import symbolic_dims
from relay.ir.traverse import renamed_attribute, renamed_type
from relay.ir.types import (
    Base,
    Constructor,
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
    show_attribute,
    show_shape,
)
from relay.text.constants import array_text, encode, is_inline
from relay.text.lexer import name_text, quoted
from relay.text.surface import Objects, items_text, pattern_text, static_text
from relay.text.type_parser import RESERVED

Printable: TypeAlias = Module | Function | Derivative | Block | Expr

_INDENT = "  "


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
    With `sources` the lines of the source stand as comments above what was made of them.
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


@attrs.frozen(eq=False)
class Line:
    """A line of a text, and the binding that begins on it, if one does."""

    text: str
    binding: Binding | None = None


def to_lines(module: Module, *, elide: bool = True) -> list[Line]:
    """The text of a module by lines, with the bindings that they show. Linear in its size."""
    printer = _Printer()
    printer.module(module, elide)
    return printer.lines()


class _Names:
    """Unique names in the order of asking: the wanted one, then with a number."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._names: dict[object, str] = {}
        self._taken: set[str] = set(taken)
        self._counts: dict[str, int] = {}

    def __contains__(self, thing: object) -> bool:
        return thing in self._names

    def of(self, thing: Var | LoopLabel | DataDefinition | TypeId) -> str:
        name = self._names.get(thing)
        if name is None:
            name = base = re.sub(r"[^A-Za-z0-9_]", "_", thing.name) or "_"
            while name in self._taken:
                count = self._counts[base] = self._counts.get(base, 0) + 1
                name = f"{base}_{count}" if base[-1].isdigit() else f"{base}{count}"
            self._taken.add(name)
            self._names[thing] = name
        return name


class _Printer:
    """Appends pieces of text; `indentation` is that of the current line."""

    def __init__(self, spans: bool = False) -> None:
        self._spans = spans
        self._sources: dict[Source, int] = {}
        self._pieces: list[str] = []
        self._indentation = 0
        self._names, self._labels = _Names(), _Names()
        self._function_label: LoopLabel | None = None
        self._constants: dict[int, tuple[int, np.ndarray]] = {}  # the number and array, by the array's identity
        self._data_names = _Names(RESERVED)
        self._data: list[DataDefinition] = []
        self._starts: dict[int, Binding] = {}  # where bindings begin, as the number of pieces before them
        self.sources = False
        self._last_source: tuple[object, int] | None = None
        self._dim_names = _Names()
        self._made: dict[MadeDim, MadeDim] = {}  # sizes that the run makes, with other names where theirs is taken
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
        self._pieces.append("\n" + _INDENT * self._indentation)

    # ---- declarations

    def module(self, module: Module, elide: bool, aside: dict[str, np.ndarray] | None = None) -> None:
        is_surface = is_untyped(module)
        if is_surface:
            self._open = {}
        elif module.entry in module.functions:
            self._dim_names = _Names(dim.name for dim in symbolic_dims(module))
        for definition in module.data:
            self._data_name(definition)
        for position, (name, function) in enumerate(module.functions.items()):
            self._put("\n\n" if position else "", "entry " if name == module.entry else "")
            if isinstance(function, Derivative):
                self.derivative(function)
            else:
                self._names, self._labels = _Names(), _Names()
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
                name, elements = f"constant{number}", quoted(encode(array)) if aside is None else ""
                if aside is not None:
                    aside[name] = array
                    elements = f"file {quoted(name)}"
                self._put(f"\n{_INDENT}constant#{number}: {show(Constant(array).type)} = ", elements, ";")
            self._put("\n}")
        if self._sources:
            self._put("\n\nsources {")
            for source in self._sources:
                self._put(f"\n{_INDENT}{quoted(source.filename)} {source.first_line} {quoted(source.text)};")
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

    def _data_name(self, definition: DataDefinition) -> str:
        if definition not in self._data_names:
            self._data.append(definition)
        return self._data_names.of(definition)

    def _type(self, type_: Type) -> str:
        """As `show`, with the names that the data types of this text have."""
        type_ = prune(type_)  # type: ignore[assignment]
        match type_:
            case TensorType(base, shape) if self._open is not None:
                named = map_dims(type_, lambda dim: substitute(dim, self._opened))
                assert isinstance(named, TensorType)
                return show(attrs.evolve(named, base=self._opened(base) if isinstance(base, TypeId) else base))
            case TensorType(_, shape):
                return show(renamed_type(type_, self._named(shape)))
            case TypeId() if self._open is not None:
                return self._opened(type_).name
            case TupleType(items, Form(cls, names)) if names and self._open is not None:
                fields = ", ".join(f"{name_text(n)}: {self._type(t)}" for n, t in zip(names, items, strict=True))
                return f"record {quoted(self.objects.name(cls))}({fields})"
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

    def _opened(self, variable: TypeId | Unknown) -> TypeId:
        """A variable of an untyped module's annotations, with another name where its own is taken."""
        assert self._open is not None and isinstance(variable, TypeId)
        if variable not in self._open:
            self._open[variable] = TypeId(self._dim_names.of(variable), variable.kind)
        return self._open[variable]

    def _named(self, part: object) -> Mapping[MadeDim, MadeDim]:
        """Names for sizes that the run makes, after those in a dim, shape or attribute have got theirs."""
        match part:
            case tuple():
                for item in part:
                    self._named(item)
            case TypeId() | DimExpr():
                for dim in sorted({v for v in variables(part) if isinstance(v, MadeDim)}, key=str):
                    if dim not in self._made:
                        self._made[dim] = made_dim(self._dim_names.of(dim))
        return self._made

    def derivative(self, derivative: Derivative) -> None:
        self._put(
            f"derivative {name_text(derivative.name)}: {self._type(derivative.type)} = ",
            f"grad{_options(derivative.grad)} @{name_text(derivative.of)}",
        )

    def function(self, function: Function) -> None:
        signature = function.signature or (Parameter(),) * len(function.parameters)
        self._put(f"fn {name_text(function.name)}({', '.join(map(self._parameter, function.parameters, signature))})")
        if function.result is not None:
            self._put(f" -> {self._type(function.result)}")
        match function.rule:
            case Recompute():
                self._put(" recompute")
            case Quiet():
                self._put(" quiet")
            case CustomGradient(backward, forward, depth):
                self._put(f" gradient @{name_text(backward)}")
                self._put("" if forward is None else f" saving @{name_text(forward)}")
                self._put(" first" * depth)
            case None:
                pass
        self._put(self._place(function.span), " ")
        around, self._function_label = self._function_label, function.label
        self._braces(function.body, returns=True)
        self._function_label = around

    # ---- blocks

    def _braces(self, block: Block, returns: bool = False) -> None:
        """A block in braces: on one line if it has only a terminator."""
        self._put("{")
        if block.bindings:
            self._indentation += 1
            self._line()
            self.block_lines(block, returns)
            self._indentation -= 1
            self._line()
            self._put("}")
        else:
            self._put(" ")
            self._terminator(block, returns)
            self._put(" }")

    def block_lines(self, block: Block, returns: bool = False) -> None:
        """The lines of a block. With `returns` a return at its end is only the value."""
        for binding in block.bindings:
            if self.sources:
                self._source(binding.value.span)
            self._binding(binding)
            self._put(";")
            self._line()
        self._terminator(block, returns)

    def _source(self, span: Span | None) -> None:
        """The line of the source as a comment, where it is not the line of the binding before."""
        if span is None or (span.source, span.line) == self._last_source:
            return
        self._last_source = (span.source, span.line)
        text = span.source.line(span.line).strip()
        if text:
            self._put(f"# {span.line}: {text}")
            self._line()

    def _binding(self, binding: Binding) -> None:
        self._starts[len(self._pieces)] = binding
        if binding.targets:
            self._put(f"let {self._bound(binding.targets)} = ")
        self.expression(binding.value)
        if not isinstance(binding.value, Atom):
            self._put(self._place(binding.value.span))

    def _place(self, span: Span | None) -> str:
        """Where something comes from, if that is asked for."""
        if span is None or not self._spans:
            return ""
        number = self._sources.setdefault(span.source, len(self._sources))
        return f' at "{number}:{span.line}:{span.column}-{span.end_line}:{span.end_column}"'

    def _terminator(self, block: Block, returns: bool) -> None:
        match block.terminator:
            case Yield(values):
                self._put("yield ", self._atoms(values)) if values else self._put("yield")
            case Next(label, values):
                self._put(f"next '{self._labels.of(label)}({self._atoms(values)})")
            case Exit(label, values) if label is self._function_label:
                self._put("" if returns else "return ", self._atoms(values))
            case Exit(label, values):
                self._put(f"exit '{self._labels.of(label)}({self._atoms(values)})")
            case Dead():
                self._put("dead")
            case other:
                assert_never(other)

    # ---- expressions

    def expression(self, expression: Expr) -> None:
        atom = self._atom
        match expression:
            case Var() | Constant() | Global() | Static():
                self._put(atom(expression))
            case OpCall(operator, arguments, attributes):
                sizes = {name: renamed_attribute(value, self._named(value)) for name, value in attributes.items()}
                given = [f"{name_text(name)}={show_attribute(value)}" for name, value in sizes.items()]
                self._put(f"{name_text(operator)}({', '.join([*map(atom, arguments), *given])})")
            case Call(function, arguments):
                self._put(f"{atom(function)}({self._atoms(arguments)})")
            case MakeTuple(items):
                self._put(f"({self._atoms(items)}{',' if len(items) == 1 else ''})")
            case Project(value, index):
                self._put(f"{atom(value)}.{index}")
            case If(arms, orelse):
                self._if(arms, orelse)
            case Match(value, match_arms):
                self._put(f"match {atom(value)} {{")
                self._indentation += 1
                for arm in match_arms:
                    self._line()
                    self._put(name_text(arm.constructor), f"({self._bound(arm.fields)})" if arm.fields else "", " -> ")
                    self._braces(arm.body)
                self._indentation -= 1
                self._line()
                self._put("}")
            case Loop(label, parameters, initial, body, counter):
                self._put(f"loop '{self._labels.of(label)} ")
                if counter is not None:
                    self._put(f"for {self._variable(counter.index)} < {atom(counter.count)} ")
                self._initialised(parameters, initial)
                self._braces(body)
            case Lambda(function):
                self.function(function)
            case Grad(function) as grad:
                self._put(f"grad{_options(grad)} {atom(function)}")
            case RefNew(value):
                self._put(f"ref {atom(value)}")
            case RefRead(reference):
                self._put(f"read {atom(reference)}")
            case RefWrite(reference, value):
                self._put(f"write {atom(reference)} {atom(value)}")
            case Shadow(reference, sweep, initial, slot):
                self._put(f"shadow {atom(reference)} {atom(sweep)} {atom(initial)} {quoted(slot)}")
            case Assert(condition, message):
                self._put(f"assert {atom(condition)} {quoted(message)}")
            case Print(pieces, values, formats):
                self._put(f"{'fail' if expression.fails else 'print'} {quoted(pieces[0])}")
                for value, specification, piece in zip(values, formats, pieces[1:], strict=True):
                    form = f" as {quoted(specification)}" if specification else ""
                    self._put(f" {atom(value)}{form} {quoted(piece)}")
            case Construct(definition, constructor, arguments):
                self._put(f"{self._data_name(definition)}.{name_text(constructor)}({self._atoms(arguments)})")
            case StackNew(element):
                self._put(f"stack[{self._type(element)}]")
            case StackPush(stack, value):
                self._put(f"push {atom(stack)} {atom(value)}")
            case StackGet(stack, position):
                self._put(f"get {atom(stack)} {atom(position)}")
            case StackLength(stack):
                self._put(f"len {atom(stack)}")
            case Extent(dim, base):
                self._put(f"extent[{show_attribute(renamed_attribute(dim, self._named(dim)))}, {base}]")  # type: ignore[arg-type]
            case BindDim(dim, size):
                self._put(f"dim {name_text(self._named(dim)[dim].name)} = {atom(size)}")
            case AxisSize(value, axis):
                self._put(f"size {atom(value)} {axis}")
            case Ascribe(value):
                self._put(f"ascribe {atom(value)}")
            case Apply(function, arguments, keywords):
                words = [*map(atom, arguments), *(f"{name_text(name)}={atom(value)}" for name, value in keywords)]
                self._put(f"apply {atom(function)}({', '.join(words)})")
            case Attribute(value, name):
                self._put(f"{atom(value)}.{name_text(name)}")
            case SetAttribute(value, name, new):
                self._put(f"{atom(value)}.{name_text(name)} = {atom(new)}")
            case Index(value, items):
                self._put(f"{atom(value)}[{items_text(items, atom)}]{' updated' if expression.updated else ''}")
            case IndexUpdate(value, items, new):
                self._put(f"{atom(value)}[{items_text(items, atom)} = {atom(new)}]")
            case Annotated(value, annotation):
                self._put(f"{atom(value)} : {self._type(annotation)}")
            case Unpack(value, count):
                self._put(f"unpack {atom(value)} {count}")
            case ForEach(label, element, iterable, parameters, initial, body):
                self._put(f"loop '{self._labels.of(label)} for {self._variable(element)} in {atom(iterable)} ")
                self._initialised(parameters, initial)
                self._braces(body)
            case PatternMatch(value, cases):
                self._cases(value, cases)
            case other:
                assert_never(other)

    def _cases(self, value: Atom, cases: Sequence[PatternCase]) -> None:
        self._put(f"match {self._atom(value)} {{")
        self._indentation += 1
        for case in cases:
            self._line()
            self._put(f"{pattern_text(case.pattern, self._atom, self._variable)} ")
            if case.guard is not None:
                self._put("if ")
                self._braces(case.guard)
                self._put(" ")
            self._put("-> ")
            self._braces(case.body)
        self._indentation -= 1
        self._line()
        self._put("}")

    def _if(self, arms: Sequence[Arm], orelse: Block) -> None:
        for position, arm in enumerate(arms):
            self._put("if " if position == 0 else " elif ")
            match arm.condition:
                case Block((), Yield((condition,))):
                    self._put(self._atom(condition))
                case condition_block:
                    self._braces(condition_block)
            self._put(" then ")
            self._braces(arm.body)
        self._put(" else " if arms else "do ")
        self._braces(orelse)

    def _initialised(self, parameters: Sequence[Var], initial: Sequence[Atom]) -> None:
        # The initial values belong to the outside, so they are named before the parameters.
        values = [self._atom(a) for a in initial]
        pairs = zip(parameters, values, strict=True)
        self._put("(", ", ".join(f"{self._variable(p)} = {value}" for p, value in pairs), ") ")

    def _bound(self, variables: Iterable[Var]) -> str:
        return ", ".join(map(self._variable, variables))

    def _variable(self, var: Var) -> str:
        """A variable where it is bound."""
        return f"%{self._names.of(var)}" + ("" if var.type is None else f": {self._type(var.type)}")

    def _parameter(self, var: Var, parameter: Parameter) -> str:
        kind = "" if parameter.kind == "positional_or_keyword" else f"{parameter.kind} "
        kind += "static " if parameter.static else ""
        default = "" if parameter.default is None else f" = {self._atom(parameter.default)}"
        word = self._variable(var)
        if self._open is not None and self._names.of(var) != var.name:  # callers may give its name
            default = f" named {quoted(var.name)}{default}"
        return kind + word + default

    # ---- atoms

    def _atoms(self, atoms: Iterable[Atom]) -> str:
        return ", ".join(map(self._atom, atoms))

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Var():
                return f"%{self._names.of(atom)}"
            case Constant(value):
                if not is_inline(value):
                    number, _ = self._constants.setdefault(id(value), (len(self._constants), value))
                    return f"constant#{number}[{value.dtype}, {show_shape(value.shape)}]"
                return array_text(value)
            case Global(name):
                return f"@{name_text(name)}"
            case Static(value):
                return static_text(value, self.objects)
            case other:
                assert_never(other)


# ---- values


def _dims_text(module: Module, made: Sequence[MadeDim]) -> list[str]:
    """The declaration of the symbolic dims, and of those that the run makes."""
    dims = [name_text(dim.name) for dim in symbolic_dims(module)] if module.entry in module.functions else []
    names = ", ".join([*dims, *(f"made {name_text(dim.name)}" for dim in made)])
    where = ", ".join(f"{c} {quoted(c.reason)}" if c.reason else str(c) for c in module.where)
    return [f"dims {names}{' where ' * bool(where)}{where};", "\n\n"] if names else []


def _options(grad: Grad) -> str:
    """The options of `grad` that are not the default."""
    options = []
    if grad.wrt is not None:
        options.append(f"wrt={show_attribute(grad.wrt)}")
    if grad.output is not None:
        options.append(f"output={grad.output}")
    if grad.keeping:
        options.append(f"keeping={show_attribute(grad.keeping)}")
    options += [name for name in ("seedable", "with_value") if getattr(grad, name)]
    if grad.memory != "store":
        options.append(f"memory={show_attribute(grad.memory)}")
    return f"{{{', '.join(options)}}}" if options else ""
