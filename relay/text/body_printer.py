"""Printer of functions: blocks, bindings and expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from relay.errors import InternalError, Span
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    CustomGradient,
    Dead,
    Exit,
    Expr,
    Function,
    Global,
    Grad,
    If,
    Lambda,
    Loop,
    MakeTuple,
    Match,
    Next,
    OpCall,
    Parameter,
    Print,
    PrintErased,
    Project,
    Recompute,
    Static,
    Var,
    Yield,
)
from relay.ir.node import Field, Role, notation
from relay.ir.rebuild import renamed_attribute
from relay.ir.surface import (
    Annotated,
    Apply,
    Attribute,
    ForEach,
    Index,
    IndexUpdate,
    PatternCase,
    PatternMatch,
    SetAttribute,
)
from relay.ir.types import show_attribute, show_shape
from relay.text.constants import array_text, is_inline
from relay.text.lexer import name_text, quote_text
from relay.text.pieces import Pieces
from relay.text.surface import items_text, pattern_text, static_text


class BodyPrinter(Pieces):
    """Appends functions, blocks and expressions."""

    def function(self, function: Function) -> None:
        signature = function.signature or (Parameter(),) * len(function.parameters)
        self._put(f"fn {name_text(function.name)}({', '.join(map(self._parameter, function.parameters, signature))})")
        if function.result is not None:
            self._put(f" -> {self._type(function.result)}")
        match function.rule:
            case Recompute():
                self._put(" recompute")
            case PrintErased():
                self._put(" quiet")
            case CustomGradient(backward, forward, depth):
                self._put(f" gradient @{name_text(backward)}")
                self._put("" if forward is None else f" saving @{name_text(forward)}")
                self._put(" first" * depth)
            case None:
                pass
        self._put(self._place(function.span), " ")
        around, self._function_label = self._function_label, function.label
        self._braced_block(function.body, returns=True)
        self._function_label = around

    # ---- blocks

    def _braced_block(self, block: Block, returns: bool = False) -> None:
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
            self._put(f"let {self._variable_list(binding.targets)} = ")
        self.expression(binding.value)
        if not isinstance(binding.value, Atom):
            self._put(self._place(binding.value.span))

    def _place(self, span: Span | None) -> str:
        """The source place of something, if places are printed."""
        if span is None or not self._spans:
            return ""
        number = self._sources.setdefault(span.source, len(self._sources))
        return f' at "{number}:{span.line}:{span.column}-{span.end_line}:{span.end_column}"'

    def _terminator(self, block: Block, returns: bool) -> None:
        match block.terminator:
            case Yield(values):
                self._put("yield ", self._atoms(values)) if values else self._put("yield")
            case Next(label, values):
                self._put(f"next '{self._labels.name_of(label)}({self._atoms(values)})")
            case Exit(label, values) if label is self._function_label:
                self._put("" if returns else "return ", self._atoms(values))
            case Exit(label, values):
                self._put(f"exit '{self._labels.name_of(label)}({self._atoms(values)})")
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
                sizes = {name: renamed_attribute(value, self._name_dims(value)) for name, value in attributes.items()}
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
                    self._put(
                        name_text(arm.constructor), f"({self._variable_list(arm.fields)})" if arm.fields else "", " -> "
                    )
                    self._braced_block(arm.body)
                self._indentation -= 1
                self._line()
                self._put("}")
            case Loop(label, parameters, initial, body, counter):
                self._put(f"loop '{self._labels.name_of(label)} ")
                if counter is not None:
                    axis = f"along {quote_text(counter.axis)} " if counter.axis else ""
                    ways = f"diverging {quote_text(counter.divergence)} " if counter.divergence else ""
                    self._put(f"for {self._variable(counter.index)} < {atom(counter.count)} {axis}{ways}")
                self._write_initial_values(parameters, initial)
                self._braced_block(body)
            case Lambda(function):
                self.function(function)
            case Grad(function) as grad:
                self._put(f"grad{grad_options(grad)} {atom(function)}")
            case Print(pieces, values, formats):
                self._put(f"{'fail' if expression.fails else 'print'} {quote_text(pieces[0])}")
                for value, specification, piece in zip(values, formats, pieces[1:], strict=True):
                    form = f" as {quote_text(specification)}" if specification else ""
                    self._put(f" {atom(value)}{form} {quote_text(piece)}")
            case Construct(definition, constructor, arguments):
                self._put(f"{self._data_name(definition)}.{name_text(constructor)}({self._atoms(arguments)})")
            case Apply(function, arguments, keywords):
                words = [*map(atom, arguments), *(f"{name_text(name)}={atom(value)}" for name, value in keywords)]
                self._put(f"apply {atom(function)}({', '.join(words)})")
                if expression.changed:
                    numbers = ("receiver" if number < 0 else str(number) for number in expression.changed)
                    self._put(f" changing {', '.join(numbers)}")
            case Attribute(value, name):
                self._put(f"{atom(value)}.{name_text(name)}")
            case SetAttribute(value, name, new):
                self._put(f"{atom(value)}.{name_text(name)} = {atom(new)}")
            case Index(value, items):
                self._put(f"{atom(value)}[{items_text(items, atom)}]{' updated' if expression.updated else ''}")
            case IndexUpdate(value, items, new):
                inside = " inside" if expression.inside else ""
                self._put(f"{atom(value)}[{items_text(items, atom)} = {atom(new)}]{inside}")
            case Annotated(value, annotation):
                self._put(f"{atom(value)} : {self._type(annotation)}")
            case ForEach(label, element, iterable, parameters, initial, body, _, resized):
                self._put(f"loop '{self._labels.name_of(label)} for {self._variable(element)} in {atom(iterable)} ")
                if resized:
                    self._put(f"resizing {', '.join(map(str, resized))} ")
                self._write_initial_values(parameters, initial)
                self._braced_block(body)
            case PatternMatch(value, cases):
                self._cases(value, cases)
            case other:
                cls: type = type(other)
                self._put(*[p if isinstance(p, str) else self._field(p, other) for p in notation(cls)])

    def _field(self, field: Field, node: Expr) -> str:
        """The text of a field of a node that has a notation."""
        value = getattr(node, field.name)
        match field.role:
            case Role.ATOM:
                return self._atom(value)
            case Role.TYPE:
                return self._type(value)
            case Role.DIM:
                return show_attribute(renamed_attribute(value, self._name_dims(value)))
            case Role.NEW_DIM:
                return name_text(self._name_dims(value)[value].name)
            case Role.ATTRIBUTE:
                return quote_text(value) if isinstance(value, str) else str(value)
            case role:
                raise InternalError(f"{type(node).__name__}.{field.name}, a {role.value}, has no notation")

    def _cases(self, value: Atom, cases: Sequence[PatternCase]) -> None:
        self._put(f"match {self._atom(value)} {{")
        self._indentation += 1
        for case in cases:
            self._line()
            self._put(f"{pattern_text(case.pattern, self._atom, self._variable)} ")
            if case.guard is not None:
                self._put("if ")
                self._braced_block(case.guard)
                self._put(" ")
            self._put("-> ")
            self._braced_block(case.body)
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
                    self._braced_block(condition_block)
            self._put(" then ")
            self._braced_block(arm.body)
        self._put(" else " if arms else "do ")
        self._braced_block(orelse)

    def _write_initial_values(self, parameters: Sequence[Var], initial: Sequence[Atom]) -> None:
        # The initial values belong to the outside, so they are named before the parameters.
        values = [self._atom(a) for a in initial]
        pairs = zip(parameters, values, strict=True)
        self._put("(", ", ".join(f"{self._variable(p)} = {value}" for p, value in pairs), ") ")

    def _variable_list(self, variables: Iterable[Var]) -> str:
        return ", ".join(map(self._variable, variables))

    def _variable(self, var: Var) -> str:
        """A variable where it is bound."""
        return f"%{self._names.name_of(var)}" + ("" if var.type is None else f": {self._type(var.type)}")

    def _parameter(self, var: Var, parameter: Parameter) -> str:
        kind = "" if parameter.kind == "positional_or_keyword" else f"{parameter.kind} "
        kind += "static " * parameter.static + "given_back " * parameter.given_back
        default = "" if parameter.default is None else f" = {self._atom(parameter.default)}"
        word = self._variable(var)
        if self._open is not None and self._names.name_of(var) != var.name:  # callers may give its name
            default = f" named {quote_text(var.name)}{default}"
        return kind + word + default

    # ---- atoms

    def _atoms(self, atoms: Iterable[Atom]) -> str:
        return ", ".join(map(self._atom, atoms))

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Var():
                return f"%{self._names.name_of(atom)}"
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


def grad_options(grad: Grad) -> str:
    """The options of `grad` that are not the default."""
    options = []
    if grad.wrt is not None:
        options.append(f"wrt={show_attribute(grad.wrt)}")
    if grad.output is not None:
        options.append(f"output={grad.output}")
    if grad.keeping:
        options.append(f"keeping={show_attribute(grad.keeping)}")
    options += [name for name in ("seedable", "with_value", "has_aux") if getattr(grad, name)]
    if grad.memory != "store":
        options.append(f"memory={show_attribute(grad.memory)}")
    return f"{{{', '.join(options)}}}" if options else ""
