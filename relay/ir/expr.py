"""The intermediate representation: every node of typed programs and of the core.

A program is in A-normal form. A block is a flat sequence of bindings and a terminator; operands are atoms. Variables
have identity and are bound once per module; names are for printing. Nodes are immutable and compare by identity.

    atom  a ::= v | constant | global
    expr  e ::= a | op(a, ..){attributes} | a(a, ..) | (a, ..) | a.i | fn(v, ..) block
              | if block then block elif .. else block | match a { C(v, ..) -> block, .. }
              | loop L (v = a, ..) [for v < a] block | ref a | read a | write a a | assert a "text"
              | print ("text", a, ..) | attempt | unprotect a | catches a "names" | rethrow a | C(a, ..)
              | grad{options} a | stack | push a a | get a a | len a | extent d
              | dim k = a | size a i | ascribe a | breakpoint
    block b ::= (v, ..) = e; ..; (yield a, .. | next L a, .. | exit L a, .. | dead)

*Results.* An `If`, `Match` or `Loop` binds any number of targets at once; an effect (write, assert) binds none; every
other expression binds one.

*Leaving.* `Yield` gives an arm's values to the targets of the `If` or `Match` around it. `Next(L, values)` starts the
next round of loop L; `Exit(L, values)` leaves the loop or function L with its results; both may stand several
constructs inside. `Dead` ends a block whose last expression never yields. A function has exactly one result value.

*Loops.* Without a counter a loop runs until an `Exit`. With `Counter(index, count)` the index runs from 0 to count - 1
(both int32 or int64); when it reaches count the loop's results are its current parameters, and `Next` omits the index.

*Sizes.* `BindDim` makes a dim from a run-time number; the rest of its block may mention it in types and attributes.
Types of what leaves the block say `Any` there, and `Ascribe` goes from one to the other. A function may mention dims
that its callers have bound: they are implicit parameters of it.

*Stages.* The surface IR, which the front end makes, has no types and also holds the nodes of `relay.ir.surface`; the
typed IR has a type on every variable and none of these; in the core there are no `Lambda`, `Grad` and `Breakpoint` any
more, and all calls go to module functions; in the structured core nothing catches errors any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from relay.errors import InternalError, Span
from relay.ir.analysis.module_text import module_text
from relay.ir.dims import DataDependentDim, Dim
from relay.ir.node import node
from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import AttributeValue as AttributeValue
from relay.ir.types import BaseType, DataDefinition, FunctionType, TensorType, Type, base_of_dtype, scalar

if TYPE_CHECKING:
    from relay.ir.surface import SurfaceExpr

# ---- atoms


@attrs.define(slots=True, eq=False)
class Var:
    """A variable. `type` is None in the surface IR unless annotated; the type checker assigns it."""

    name: str
    type: Type | None = None
    span: Span | None = None

    def __repr__(self) -> str:
        return f"%{self.name}"


@node
class Constant:
    """A value known at compile time. The array is never written to."""

    value: np.ndarray
    span: Span | None = None

    @property
    def type(self) -> TensorType:
        base = base_of_dtype(self.value.dtype)
        if base is None:
            raise InternalError(f"a constant of dtype {self.value.dtype}")
        return TensorType(base, self.value.shape)


@node
class Global:
    """A function of the module (or, in the surface IR, a name of the Python module) by its name."""

    name: str
    type: Type | None = None
    span: Span | None = None


@node
class Static:
    """surface: a Python value that is not a tensor yet: a literal number, string, None, or any captured object."""

    value: object
    span: Span | None = None


Atom: TypeAlias = Var | Constant | Global | Static


# ---- expressions


@node
class OpCall:
    """A registered operator applied. Variadic operands are spread."""

    operator: str
    arguments: tuple[Atom, ...]
    attributes: Mapping[str, AttributeValue] = attrs.field(factory=dict)
    span: Span | None = None


@node
class Call:
    """A function applied."""

    function: Atom
    arguments: tuple[Atom, ...]
    span: Span | None = None


@node
class MakeTuple:
    """A tuple."""

    items: tuple[Atom, ...]
    span: Span | None = None


@node
class Project:
    """One component of a tuple; the index counts from 0."""

    value: Atom
    index: int
    span: Span | None = None


@node
class Arm:
    """A condition, whose block yields one bool, and what happens if it holds. The first arm that holds is taken."""

    condition: Block
    body: Block


@node(targets=None)
class If:
    """A chain of conditions. An `elif` is a further arm, so it does not nest."""

    arms: tuple[Arm, ...]
    orelse: Block
    span: Span | None = None


@node
class MatchArm:
    """One constructor, by its name, with a variable for each field."""

    constructor: str
    fields: tuple[Var, ...]
    body: Block


@node(targets=None)
class Match:
    """Case distinction over a data type: one arm for each constructor."""

    value: Atom
    arms: tuple[MatchArm, ...]
    span: Span | None = None


@attrs.frozen(eq=False)
class LoopLabel:
    """The identity of a loop or function, for `Next` and `Exit`."""

    name: str


@node
class Counter:
    """The known trip count of a loop: `index` is bound in the body to 0, 1, .., count - 1.

    `axis`: the rounds are the examples along the axis of this name, of which collective operators ask; "" for others.
    `divergence`: what is asked for where rounds take different ways: "select", "partition" or "loop"; "" for what is
    estimated to be fastest.
    """

    index: Var
    count: Atom
    axis: str = ""
    divergence: str = ""


@node(targets=None)
class Loop:
    """A loop over its parameters. See the module's text for how it ends."""

    label: LoopLabel
    parameters: tuple[Var, ...]
    initial: tuple[Atom, ...]
    body: Block
    counter: Counter | None = None
    span: Span | None = None


@node
class Lambda:
    """A function value, in the block that it captures variables of. Consecutive bindings of lambdas see each other."""

    function: Function
    span: Span | None = None


@node
class Grad:
    """The derivative of a function value, as a function value.

    `wrt` are positions of parameters (None: all that have a gradient); `output` the component of a tuple result,
    `keeping` those components that are also returned; `seedable`: the result takes the incoming cotangent as one more
    argument; `with_value`: the result is (value, gradients); `has_aux`: the function returns a pair of which the first
    is differentiated, and the result is (gradients, second); `memory`: "store", "recompute" or the bytes that tapes may
    have. The result is as `relay.grad` documents.
    """

    function: Atom
    wrt: tuple[int, ...] | None = None
    output: int | None = None
    keeping: tuple[int, ...] = ()
    seedable: bool = False
    with_value: bool = False
    has_aux: bool = False
    memory: str | int = "store"
    span: Span | None = None

    @property
    def options(self) -> tuple[object, ...]:
        """The options that distinguish two derivatives of one function."""
        return (self.wrt, self.output, self.keeping, self.seedable, self.with_value, self.has_aux, self.memory)


@node(notation="ref {value}")
class RefNew:
    """A new cell."""

    value: Atom
    span: Span | None = None


@node(notation="read {reference}")
class RefRead:
    """A cell's content."""

    reference: Atom
    span: Span | None = None


@node(notation="write {reference} {value}", targets=0)
class RefWrite:
    """Replace a cell's content. Binds no target."""

    reference: Atom
    value: Atom
    span: Span | None = None


@node(notation="shadow {reference} {sweep} {initial} {slot}")
class Shadow:
    """The cell that lies behind a reference in one pass over it; a new one with `initial` content, if none does yet.

    Derivatives keep the cotangent of what a reference holds there. `sweep` is a reference too, a new one for each pass;
    `slot` names those passes that never overlap.
    """

    reference: Atom
    sweep: Atom
    initial: Atom
    slot: str
    span: Span | None = None


@node(notation="assert {condition} {message}", targets=0)
class Assert:
    """Stop with an ExecutionError at `span` unless the condition, a rank-0 bool, holds. Binds no target."""

    condition: Atom
    message: str
    span: Span | None = None


@node(targets=0)
class Print:
    """Write pieces[0] values[0] pieces[1] .. to `sys.stdout`, each value in its format. Binds no target.

    `fails`: instead, stop with an ExecutionError of this text at `span`.
    """

    pieces: tuple[str, ...]
    values: tuple[Atom, ...]
    formats: tuple[str, ...]
    span: Span | None = None
    fails: bool = False


@node(notation="attempt", targets=None)
class Attempt:
    """The start of what catches errors: `failed, error, text = attempt`, then an `If` on `failed` in the same block.

    `failed` is False at first. An error of an `Assert`, or of a `Print` that fails, in the else of that If or in what
    it calls, leads back to here, with True; `error` is then the error, which only `CatchesError` and `Rethrow` read,
    and `text` its text as code points.
    """

    span: Span | None = None


@node(notation="unprotect {failed}", targets=0)
class EndAttempt:
    """The end of what an `Attempt` catches: errors from here on, in the same else, lead to those around it."""

    failed: Atom
    span: Span | None = None


@node(notation="catches {error} {classes}")
class CatchesError:
    """True if the error of an `Attempt` is of one of these classes, by their names, or derived from it; a bool."""

    error: Atom
    classes: str
    span: Span | None = None


@node(notation="rethrow {error}", targets=0)
class Rethrow:
    """Let the error of an `Attempt` go on to what is around it, or end the program. Binds no target."""

    error: Atom
    span: Span | None = None


@node(notation="breakpoint", targets=0)
class Breakpoint:
    """Let a debugger stop here; whatever else runs the program goes on. Binds no target."""

    span: Span | None = None


@node
class Construct:
    """A value of a data type."""

    definition: DataDefinition
    constructor: str
    arguments: tuple[Atom, ...]
    span: Span | None = None


@node(notation="stack[{element}]")
class StackNew:
    """An empty stack. An allocation: two of them are never merged."""

    element: Type
    span: Span | None = None


@node(notation="push {stack} {value}")
class StackPush:
    """The stack with one more element at its end. The old stack stays valid."""

    stack: Atom
    value: Atom
    span: Span | None = None


@node(notation="set {stack} {index} {value}")
class StackSet:
    """The stack with another element at an index from 0 (int32 or int64). The old stack stays valid."""

    stack: Atom
    index: Atom
    value: Atom
    span: Span | None = None


@node(notation="prefix {stack} {length}")
class StackPrefix:
    """The first elements of a stack, as many as `length` says (int64). The old stack stays valid."""

    stack: Atom
    length: Atom
    span: Span | None = None


@node(notation="get {stack} {index}")
class StackGet:
    """The element at an index from 0 (int32 or int64)."""

    stack: Atom
    index: Atom
    span: Span | None = None


@node(notation="len {stack}")
class StackLength:
    """The number of elements, int64."""

    stack: Atom
    span: Span | None = None


@node(notation="extent[{dim}, {base}]")
class Extent:
    """The number that a dim is at run time, as an integer scalar of the base type."""

    dim: Dim
    base: BaseType
    span: Span | None = None

    @property
    def type(self) -> TensorType:
        return scalar(self.base)


@node(notation="dim {dim} = {size}", targets=0)
class BindDim:
    """Let a dim be this number, a rank-0 int64, in the rest of the block. Stop with an ExecutionError at `span` if it
    is not a size. Binds no target."""

    dim: DataDependentDim
    size: Atom
    span: Span | None = None


@node(notation="size {value} {axis}")
class AxisSize:
    """The extent of an axis of a tensor, int64."""

    value: Atom
    axis: int
    span: Span | None = None


@node(notation="ascribe {value}")
class Ascribe:
    """The same tensor at the type of the target, which has other dims for extents that are known to be the same: `Any`
    where dims are out of scope, or dims that have been made for what was `Any`."""

    value: Atom
    span: Span | None = None


Expr: TypeAlias = (
    "Atom | OpCall | Call | MakeTuple | Project | If | Match | Loop | Lambda | Grad | RefNew | RefRead | RefWrite | "
    "Shadow | Assert | Print | Attempt | EndAttempt | CatchesError | Rethrow | Breakpoint | Construct | StackNew | "
    "StackPush | StackSet | StackPrefix | StackGet | StackLength | Extent | BindDim | AxisSize | Ascribe | SurfaceExpr"
)


# ---- blocks


@node
class Binding:
    """targets = value"""

    targets: tuple[Var, ...]
    value: Expr


@node
class Yield:
    """Give values to the targets of the enclosing If or Match (or the condition of an arm)."""

    values: tuple[Atom, ...]
    span: Span | None = None


@node
class Next:
    """Start the next round of a loop with these parameters."""

    label: LoopLabel
    values: tuple[Atom, ...]
    span: Span | None = None


@node
class Exit:
    """Leave a loop with these results, or return from a function with one."""

    label: LoopLabel
    values: tuple[Atom, ...]
    span: Span | None = None


@node
class Dead:
    """Never reached: the last expression leaves on every path."""


Terminator: TypeAlias = Yield | Next | Exit | Dead


@node
class Block:
    """Bindings in order, then how the block ends."""

    bindings: tuple[Binding, ...]
    terminator: Terminator


@node
class Parameter:
    """surface: what a Python parameter says beside its variable. `kind` is as in inspect.Parameter: "positional_only",
    "positional_or_keyword", "var_positional" (`*args`, a tuple), "keyword_only" or "var_keyword" (`**kwargs`, a dict).
    The argument of a static one is a Python value that specializes. Those that are `given_back`, with the changes that
    the function makes in them, are in its result: a tuple of what it returns and these. One of examples is a list whose
    elements are taken one by one, so that its length and their sizes need not be known."""

    kind: str = "positional_or_keyword"
    default: Atom | None = None
    static: bool = False
    given_back: bool = False
    of_examples: bool = False


@node
class Recompute:
    """A rule for the derivative of a function: the backward part computes the function again, instead of reading what
    the forward part has stored."""


@node
class PrintErased:
    """A function that is a second computation of something: nothing is printed while it is run, or differentiated."""


@node
class CustomGradient:
    """A rule for the derivative of a function: functions of the module that are called instead of differentiating it.

    `backward` takes (saved, cotangent of the result) and returns the cotangents of the parameters, bare for one.
    `forward` takes the parameters and returns (result, saved); without it `saved` is the tuple of the parameters.

    With a `depth` the rule is about the result's first component, or the first component of that, and so on: what else
    there is depends on what references hold, and not on the parameters' own values.
    """

    backward: str
    forward: str | None = None
    depth: int = 0


Rule: TypeAlias = Recompute | PrintErased | CustomGradient


@node
class Function:
    """A function. `signature` and a parameter's annotation belong to the surface; `result` is the declared or found
    type; `rule` says how its calls are differentiated, and keeps them from being inlined before that."""

    name: str
    parameters: tuple[Var, ...]
    body: Block
    label: LoopLabel
    result: Type | None = None
    signature: tuple[Parameter, ...] = ()
    documentation: str | None = None
    span: Span | None = None
    rule: Rule | None = None

    @property
    def rule_functions(self) -> tuple[str, ...]:
        """The functions of the module that the rule names."""
        if not isinstance(self.rule, CustomGradient):
            return ()
        return (self.rule.backward,) if self.rule.forward is None else (self.rule.backward, self.rule.forward)

    @property
    def type(self) -> FunctionType:
        """The type of a typed function. Raises InternalError in the surface IR."""
        if self.result is None or any(p.type is None for p in self.parameters):
            raise InternalError(f"function {self.name} has no type yet")
        return FunctionType(tuple(p.type for p in self.parameters if p.type is not None), self.result)


@node
class Derivative:
    """core: a module function that is still to be derived from another one, `of` (which may itself be a Derivative).

    Its parameters are all those of `of`, in their order (the ordinary ones, then the captured ones), then the incoming
    cotangent if `grad.seedable`. `grad.wrt` is always given, as positions among the parameters of `of`; a position
    whose
    type has no gradient gives unit. The result is laid out as `Grad` with these options says: one gradient for each
    position, then the kept components, flat, bare if there is one gradient and nothing kept; `(value, that)` with
    `grad.with_value`. `type` is the whole type; `grad.function` is `Global(of)`.
    """

    name: str
    of: str
    type: FunctionType
    grad: Grad
    span: Span | None = None


@node
class Module:
    """Functions by name, in the order of definition, and the one that a call enters.

    *Symbolic dims.* A dim of a typed module may be symbolic: a variable that is the extent of an axis of one of the
    entry's arguments (see `relay.ir.sizes.extents`), or arithmetic of such variables. They are constants of one call,
    so every type and attribute of the module may mention them, and nobody passes them. `where` is what the module
    assumes of them, and whoever enters it has to check.
    """

    functions: Mapping[str, Function | Derivative]
    entry: str
    data: tuple[DataDefinition, ...] = ()
    where: tuple[DimConstraint, ...] = ()

    @property
    def main(self) -> Function:
        """The function that a call enters. Raises InternalError if it is still to be derived."""
        function = self.functions[self.entry]
        if not isinstance(function, Function):
            raise InternalError(f"{self.entry} has not been derived yet")
        return function

    def alpha_hash(self) -> str:
        """The same for modules that are equal up to names, comments and order, in every process; see
        `relay.ir.alpha_hash`."""
        from relay.ir.analysis.alpha import alpha_hash  # which knows every node, so it comes after this module

        return alpha_hash(self)

    def __str__(self) -> str:
        """The program's text, as `relay.to_text` prints it."""
        return module_text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # at IPython's prompt
