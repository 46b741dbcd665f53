"""The lowering context of one function: the current block, and the meaning of each name in it.

Variables are renamed at each assignment. An `Environment` maps names to the `Var` that holds their value now; the
arms of an `if` and the bodies of loops have environments of their own, which hold only what they change, and `join`
brings them together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import attrs

from relay.errors import FrontendError, InternalError, Label, RelayError, Span
from relay.frontend.analysis.liveness import Liveness
from relay.frontend.analysis.names import (
    Names,
    appended_tuples,
    assigned_names,
    changed_sets,
    local_names,
    nonlocal_names,
    parameters_in_order,
)
from relay.frontend.source import FunctionNode, SourceFile
from relay.ir.builder import BlockBuilder
from relay.ir.definition import Scope
from relay.ir.expr import (
    Assert,
    Atom,
    Expr,
    Global,
    If,
    Lambda,
    LoopLabel,
    MakeTuple,
    OpCall,
    RefNew,
    RefRead,
    RefWrite,
    Static,
    Var,
    Yield,
)
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Annotated, Apply, Index, Unpack
from relay.ir.types import Type, TypeId

REFERENCE_HELP = "make it a reference: `{0} = relay.ref(..)`, then read and assign `{0}.value`"


@attrs.frozen(eq=False)
class Unassigned:
    """The state of a name that has a value on some paths only (with the reason), or that is not read any more."""

    message: str
    labels: tuple[Label, ...] = ()
    help: str | None = None


UNREAD = Unassigned("")
"""A name whose value was not joined, because the liveness analysis found no read of it."""

State = Var | Unassigned


class Environment:
    """The names that a block has changed, in front of what its surroundings know."""

    def __init__(self, parent: Environment | None = None) -> None:
        self.parent = parent
        self.states: dict[str, State] = {}
        self.captured: dict[str, Span] = {}
        self.own: frozenset[str] = frozenset()  # names of a comprehension, which hide those around it

    def lookup(self, name: str) -> State | None:
        """The meaning of a name here; None if no path has assigned it."""
        environment: Environment | None = self
        while environment is not None:
            if name in environment.states:
                return environment.states[name]
            environment = environment.parent
        return None

    def give_up(self, name: str, span: Span) -> None:
        """Let a name without a value have one from now on: its absence is reported once."""
        environment = self
        while name not in environment.states and environment.parent is not None:
            environment = environment.parent
        environment.states[name] = Var(name, None, span)

    def capture_of(self, name: str) -> Span | None:
        """The place where a function was made that captured the name, on a path to here."""
        environment: Environment | None = self
        while environment is not None:
            if name in environment.captured:
                return environment.captured[name]
            if name in environment.own:
                return None
            environment = environment.parent
        return None


class SurfaceBlock(BlockBuilder):
    """A block that is being written, with the names that it knows."""

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self.environment = environment
        self.last_span: Span | None = None


@attrs.frozen(eq=False)
class Capture:
    """A variable of `owner` that a nested function refers to, and where."""

    owner: Context
    name: str
    span: Span


def distinct_captures(captures: Iterable[Capture]) -> tuple[Capture, ...]:
    """Captures, each variable once: functions that capture each other's callers would have it once for each way."""
    found: dict[tuple[int, str], Capture] = {}
    for capture in captures:
        found.setdefault((id(capture.owner), capture.name), capture)
    return tuple(found.values())


@attrs.define(eq=False)
class LoopFrame:
    """A loop whose body is being written: what `break` and `continue` need."""

    label: LoopLabel
    span: Span
    parameters: dict[str, Var]
    results: tuple[str, ...]  # the names that an Exit gives
    assigned: Names
    carried: frozenset[str]  # the names that a further round may read
    outside: frozenset[str]  # the variables whose cells are older than the loop
    left: LoopFrame | None = None  # what `break` leaves, if it is not this loop
    exits: int = 0
    captured: dict[str, Span] = attrs.field(factory=dict)
    held: dict[str, tuple[Capture, ...]] = attrs.field(factory=dict)  # by what its values carry along


class Translator(Protocol):
    """The two functions that translate syntax; they call each other through the context."""

    def expression(self, context: Context, node: ast.expr) -> Expr: ...

    def statements(self, context: Context, statements: Sequence[ast.stmt]) -> None: ...


class Context:
    """The translation of one function."""

    def __init__(
        self,
        file: SourceFile,
        scope: Scope,
        node: FunctionNode,
        name: str,
        translator: Translator,
        parent: Context | None,
        gives_back: Sequence[str] = (),
    ) -> None:
        self.file = file
        self.scope = scope
        self.node = node
        self.name = name
        self.translator = translator
        self.parent = parent
        self.label = LoopLabel(name)
        self.locals = local_names(node)
        self.outer_names = nonlocal_names(node)
        self.found_cells: dict[ast.AST, set[str]] = {} if parent is None else parent.found_cells
        self.cells = set(self.found_cells.get(node, ()))  # the variables that are kept in references
        self.found_lists: dict[ast.AST, set[str]] = {} if parent is None else parent.found_lists
        self.lists = set(self.found_lists.get(node, ()))  # those of them whose lists change their lengths
        self.found_early: dict[ast.AST, set[str]] = {} if parent is None else parent.found_early
        self.changed_fields: set[str] = set()  # variables to whose fields the function assigns
        self.unsure: set[Var] = set()  # variables of loops that assign them first, which may have no value
        self.sizes: dict[str, TypeId] = {}  # those that annotations in jaxtyping's notation name
        self.doubtful: set[str] = set()  # variables that may have no value after an error
        self.early: dict[str, Var] = {}  # the cells that are made before their variables have values
        self.gives_back = tuple(gives_back)  # the parameters that a call gets back, with their changes
        self.liveness = Liveness(node.body if isinstance(node, ast.FunctionDef) else [], self.gives_back)
        self.block = SurfaceBlock(Environment())
        self.loops: list[LoopFrame] = []
        self.finals: list[Any] = []  # what `return`, `break` and `continue` run before they leave
        self.caught: list[Any] = []  # the errors of the handlers around
        self.attempts = 0  # the number of `try`s around
        self.captures: list[Capture] = []  # of variables around this function
        self.holds: dict[Var, tuple[Capture, ...]] = {} if parent is None else parent.holds
        self.captures_of: dict[LoopLabel, tuple[Capture, ...]] = {} if parent is None else parent.captures_of
        self.errors: list[RelayError] = [] if parent is None else parent.errors
        self.updated: set[Var] = set() if parent is None else parent.updated  # what Python changes in place
        self.incomplete = False  # a mistake has left statements of this function out
        self.changed_sets: set[int] = changed_sets(node) if parent is None else parent.changed_sets
        self.appended_tuples = appended_tuples(node.body) if isinstance(node, ast.FunctionDef) else {}
        self.changed_parameters: dict[str, Span] = {}  # whose items or length the function changes, and where first
        self.changes: Mapping[int, tuple[int, ...] | None] = {}  # the parameters that change: see Definition
        self.lost: list[RelayError] = []  # of changes that Python, as the caller, does not see
        self.result: Type | None = None  # the annotation of the result, beside which parameters are given back
        self.valued_return: Span | None = None
        self.bare_return: Span | None = None

    def restarted_context(self, gives_back: Sequence[str] | None = None) -> Context:
        """The same function at the start of its translation, with the cells that were found."""
        back = self.gives_back if gives_back is None else gives_back
        context = Context(self.file, self.scope, self.node, self.name, self.translator, None, back)
        context.changes = self.changes
        context.found_cells, context.found_lists = self.found_cells, self.found_lists
        context.found_early = self.found_early
        context.cells = set(self.found_cells.get(self.node, ()))
        context.lists = set(self.found_lists.get(self.node, ()))
        return context

    @property
    def discoveries(self) -> int:
        """The number of facts that only a new translation can take into account."""
        found = (self.found_cells, self.found_lists, self.found_early)
        return sum(len(names) for by_node in found for names in by_node.values())

    # ---- syntax

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Span:
        """The stretch of a node."""
        return self.file.span(node)

    def expression(self, node: ast.expr) -> Expr:
        """Translate an expression; what it needs is bound before."""
        return self.translator.expression(self, node)

    def atom(self, node: ast.expr) -> Atom:
        """Translate an expression and bind it to a temporary, if it is not an atom."""
        value = self.expression(node)
        return value if isinstance(value, Atom) else self.bind(value, temporary_name(node), self.span(node))

    def statements(self, statements: Sequence[ast.stmt]) -> None:
        """Translate statements into the current block."""
        self.translator.statements(self, statements)

    def recover(self, error: RelayError, statements: Sequence[ast.stmt], loops: int) -> None:
        """Note a mistake in statements and go on after them: what they assign has some unknown value.

        `loops` is how many loops were around the statements.
        """
        self.errors.append(error)
        self.incomplete = True
        del self.loops[loops:]
        span = self.file.keyword_span(statements[0])
        for name in assigned_names(statements):
            if name in self.locals:
                self.block.environment.states[name] = Var(name, None, span)

    # ---- blocks and bindings

    @contextmanager
    def new_block(self) -> Iterator[SurfaceBlock]:
        """Write a block inside of the current one."""
        outer = self.block
        self.block = SurfaceBlock(Environment(outer.environment))
        try:
            yield self.block
        finally:
            self.block = outer

    def emit(self, targets: tuple[Var, ...], value: Expr) -> None:
        """Append a binding."""
        self.block.emit(targets, value)
        held = self._held_captures(value)
        if held:
            for target in targets:
                self.holds[target] = held

    def bind(self, value: Expr, name: str, span: Span | None) -> Var:
        """Append a binding of one new variable."""
        var = Var(name, None, span)
        self.emit((var,), value)
        return var

    def _held_captures(self, value: Expr) -> tuple[Capture, ...]:
        """The variables that the functions in a value refer to, as far as it is visible without types."""
        match value:
            case Lambda(function):
                return self.captures_of.get(function.label, ())
            case Var():
                return self.holds.get(value, ())
            case MakeTuple(items) | OpCall(_, items) | Apply(Static(Intrinsic()), items):
                return distinct_captures(c for v in items if isinstance(v, Var) for c in self.holds.get(v, ()))
            case If(arms, orelse):
                ends = [block.terminator for block in (*(arm.body for arm in arms), orelse)]
                yielded = [v for end in ends if isinstance(end, Yield) for v in end.values]
                return distinct_captures(c for v in yielded if isinstance(v, Var) for c in self.holds.get(v, ()))
            case Annotated(Var() as whole, _) | Unpack(Var() as whole, _) | Index(Var() as whole, _):
                return self.holds.get(whole, ())
            case _:
                return ()

    # ---- names

    def assign(self, name: str, value: Expr, span: Span) -> Var:
        """Give a local name a new value, or one that `nonlocal` names."""
        var = Var(name, None, span)
        self.emit((var,), value)
        self.rename(name, var, span)
        return var

    def rename(self, name: str, var: Var, span: Span) -> None:
        """Let a name mean a variable that is bound already.

        A name that a function has captured must be kept in a cell. That is found out here, and then everything is
        translated once more.
        """
        if name in self.outer_names:
            owner = self.owner(name)
            if owner is None:
                message = f"`{name}` is not a variable of a function around this one"
                raise FrontendError(message, span, help="remove `nonlocal`")
            self._write(owner, name, var, span)
        elif name in self.cells:
            self._write(self, name, var, span)
        else:
            if self.block.environment.capture_of(name) is not None:
                self.need_cell(name)
            self.block.environment.states[name] = var

    def need_cell(self, name: str) -> None:
        """Note that a variable of this function has to be kept in a reference."""
        self.found_cells.setdefault(self.node, set()).add(name)

    def need_early_cell(self, name: str, maker: ast.AST | None = None) -> None:
        """Note that the cell of a variable of this function, or of a comprehension, is older than its first value."""
        self.found_early.setdefault(self.node if maker is None else maker, set()).add(name)

    def make_early_cells(self, maker: ast.AST, span: Span) -> set[str]:
        """Make the cells that are older than their variables' values, and return their names.

        Such a cell holds a list: it is empty before the first assignment, and has one element afterwards.
        """
        names = sorted(self.found_early.get(maker, ()))
        for name in names:
            empty = self.bind(Apply(Static(Intrinsic("unset"), span), (), (), span), name, span)
            self.early[name] = self.bind(RefNew(empty, span), name, span)
            self.cells.add(name)
        return set(names)

    def outlives(self, value: Atom) -> None:
        """Note that a value may be used in later rounds of the loops around: its functions see their new variables."""
        for capture in self.holds.get(value, ()) if isinstance(value, Var) else ():
            if capture.owner is not self or capture.name in self.early:
                continue
            for frame in self.loops:
                if capture.name in frame.assigned and capture.name not in frame.outside:
                    self.need_cell(capture.name)
                    if capture.name in self.cells:
                        self.need_early_cell(capture.name)

    def change_list(self, name: str) -> None:
        """Note that a list gets another length. One of a function around this one has to be kept in a reference."""
        owner = self.owner(name)
        if owner is None:
            return
        if owner is not self:
            self.change_outer(name)
        if owner is not self or name in self.cells:
            owner.found_lists.setdefault(owner.node, set()).add(name)

    def change_outer(self, name: str) -> None:
        """Note that a function changes a variable of one around it, which has to be kept in a reference."""
        owner = self.owner(name)
        if owner is not None and owner is not self:
            owner.need_cell(name)
            self.outer_names = self.outer_names | {name}

    def is_changed_inside(self, name: str) -> bool:
        """True if a variable is a list that is kept in a reference, since a function changes its length."""
        owner = self.owner(name)
        return owner is not None and name in owner.found_lists.get(owner.node, ())

    def change_parameter(self, name: str, span: Span) -> None:
        """Note that the function changes an item or the length of an argument, if the name is a parameter's."""
        if any(a.arg == name for a in parameters_in_order(self.node.args)):
            self.changed_parameters.setdefault(name, span)

    def _write(self, owner: Context, name: str, var: Var, span: Span) -> None:
        """Assign a variable that is kept in a cell; the first assignment makes the cell."""
        state = owner.block.environment.lookup(name)
        if name in owner.early:
            if name in owner.lists:
                var = self.bind(Apply(Static(Intrinsic("growing"), span), (var,), (), span), name, span)
            one = self.bind(Apply(Static(Intrinsic("list"), span), (var,), (), span), name, span)
            content = self.bind(Apply(Static(Intrinsic("growing"), span), (one,), (), span), name, span)
            self.emit((), RefWrite(owner.early[name], content, span))
            if owner is self:
                self.block.environment.states[name] = owner.early[name]
            return
        if isinstance(state, Var):
            self.emit((), RefWrite(state, var, span))
            return
        if owner is not self:
            owner.need_cell(name)
            owner.need_early_cell(name)
            return
        capture = self.block.environment.capture_of(name)
        if capture is not None:
            self.need_early_cell(name)
        cell = Var(name, None, span)
        if name in self.lists:
            var = self.bind(Apply(Static(Intrinsic("growing"), span), (var,), (), span), name, span)
        self.emit((cell,), RefNew(var, span))
        self.block.environment.states[name] = cell

    def owner(self, name: str) -> Context | None:
        """The function whose local variable a name is; None for a global one."""
        owner: Context | None = self
        while owner is not None and name not in owner.locals:
            owner = owner.parent
        return owner

    def reassigned_names(self, names: Names) -> Names:
        """The names assigned by a loop that stand for another variable afterwards: not those in cells."""
        lookup = self.block.environment.lookup
        return {
            name: None
            for name in names
            if name in self.locals and not (name in self.cells and isinstance(lookup(name), Var))
        }

    def read(self, name: str, span: Span) -> Atom:
        """The value of a name. Raises FrontendError if it has none on some path to here."""
        owner: Context | None = self
        inside: list[Context] = []
        while owner is not None and name not in owner.locals:
            inside.append(owner)
            owner = owner.parent
        if owner is None:
            return Global(name, None, span)
        state = owner.block.environment.lookup(name)
        if isinstance(state, Var):
            if inside:
                capture = Capture(owner, name, span)
                owner.block.environment.captured.setdefault(name, span)
                for context in inside:
                    context.captures.append(capture)
                    context.captures += owner.holds.get(state, ())
            if name in owner.early:
                return self._read_early(state, name, span, may_be_empty=name in owner.doubtful)
            if name in owner.cells:
                return self.bind(RefRead(state, span), name, span)
            if state in owner.unsure:
                return self.bind(Apply(Static(Intrinsic("assigned"), span), (state,), (), span), name, span)
            return state
        if state is UNREAD:
            raise InternalError(f"`{name}` is read at {span}, which the liveness analysis did not see")
        if inside and name in owner.early:
            capture = Capture(owner, name, span)
            owner.block.environment.captured.setdefault(name, span)
            for context in inside:
                context.captures.append(capture)
            return self._read_early(owner.early[name], name, span, may_be_empty=True)
        if inside and state is None:
            owner.need_cell(name)
            owner.need_early_cell(name)
        owner.block.environment.give_up(name, span)
        if isinstance(state, Unassigned):
            raise FrontendError(state.message, span, labels=state.labels, help=state.help)
        if inside:
            return Var(name, None, span)  # of this translation nothing is kept
        outside = self.parent is not None and self.parent.defines(name)
        raise FrontendError(
            f"`{name}` has no value here: the function assigns it, so it is a local variable, but not before this line",
            span,
            help=REFERENCE_HELP.format(name) if outside else f"give `{name}` a value first, or use another name",
        )

    def _read_early(self, cell: Var, name: str, span: Span, *, may_be_empty: bool = False) -> Atom:
        """The value in a cell that is older than its variable's first value."""
        content = self.bind(RefRead(cell, span), name, span)
        if may_be_empty:
            self.emit((), Assert(content, f"`{name}` has no value yet", span))
        return self.bind(Index(content, (Static(-1, span),), span), name, span)

    def defines(self, name: str) -> bool:
        """True if a name is local to this function or to one around it."""
        return name in self.locals or (self.parent is not None and self.parent.defines(name))


TEMPORARY_NAMES: dict[type[ast.AST], str] = {
    ast.Add: "sum",
    ast.Sub: "difference",
    ast.Mult: "product",
    ast.Div: "quotient",
    ast.FloorDiv: "quotient",
    ast.Mod: "remainder",
    ast.Pow: "power",
    ast.MatMult: "product",
    ast.USub: "negative",
    ast.Not: "condition",
    ast.Compare: "condition",
    ast.BoolOp: "condition",
    ast.Tuple: "items",
    ast.List: "items",
    ast.Lambda: "function",
    ast.IfExp: "chosen",
}


def temporary_name(node: ast.expr) -> str:
    """The name of a temporary for an expression."""
    match node:
        case ast.BinOp(op=op) | ast.UnaryOp(op=op):
            return TEMPORARY_NAMES.get(type(op), "value")
        case ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return f"{name}_result"
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return f"{name}_item"
        case _:
            return TEMPORARY_NAMES.get(type(node), "value")
