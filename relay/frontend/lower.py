"""Lowering of one Python function to the surface IR. Read this first: it defines the translation of every construct.

Entry points: `lower_function(python_function) -> Definition`, `lower_text(text, filename, globals) -> {name:
Definition}`. They run nothing of the user's and look up no global name of a function's body; only names in
annotations are resolved now.

*Names.* A name that the function assigns anywhere (or has as parameter) is local, as in Python. One that an enclosing
function assigns is captured: the reference is the enclosing function's `Var` itself, with its value at the `def` or
`lambda`. Every other name is `Global(name)`, also `range` and `relay`; the checker resolves it in `Definition.scope`,
late. In `lower_text`, the names of sibling functions resolve to their `Definition`.

*Variables.* Each assignment makes a new `Var` with the user's name, whose span is that of the target name. `y = e`
binds y directly to e's expression; `y = x` is an alias binding `y = %x`; `y = 3` is `y = Static(3)` (so that a name
of a literal can be generalized). Temporaries carry a short name of what they hold ("sum", "product", "condition").

*Atoms.* Numbers: Static(int or float), a sign is folded in (`-3` is Static(-3)). True, False: Constant of dtype bool.
Strings, None, `...`: Static. `return None`, `return` and the end of a function without values: Static(None).

*Expressions.*
    a + b                 OpCall("add", (a, b)); subtract multiply divide floor_divide mod power matmul left_shift
                          right_shift bitwise_and bitwise_or bitwise_xor; equal not_equal less less_equal greater
                          greater_equal
    -a, ~a, not a, +a     OpCall("negative" | "bitwise_not" | "logical_not", (a,)); `+a` is a
    a and b, a or b       If: arm a {yield b}, else {yield a}; arm a {yield a}, else {yield b}. In a condition, where
                          only the truth matters, False and True stand for a. More operands nest to the right, more
                          than eight in halves. In a condition, and where all are comparisons, three and more are one
                          flat If: `or` has an arm {yield True} for each but the last; `and` has for each but the last
                          an arm whose condition is logical_not of the operand, {yield False}; the last is the else.
    a < b < c             If: arm (a < b) {yield b < c}, else {yield False}, nested further to the right
    a if c else b         If with one arm and one target; a chain in the else becomes further arms
    f(a, k=b)             Apply(f, (a,), (("k", b),)); the function first, then the arguments, from left to right
    relay.tanh(x)         t = Attribute(Global("relay"), "tanh"); Apply(t, (x,)); likewise methods `x.sum()`
    x[i, 1:2, None, ...]  Index(x, (i, Slice(1, 2, None), Static(None), Static(...))); `x[(i, j)]` is `x[i, j]`
    [a, b]                Apply(Static(Intrinsic("list")), (a, b)); relay/ir/intrinsic.py lists all of these: for stars,
                          comprehensions, f-strings, `print`, `is None`. A dict is an Apply of Static(dict)
    (a, b)                MakeTuple. lambda: Lambda binding, function named "lambda"
    (y := e)              binds y

*Statements.*
    a, (b, c) = e         Unpack(e, 2) to two targets, then Unpack again; `a, b = e, f` binds both names directly
    y: T = e              Annotated(atom, T). A parameter's annotation is the type of its Var, the result's is
                          Function.result
    x[i] = v              x' = IndexUpdate(x, (i,), v), for a local x; x[i] += v: Index, OpCall, IndexUpdate.
                          x[i][j] = v updates inside out. r.value[i] = v: Attribute, IndexUpdate, SetAttribute
    r.value = v           Binding((), SetAttribute(r, "value", v)); no other attribute can be assigned. r.value += v
                          reads first
    assert c, "text"      Binding((), Assert(c, text)); without a text: "assertion failed: " and the condition's source
    try, raise            see relay/frontend/errors/
    nonlocal x            see Cells
    f(x)                  binds the Apply to a variable that nobody reads. Other expression statements are errors
    return e              Exit(function.label, (e,)), span of e
    def, f = lambda       Binding((f,), Lambda(..)). A run of consecutive ones is one group, in consecutive bindings:
                          all their variables are visible in all their bodies. Defaults are atoms of the enclosing
                          block, bound before the group
    parameters            Function.signature has one Parameter for each. The default of a decorated function: a
                          literal's atom, otherwise Static(object) with what Python evaluated; in `lower_text` a literal
                          or Global

*If.* The first arm's condition is computed before the If: its condition block is only `yield c`. The condition block
of a further arm has its own bindings, which are visible nowhere else. (An `elif` with a `:=` starts a nested If in
the else.) Targets are the variables that some yielding arm assigns, that all yielding arms bind and that are read
later; their `Var.span` is that of an assignment. If no arm yields, the If has no targets and the block ends in Dead
right after it. Code after it is an error ("never reached"). `Yield.span` is the expression's for a conditional
expression, that of the arm's last statement for a statement.

*match.* PatternMatch(subject, cases); targets as with If. The classes and dotted names of the patterns are computed
before it. The variables of a pattern are bound in its case, one for each name, also if several alternatives bind it; a
guard is a block that yields one bool. A name that a guarded case binds has no value in later cases and after the match,
unless they bind it themselves.

*while.* Loop(label, params, init, body) without counter. Parameters: the variables that the loop assigns, that are
bound before it and read at its head. Results (targets) are others: those that the loop assigns, that are bound at
every exit and read after it, in the order of their first assignment. Body: the condition's bindings, then Binding((),
If((Arm({yield c}, {.. next}),), {else-part; exit})), Dead. `while True` (or a nonzero number) has no If: its body
ends in Next. `break` is Exit(label, results); `continue` is Next(label, params). A loop that no Exit leaves has no
targets; Dead follows it.

*for.* ForEach(label, element, iterable, params, init, body). Results are the parameters, as with counted loops: when
the iterable is exhausted their current values, or those of an Exit (break). Next and Exit of a ForEach carry one
value for each parameter; the element is not among them. Parameters: assigned in the loop, bound before, read at the
head or afterwards. The target name is an ordinary variable bound at the body's start: `for i in ..` has the element
itself for i, `for i, x in ..` starts with an Unpack of it. A variable first assigned in the body has no value after
the loop (it may not run). `for .. else` with a break carries a further, last parameter "broke" of bool (initially
False, True at break), and the else-part is in an If after the loop.

*Spans* are whole-file positions. Function.span is `def name`, Var.span of a parameter its name, If.span, Loop.span and
ForEach.span the header (`while n > 0`, `for x in xs`, `if c`), all others the expression.

*Static.* A parameter whose line ends in the comment `# relay: static` is marked so in Function.signature.

*Cells.* A variable that is assigned after a function has captured it, or that `nonlocal` names, is kept in a reference:
its first assignment is RefNew, each further one RefWrite, each read RefRead; a function captures the reference. Loops
and joins do not carry it. Which variables these are comes out of the translation, which then starts again.

*Early cells.* A function may be made before the variable that it reads has a value, or be carried to a later round of a
loop (seen through names, tuples, lists, joins and references, not through calls), which assigns the variable again.
Then the cell is made where the function (or comprehension) that owns the variable starts. It holds a list that grows:
unset() at first, and one element after an assignment. The states of names on paths stay as they are.
"""

from __future__ import annotations

import ast
import copy
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TypeAlias

from relay.errors import FrontendError, RelayError, Source, bugs_of, combine_errors
from relay.frontend.analysis.local_imports import imported_names
from relay.frontend.analysis.names import read_names
from relay.frontend.analysis.unsupported import refuse_statement
from relay.frontend.annotations import AnnotationReader
from relay.frontend.changes.marked_text import marked
from relay.frontend.context import Context
from relay.frontend.expressions import lower_constant, lower_expression
from relay.frontend.functions import all_defaults, all_parameters, lower_body, type_parameters
from relay.frontend.scope import FunctionScope, NamedScope, ParameterScope, SnapshotScope, TextScope
from relay.frontend.source import FunctionNode, SourceFile, find_function, parse_text
from relay.frontend.statements import lower_statements
from relay.frontend.static.static_functions import SourceFunction
from relay.ir.definition import MISSING, Definition, Scope
from relay.ir.expr import Atom, Expr, Function, Global, Static

Evaluated: TypeAlias = Callable[[], Mapping[str, object]]


class _PythonTranslator:
    """Ties expressions and statements together."""

    def expression(self, context: Context, node: ast.expr) -> Expr:
        return lower_expression(context, node)

    def statements(self, context: Context, statements: Sequence[ast.stmt]) -> None:
        lower_statements(context, statements)


def lower_function(
    python_function: Callable[..., object] | SourceFunction,
    further: Mapping[str, object] | None = None,
    *,
    annotated: bool = True,
    first: object = MISSING,
    shown_as: str | None = None,
) -> Definition:
    """The surface IR of a Python function, from its source. Raises FrontendError for what Relay does not have.

    `further`: what names mean that Python does not know yet. Without `annotated`, only those annotations of the
    signature are read that are applications, as `Tensor[Float, (n,)]`. `first`: what the first parameter is, which is
    then a name of the body only. `shown_as`: the file that its places are reported in, if not its own.
    """
    if isinstance(python_function, SourceFunction):
        file: SourceFile = python_function.file
        node: FunctionNode = python_function.node
    else:
        file, node = find_function(python_function)
    if shown_as is not None:
        file = SourceFile(Source(shown_as, file.source.text), file.tree)
    if not annotated:
        node = _without_names(node)
    scope: Scope
    if isinstance(python_function, SourceFunction):
        scope = python_function.scope
        if python_function.owner is not None:
            scope = ParameterScope({"__class__": python_function.owner}, scope)
    else:
        assert isinstance(python_function, FunctionType)  # or it has no source
        scope = FunctionScope.from_function(python_function)
        further = {**_enclosing_names(python_function, node, scope), **(further or {})}
    if further:
        scope = NamedScope(further, scope)
    if first is not MISSING:
        node, name = _without_first(node)
        scope = ParameterScope({name: first}, scope)
    context = _context(file, scope, node)
    written = all_defaults(node.args)
    if isinstance(python_function, SourceFunction):
        values = [None if d is None else python_function.evaluated(d) for d in written]
    else:
        values = _default_values(python_function, node)
    defaults = [_evaluated_default(context, d, v) for d, v in zip(written, values, strict=True)]
    return _lower(context, context.scope, defaults, lambda: _evaluated_annotations(python_function))


def _without_first(node: FunctionNode) -> tuple[FunctionNode, str]:
    """The function without its first parameter, and the name of that."""
    stripped = copy.copy(node)
    stripped.args = copy.copy(node.args)
    kind = "posonlyargs" if node.args.posonlyargs else "args"
    parameters = getattr(node.args, kind)
    if not parameters:
        return stripped, ""
    setattr(stripped.args, kind, parameters[1:])
    return stripped, parameters[0].arg


def _without_names(node: FunctionNode) -> FunctionNode:
    """The function without those annotations of its signature that are not applications of `Tensor`."""
    stripped = copy.copy(node)
    stripped.args = copy.copy(node.args)

    def read(annotation: ast.expr | None) -> ast.expr | None:
        head = annotation.value if isinstance(annotation, ast.Subscript) else None
        return annotation if getattr(head, "id", getattr(head, "attr", None)) == "Tensor" else None

    for kind in ("posonlyargs", "args", "kwonlyargs"):
        parameters = [copy.copy(a) for a in getattr(node.args, kind)]
        for parameter in parameters:
            parameter.annotation = read(parameter.annotation)
        setattr(stripped.args, kind, parameters)
    if isinstance(stripped, ast.FunctionDef):
        stripped.returns = read(stripped.returns)
    return stripped


def lower_text(text: str, filename: str, globals: Mapping[str, object]) -> dict[str, Definition]:
    """The functions that a text defines, decorated or not. They see each other and the names in `globals`.

    Raises FrontendError for what Relay does not have, and for statements other than `def`.
    """
    file = parse_text(text, filename)
    definitions: dict[str, Definition] = {}
    scope = TextScope(definitions, globals)
    errors: list[RelayError] = []
    for position, statement in enumerate(file.tree.body):
        match statement:
            case ast.FunctionDef(name=name):
                if name in definitions:
                    errors.append(FrontendError(f"`{name}` is defined twice", file.function_span(statement)))
                try:
                    definitions[name] = lower_definition(file, scope, statement)
                except FrontendError as error:
                    errors.append(error)
            case ast.Expr(value=ast.Constant(value=str())) if position == 0:
                pass  # the text's documentation
            case ast.AsyncFunctionDef():
                errors.append(refuse_statement(file, statement))
            case _:
                errors.append(
                    FrontendError(
                        "only functions are allowed at the top of a text",
                        file.keyword_span(statement),
                        help="pass the names that the functions need as `globals`",
                    )
                )
    if errors:
        raise combine_errors(errors)
    return definitions


def lower_definition(
    file: SourceFile, scope: Scope, node: FunctionNode, evaluate: Callable[[ast.expr], object] | None = None
) -> Definition:
    """The surface IR of a function of a text that is only read. Raises FrontendError.

    `evaluate` gives the values of defaults; without it they are literals and names.
    """
    context = _context(file, scope, node)
    written = all_defaults(node.args)
    if evaluate is None:
        defaults = [_written_default(context, d) for d in written]
    else:
        defaults = [_evaluated_default(context, d, None if d is None else evaluate(d)) for d in written]
    return _lower(context, context.scope, defaults, dict)


def _context(file: SourceFile, scope: Scope, node: FunctionNode) -> Context:
    name = node.name if isinstance(node, ast.FunctionDef) else "lambda"
    parameters = type_parameters(file, node)
    for outer in file.generic_around(node):
        further = type_parameters(file, outer)
        parameters = {**{n: p for n, p in further.items() if scope.resolve(n) is MISSING}, **parameters}
    if parameters:
        scope = ParameterScope(parameters, scope)
    if imported := imported_names(node):
        scope = ParameterScope(imported, scope)
    node, changes = marked(file, scope, node)
    context = Context(file, scope, node, name, _PythonTranslator(), None)
    context.changes = changes
    return context


def _lower(context: Context, scope: Scope, defaults: Sequence[Atom | None], evaluated: Evaluated) -> Definition:
    function, context = _translated(context, defaults, evaluated)
    snapshot, updated = SnapshotScope(scope), frozenset(context.updated)
    lost = combine_errors(context.lost) if context.lost else None
    if not context.changes:
        return Definition(function, snapshot, updated=updated, lost=lost)
    changing = functools.cache(lambda: _giving_back(context, snapshot, defaults, evaluated))
    return Definition(function, snapshot, updated=updated, changes=context.changes, changing=changing, lost=lost)


def _giving_back(
    context: Context, scope: SnapshotScope, defaults: Sequence[Atom | None], evaluated: Evaluated
) -> Definition:
    """The function whose result is a tuple of its result and the parameters that it changes, but for those in it."""
    names = [p.arg for p in all_parameters(context.node)]
    context = context.restarted_context([names[p] for p, way in context.changes.items() if way is None])
    function, context = _translated(context, defaults, evaluated)
    return Definition(function, scope, updated=frozenset(context.updated))


def _translated(context: Context, defaults: Sequence[Atom | None], evaluated: Evaluated) -> tuple[Function, Context]:
    """The function of a context, and the context that it was found in. Raises FrontendError."""
    try:
        while True:
            known = context.discoveries
            function = _body(context, defaults, evaluated)
            if context.discoveries == known:
                break
            context = context.restarted_context()  # some variables have to be kept in cells
    except RecursionError:
        raise FrontendError(
            f"`{context.name}` is nested too deeply",
            context.file.function_span(context.node),
            help="give names to parts of the nested expression, or move inner blocks into functions",
        ) from None
    if context.errors or function is None:
        raise combine_errors(context.errors)
    return function, context


def _body(context: Context, defaults: Sequence[Atom | None], evaluated: Evaluated) -> Function | None:
    """The function, or None if its mistakes, which are noted, leave none."""
    try:
        return lower_body(
            context, AnnotationReader(context.file, context.scope, sizes=context.sizes), defaults, evaluated
        )
    except FrontendError as error:
        context.errors.append(error)
    except RecursionError:
        raise
    except Exception:
        if not context.errors:  # otherwise the user's mistakes come first: without them, this may not happen
            with bugs_of("the front end", lambda: context.file.function_span(context.node)):
                raise
    return None


def _enclosing_names(function: FunctionType, node: FunctionNode, scope: Scope) -> Mapping[str, object]:
    """The local names of the function around a decorated one that only annotations mention.

    From Python 3.14 on they are not part of the closure. The function around is the one that decorates now.
    """
    around = function.__qualname__.rpartition(".<locals>.")[0]
    if not around:
        return {}
    written = [a for n in ast.walk(node) for a in (getattr(n, "annotation", None), getattr(n, "returns", None))]
    missing = {name for a in written for name in read_names(a) if scope.resolve(name) is MISSING}
    frame = sys._getframe(1) if missing else None
    while frame is not None:
        if frame.f_code.co_qualname == around and frame.f_code.co_filename == function.__code__.co_filename:
            return {name: frame.f_locals[name] for name in missing if name in frame.f_locals}
        frame = frame.f_back
    return {}


def _evaluated_annotations(function: FunctionType | SourceFunction) -> Mapping[str, object]:
    """The annotations as Python evaluates them, which it does only now from Python 3.14 on; none if that fails."""
    if isinstance(function, SourceFunction):
        return {}
    try:
        return function.__annotations__
    except Exception:  # of the user's expression; it is read from the text, and its own error is reported
        return {}


def _default_values(function: FunctionType, node: FunctionNode) -> list[object]:
    """The values that Python evaluated the defaults of all parameters to; None where there is no default."""
    positional = len(node.args.posonlyargs) + len(node.args.args)
    values = list(function.__defaults__ or ())
    by_keyword = function.__kwdefaults__ or {}
    spread: list[object] = [None] if node.args.vararg is not None else []
    named: list[object] = [None] if node.args.kwarg is not None else []
    given = [None] * (positional - len(values)) + values
    return given + spread + [by_keyword.get(a.arg) for a in node.args.kwonlyargs] + named


def _evaluated_default(context: Context, written: ast.expr | None, value: object) -> Atom | None:
    """The default of a decorated function: a literal as it is written, or the object that Python made of it."""
    if written is None:
        return None
    if isinstance(written, ast.Constant):
        return lower_constant(context, written, written.value)
    return Static(value, context.span(written))


def _written_default(context: Context, written: ast.expr | None) -> Atom | None:
    """The default of a function in a text."""
    match written:
        case None:
            return None
        case ast.Constant(value=value):
            return lower_constant(context, written, value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return Static(-value, context.span(written))
        case ast.Name(id=name):
            return Global(name, None, context.span(written))
        case _:
            raise FrontendError(
                "the default of a parameter in a text is a literal or a name",
                context.span(written),
                help="pass the value under a name in `globals`",
            )
