"""Functions: their parameters, bodies and results, and the functions inside of functions."""

from __future__ import annotations

import ast
import difflib
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, TypeVarTuple

import attrs

from relay.errors import FrontendError, InternalError, Label, Span
from relay.errors.place_warnings import warn_at
from relay.frontend.analysis.foreign_annotations import literal_values, meaning, unknown_name
from relay.frontend.analysis.names import is_part, parameters_in_order, read_names
from relay.frontend.annotations import AnnotationReader, UndefinedName
from relay.frontend.context import Capture, Context, distinct_captures
from relay.frontend.scope import ParameterScope
from relay.frontend.source import FunctionNode, SourceFile
from relay.ir.annotations.annotation import to_type
from relay.ir.definition import Definition
from relay.ir.expr import Assert, Atom, Dead, Exit, Function, Lambda, Parameter, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Annotated, Apply
from relay.ir.types import Type

_STATIC = re.compile(r"#\s*relay:\s*static\b")


def lower_body(
    context: Context,
    reader: AnnotationReader,
    defaults: Sequence[Atom | None],
    evaluated: Callable[[], Mapping[str, object]],
) -> Function:
    """The function of a context.

    `defaults` are those of all parameters, in order. `evaluated` gives the annotations as Python evaluates them: they
    are used where a name of the annotation is not visible (a local name of the function around a decorated one).
    """
    node = context.node
    parameters = []
    for argument, default in zip(all_parameters(node), all_defaults(node.args), strict=True):
        may_be_none = isinstance(default, ast.Constant) and default.value is None
        read = functools.partial(reader.parameter, may_be_none=may_be_none)
        several = argument in (node.args.vararg, node.args.kwarg)  # whose annotation is that of each argument
        type_ = (
            None
            if several
            else _annotation(context, read, argument.annotation, argument.arg, evaluated, may_be_none=may_be_none)
        )
        var = Var(argument.arg, type_, context.file.parameter_span(argument))
        context.rename(argument.arg, var, var.span or context.file.function_span(node))
        parameters.append(var)
        if not several:
            _check_literal(context, argument, var)
    context.make_early_cells(node, context.file.function_span(node))
    documentation, result = None, None
    if isinstance(node, ast.Lambda):
        value = context.atom(node.body)
        context.block.terminator = Exit(
            context.label, (given_back(context, value, context.span(node.body)),), context.span(node.body)
        )
    else:
        result = _annotation(context, reader.type, node.returns, "return", evaluated)
        if context.gives_back:
            context.result, result = result, None
        documentation = ast.get_docstring(node)
        context.statements(node.body if documentation is None else node.body[1:])
        _end(context, node)
        _refuse_lost_changes(context)
    static = [_is_static(context, argument) for argument in all_parameters(node)]
    returned = [argument.arg in context.gives_back for argument in all_parameters(node)]
    signature = tuple(map(Parameter, _kinds(node.args), defaults, static, returned))
    span = context.file.function_span(node)
    return Function(
        context.name, tuple(parameters), context.block.block(), context.label, result, signature, documentation, span
    )


def all_parameters(node: FunctionNode) -> list[ast.arg]:
    """The parameters in order: positional ones, `*args`, those that are given by keyword only, `**kwargs`."""
    return parameters_in_order(node.args)


def all_defaults(arguments: ast.arguments) -> list[ast.expr | None]:
    """The default of each parameter."""
    positional = len(arguments.posonlyargs) + len(arguments.args)
    missing: list[ast.expr | None] = [None] * (positional - len(arguments.defaults))
    spread: list[ast.expr | None] = [None] if arguments.vararg is not None else []
    named: list[ast.expr | None] = [None] if arguments.kwarg is not None else []
    return [*missing, *arguments.defaults, *spread, *arguments.kw_defaults, *named]


def type_parameters(file: SourceFile, node: FunctionNode | ast.stmt) -> dict[str, object]:
    """The type parameters of a function, `def f[n, *S](..)`. Raises FrontendError for those with a bound or default."""
    found: dict[str, object] = {}
    for parameter in getattr(node, "type_params", ()):  # Python 3.12
        kind = type(parameter).__name__
        if kind == "ParamSpec":
            raise FrontendError(
                f"`**{parameter.name}` is not part of Relay",
                file.span(parameter),
                help="write the parameters of a function one by one: Fn[[A, B], C]",
            )
        for part in (getattr(parameter, "bound", None), getattr(parameter, "default_value", None)):
            if part is not None:
                raise FrontendError(
                    f"the type parameter {parameter.name} has no bound and no default in Relay",
                    file.span(part),
                    help=f"write {parameter.name} alone; its kind follows from its use in the annotations",
                )
        found[parameter.name] = (TypeVarTuple if kind == "TypeVarTuple" else TypeVar)(parameter.name)
    return found


def _kinds(arguments: ast.arguments) -> list[str]:
    return (
        ["positional_only"] * len(arguments.posonlyargs)
        + ["positional_or_keyword"] * len(arguments.args)
        + ["var_positional"] * (arguments.vararg is not None)
        + ["keyword_only"] * len(arguments.kwonlyargs)
        + ["var_keyword"] * (arguments.kwarg is not None)
    )


def _is_static(context: Context, node: ast.arg) -> bool:
    """True if the parameter's line has the comment `# relay: static`."""
    return _STATIC.search(context.file.source.line(node.lineno)) is not None


def _annotation(
    context: Context,
    read: Callable[[ast.expr], Type],
    node: ast.expr | None,
    name: str,
    evaluated: Callable[[], Mapping[str, object]],
    *,
    may_be_none: bool = False,
) -> Type | None:
    said = None if node is None else meaning(context.scope, node, may_be_none)
    if node is None or said is None:
        return None
    try:
        return read(said)
    except UndefinedName as error:
        found = evaluated().get(name)
        if found is None or isinstance(found, str):
            _report_undefined(context, node, error)
            return None
    except FrontendError as error:
        context.errors.append(error)
        return None
    try:
        return to_type(found)
    except FrontendError as error:
        context.errors.append(error.with_span(context.file.span(node)))
        return None


def _report_undefined(context: Context, node: ast.expr, error: UndefinedName) -> None:
    """Warn of an annotation whose name only type checkers know; note an error for one that looks like a mistake."""
    unknown = unknown_name(context.scope, node)
    if unknown is None or "did you mean" in (error.help or ""):
        context.errors.append(error)
        return
    message = f"the annotation {ast.unparse(node)} of {context.name} is ignored"
    warn_at(context.file.span(node), f"{message}: the name {unknown} is not defined when Relay reads it")


def _check_literal(context: Context, argument: ast.arg, var: Var) -> None:
    """Let a program stop where an argument is none of the values of its `Literal[..]`."""
    values = literal_values(context.scope, argument.annotation)
    if values is None or argument.annotation is None:
        return
    span = context.span(argument)
    listed = context.atom(values)
    held = context.bind(Apply(Static(Intrinsic("contains"), span), (var, listed), (), span), "condition", span)
    said = ", ".join(map(ast.unparse, values.elts)) if isinstance(values, ast.Tuple) else ""
    context.emit((), Assert(held, f"{argument.arg} must be one of {said}", span))


def _refuse_lost_changes(context: Context) -> None:
    """Note an error of calls from Python for a function that changes what it is given, as Python's functions may, and
    does not return it: items where it has no result, fields where no result holds the record."""
    for name, span in context.changed_parameters.items():
        if name in context.gives_back:
            continue
        if context.valued_return is None or (name in context.changed_fields and not _returns(context.node, name)):
            nothing = "; nothing is returned" if context.valued_return is None else ", and it is not returned"
            message = f"`{name}` is a value of the caller's, which does not see this change{nothing}"
            error = FrontendError(message, span, help=f"return {name}, and assign the result of the call")
            (context.lost if context.parent is None else context.errors).append(error)


def given_back(context: Context, result: Atom, span: Span) -> Atom:
    """The value that a `return` gives; with the parameters that the function changes, if it gives them back."""
    if not context.gives_back:
        return result
    if context.result is not None:
        result = context.bind(Annotated(result, context.result, span), "result", span)
    changed = [context.read(name, span) for name in context.gives_back]
    given = Apply(Static(Intrinsic("given_back"), span), (result, *changed), (), span)
    return context.bind(given, "changed", span)


def _returns(node: FunctionNode, name: str) -> bool:
    """True if a function returns a variable as a whole, alone, in a structure, or as the argument of a call."""
    returned = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
    pending: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [n for n in returned if n is not None]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Name) and part.id == name:
            return True
        if not is_part(part):  # type: ignore[arg-type]
            pending += ast.iter_child_nodes(part)
    return False


def _end(context: Context, node: ast.FunctionDef) -> None:
    """Return None from the end of the body, if it can be reached."""
    valued = context.valued_return
    if context.incomplete and context.block.is_open:
        context.block.terminator = Dead()  # the program is not used
    elif context.block.is_open:
        if valued is not None:
            end = context.span(node.body[-1])
            raise FrontendError(
                f"`{context.name}` returns a value here, but its end can also be reached without `return`",
                valued,
                labels=(Label(end, "nothing is returned after this"),),
                help="return a value on every path; where there is none, write `return None`",
            )
        span = context.file.function_span(node)
        context.block.terminator = Exit(context.label, (given_back(context, Static(None, span), span),), span)
    elif valued is not None and context.bare_return is not None:
        raise FrontendError(
            f"`{context.name}` returns a value on one path and nothing on another",
            context.bare_return,
            labels=(Label(valued, "returns a value"),),
            help="return a value on every path; where there is none, write `return None`",
        )


# ---- functions inside of functions


def lower_lambda(context: Context, node: ast.Lambda, name: str) -> Lambda:
    """A function value."""
    return _lower_nested(context, node, name, _defaults(context, node))


def is_definition(statement: ast.stmt) -> bool:
    """True if a statement is `def` or `name = lambda ..`."""
    match statement:
        case ast.FunctionDef() | ast.Assign(targets=[ast.Name()], value=ast.Lambda()):
            return True
        case _:
            return False


def lower_definitions(context: Context, statements: Sequence[ast.stmt]) -> None:
    """Lower a run of definitions, which see each other, unless a default needs an earlier one."""
    group: dict[str, ast.stmt] = {}
    for statement in statements:
        name, node = _definition(statement)
        needed = {n for default in all_defaults(node.args) for n in read_names(default)}
        if name in group or needed & group.keys():
            _lower_group(context, list(group.values()))
            group = {}
        group[name] = statement
    _lower_group(context, list(group.values()))


def _lower_group(context: Context, statements: Sequence[ast.stmt]) -> None:
    definitions = []
    for statement in statements:
        name, node = _definition(statement)
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            raise FrontendError(
                "a decorator on a function in a function is not part of Relay",
                context.span(node.decorator_list[0]),
                help=f"apply it after the definition: `{name} = {ast.unparse(node.decorator_list[0])}({name})`",
            )
        definitions.append((name, node, _defaults(context, node)))
    variables = []
    for statement, (name, node, _) in zip(statements, definitions, strict=True):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        span = context.span(target) if target is not None else context.file.function_span(node)
        variables.append(Var(name, None, span))
        if context.block.environment.capture_of(name) is not None:
            context.need_cell(name)
        if name in context.cells and name not in context.early:
            context.need_early_cell(name)
        if not _is_kept(context, name):
            context.rename(name, variables[-1], span)
    captures: list[Capture] = []
    for variable, (name, node, defaults) in zip(variables, definitions, strict=True):
        value = _lower_nested(context, node, name, defaults)
        context.emit((variable,), value)
        captures += context.captures_of.get(value.function.label, ())
    if captures:
        for variable in variables:  # each may call the others
            context.holds[variable] = distinct_captures(captures)
    for variable, (name, _, _) in zip(variables, definitions, strict=True):
        if _is_kept(context, name):
            context.rename(name, variable, variable.span or context.file.function_span(context.node))


def _is_kept(context: Context, name: str) -> bool:
    """True if the name of a definition is a variable in a cell, which functions captured before or may see changed."""
    return name in context.cells or name in context.outer_names


def _definition(statement: ast.stmt) -> tuple[str, FunctionNode]:
    match statement:
        case ast.FunctionDef(name=name):
            return name, statement
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as node):
            return name, node
        case _:
            raise InternalError("a statement that defines no function")


def _defaults(context: Context, node: FunctionNode) -> list[Atom | None]:
    return [None if default is None else context.atom(default) for default in all_defaults(node.args)]


def _lower_nested(context: Context, node: FunctionNode, name: str, defaults: Sequence[Atom | None]) -> Lambda:
    parameters = type_parameters(context.file, node)
    scope = ParameterScope(parameters, context.scope) if parameters else context.scope
    positions: Sequence[int] = getattr(node, "gives_back", ())
    parameters_given_back = [all_parameters(node)[p].arg for p in positions]
    inner = Context(context.file, scope, node, name, context.translator, context, parameters_given_back)
    reader = AnnotationReader(context.file, scope, context.defines, inner.sizes)
    function = lower_body(inner, reader, defaults, dict)
    if inner.captures:
        context.captures_of[function.label] = distinct_captures(inner.captures)
    return Lambda(function, function.span)


def with_static(definition: Definition, names: str | Sequence[str]) -> Definition:
    """The definition with these parameters marked as static. Raises FrontendError for a name that it does not have."""
    function = definition.function
    wanted = (names,) if isinstance(names, str) else tuple(names)
    known = [p.name for p in function.parameters]
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise FrontendError(
                f"static_argnames: {function.name} has no parameter {name!r}",
                function.span,
                help=f"did you mean {close[0]!r}?" if close else None,
            )
    if not wanted:
        return definition
    marked = tuple(
        attrs.evolve(s, static=s.static or p.name in wanted)  # type: ignore[misc]
        for p, s in zip(function.parameters, function.signature, strict=True)
    )
    return attrs.evolve(definition, function=attrs.evolve(function, signature=marked))  # type: ignore[misc]
