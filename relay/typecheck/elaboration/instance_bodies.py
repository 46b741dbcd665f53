"""Elaboration of a new instance: its parameters, its body and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import attrs

from relay.errors import Label, Span, TypeMismatch
from relay.ir.effects import Effects
from relay.ir.expr import (
    Exit,
    Function,
    Global,
    Lambda,
    LoopLabel,
    Var,
)
from relay.ir.types import (
    NONE,
    FunctionType,
    Kind,
    StackType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    show,
)
from relay.typecheck.elaboration import constant_results
from relay.typecheck.elaboration.abstract_arguments import restore_closures
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DeferredBinding,
    DependsOnPoison,
    DynamicValue,
    GlobalFunction,
    Handler,
    Identity,
    LocalFunction,
    Number,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    is_of_template,
    local_function,
    surface_function,
)
from relay.typecheck.elaboration.annotated_types import annotation_type
from relay.typecheck.elaboration.checker import Checker, Instance, InstanceKey
from relay.typecheck.elaboration.closures import returned_functions
from relay.typecheck.elaboration.control_flow import recursive_results
from relay.typecheck.elaboration.derivatives.custom_gradients import define_gradient
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent, polymorphic_recursion, size_conditions
from relay.typecheck.elaboration.effects import effects
from relay.typecheck.elaboration.expressions.arguments import definition_context, require_fitting, static_positions
from relay.typecheck.elaboration.library.overloads import is_function
from relay.typecheck.elaboration.restarts import ParameterPlace, TextsDiffer
from relay.typecheck.elaboration.results import result_value
from relay.typecheck.elaboration.schemes import conditional_types, rank_n_types
from relay.typecheck.elaboration.values import axis_names, iterables, labels, range_numbers, texts
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.mapping import map_type
from relay.typecheck.unification import resolve


def is_number(entity: AbstractValue) -> bool:
    """True if an argument is a number, or a tuple of numbers, that is static."""
    if isinstance(entity, Tuple):
        return entity.form is None and bool(entity.items) and all(map(is_number, entity.items))
    if not isinstance(entity, Number) or data_dependent.mentioned_in_number(entity):
        return False
    return isinstance(entity.specialize(), int | float)


def is_count(entity: AbstractValue, function: Function, position: int) -> bool:
    """True if an argument is a count without a declared type: it is converted where it meets floats there, too."""
    return (
        isinstance(entity, DynamicValue)
        and range_numbers.is_count(entity)
        and function.parameters[position].type is None
    )


@attrs.frozen(eq=False)
class InstanceRequest:
    """A function with the arguments of a call: `values` holds the run-time ones, None where the entity specializes."""

    callee: GlobalFunction | LocalFunction
    entities: Sequence[AbstractValue]
    values: Sequence[DynamicValue | None]
    span: Span | None
    numbers: Set[ParameterPlace]  # the parameters whose arguments are known numbers
    annotated: Mapping[TypeId, object]  # what is known of the variables of annotations
    packs: bool  # whether it returns what the functions in its result have captured
    iterated: Mapping[int, AbstractValue]  # the ranges and zips, by position, whose parts the call passes
    types: tuple[Type, ...]  # of the run-time arguments
    lengths: Sequence[object]  # what is known of the lengths of lists in the arguments
    statics: tuple[object, ...]  # which arguments specialize, and what they are
    key: InstanceKey | None  # None while some of the types are not known

    def key_at(self, types: tuple[Type, ...]) -> InstanceKey:
        """The key of an instance with these types of the run-time arguments."""
        shape = tuple(v is None for v in self.values)
        return Identity(self.code), shape, types, axis_names.all_names(types), self.statics

    @property
    def function(self) -> Function:
        return surface_function(self.callee)

    @property
    def code(self) -> object:
        """The Definition or LocalFunction."""
        return self.callee.definition if isinstance(self.callee, GlobalFunction) else self.callee


class InstanceElaboration:
    """The elaboration of one new instance."""

    def __init__(self, checker: Checker, request: InstanceRequest) -> None:
        function, callee = request.function, request.callee
        self.checker, self.request, self.function = checker, request, function
        self.is_entry = not checker.frame.active
        checker.unseen_functions.pop(id(function), None)
        types = tuple(map(effects.parameter_type, request.types))
        self.number, self.opened = checker.module.made_instances, len(checker.scheme.opened)
        self.before = checker.sizes_in_scope()
        checker.module.made_instances += 1
        self.instance = self._register(types)
        self.context = definition_context(callee)
        self.context.annotated = {**self.context.annotated, **request.annotated}
        self.instance.annotated = self.context.annotated
        checker.module.bodies.append((callee, self.context))
        self.instance.is_general = checker.generic and bool(request.annotated)
        self.body = TypedBlockBuilder()
        self.label = LoopLabel(self.instance.name)
        self.failures = checker.failures
        self.returned = False
        self.exits: list[AbstractValue] = []
        self.by_sizes: list[bool] = []  # whether annotated sizes choose the exits
        self.declared_at: list[tuple[Span | None, Callable[[], str]]] = []  # what says which result there must be
        self.results = conditional_types.ReturnTypes(checker, self.instance, self.number, function.result is not None)
        self.written: Type | None = None  # the annotation of the result
        handler = Handler(
            self.label, None, self._on_exit, len(checker.frame.scopes), on_open_exit=self.results.left_open
        )
        self.context.handlers = {function.label: handler}
        self.checked: list[tuple[AbstractValue, FunctionType, Var]] = []  # functions with a written type

    def _register(self, types: tuple[Type, ...]) -> Instance:
        """The instance, registered before its body is checked, so that it can call itself."""
        checker, request, function = self.checker, self.request, self.function
        callee, statics, key = request.callee, request.statics, request.key
        result = recursive_results.earlier_result(checker, self.number, function.label)
        result = result or checker.solver.fresh_variable(Kind.Type)
        if isinstance(callee, GlobalFunction):
            name = checker.module.unique_name(function.name)
            instance = Instance(name, request.code, types, statics, result, Global(name), numbers=request.numbers)
            checker.module.globals[name] = instance
            if callee.definition.pure:
                checker.pure.append((instance.effects, effects.declared_purity(function)))
        else:
            own = Effects()
            target = checker.variable(function.name, FunctionType(types, result, (), own), function.span)
            instance = Instance(
                function.name, request.code, types, statics, result, target, effects=own, numbers=request.numbers
            )
        if key is not None:
            checker.module.instances[key] = instance
            polymorphic_recursion.note_sizes(checker, key, instance)
        else:
            first = next((i for i in checker.frame.active if i.code is request.code and i.statics == statics), None)
            if first is not None:
                polymorphic_recursion.note_made(checker, first, instance)
        return instance

    def elaborate(self) -> Instance:
        """Elaborate the body. Raises DependsOnPoison if mistakes in it leave it without a result."""
        checker, request, function, instance = self.checker, self.request, self.function, self.instance
        callee = request.callee
        self._bind_axes_of_any_size()
        with checker.scope(self.body):
            self._bind_parameters()
            for entity, annotation, parameter in self.checked:
                _check_function_argument(checker, self.body, entity, annotation, parameter, function.name, request.span)
            self._declare_result()
            _elaborate_body(checker, self.context, function, self.body, instance, request.span)
        if checker.generic:
            self.results.settle()
            checker.solver.run()
        if not self.returned and checker.failures > self.failures:
            instance.failed = True
            raise DependsOnPoison
        if not self.returned and not self.results.are_open:  # every path ends in an assertion that does not hold
            checker.module.finishers.append(self._return_nothing)
        recursive_results.restart_if_used_early(checker, self.number, function.label, instance, self.opened)
        instance.rule = function.rule
        self._note_constant_result()
        if isinstance(callee, GlobalFunction) and callee.definition.gradient is not None:
            define_gradient(checker, callee, callee.definition.gradient, instance, request.entities, request.values)
        instance.build = self._build
        if isinstance(callee, LocalFunction):
            assert isinstance(instance.target, Var)
            place = data_dependent.place_of(checker, callee, instance.parameters)
            binding = DeferredBinding((instance.target,), lambda: Lambda(self._build(), function.span))
            place.items.append(binding)
        return instance

    def _build(self) -> Function:
        function, instance = self.function, self.instance
        return Function(
            instance.name,
            tuple(instance.variables),
            self.body.block(),
            self.label,
            self.checker.final_type(instance.result),
            (),
            function.documentation,
            function.span,
            instance.rule,
        )

    # ---- parameters

    def _bind_axes_of_any_size(self) -> None:
        found = ((p.name, data_dependent.any_axes(p.type)) for p in self.function.parameters)
        self.instance.of_any_size = {name: axes for name, axes in found if axes}

    def _bind_parameters(self) -> None:
        request, function = self.request, self.function
        remaining = iter(self.instance.parameters)
        given = zip(function.parameters, request.entities, request.values, strict=True)
        for position, (parameter, entity, value) in enumerate(given):
            annotation, is_open = self._annotation(position)
            if value is None:
                require_fitting(entity, function, position, request.span)
                pure = effects.declared_pure(entity, parameter, function.name, request.span)
                self.context.environment[parameter] = pure
                if isinstance(annotation, FunctionType):
                    self.checked.append((entity, annotation, parameter))
                continue
            variable = self.checker.variable(parameter.name, next(remaining), parameter.span)
            self.checker.sources.pass_on(variable, value.atom)
            self.checker.sources.pass_on(variable, (function.label, position))
            if is_open:
                self.checker.sizes.functions_of_any[variable] = function.label, (-1, position)
            self._note_function(position, variable)
            self.instance.variables.append(variable)
            self.context.environment[parameter] = self._received_value(position, variable, annotation)

    def _annotation(self, position: int) -> tuple[Type | None, bool]:
        """The written type of a parameter, and whether it is that of a function of any size which this call gives."""
        parameter, value = self.function.parameters[position], self.request.values[position]
        if parameter.type is None or (value is None and rank_n_types.is_polymorphic(parameter)):
            return None, False
        of_any = data_dependent.is_function_of_any(parameter.type)
        where = self.function.label, (-1, position)
        stays = of_any and (value is None or where in self.checker.decisions.of_all_sizes)
        what = f"argument {parameter.name} of {self.function.name}"
        found = annotation_type(
            self.checker,
            self.context,
            parameter.type,
            any_stays=stays,
            what=what,
            span=parameter.span,
            call=self.request.span,
        )
        return found, of_any and not stays

    def _note_function(self, position: int, variable: Var) -> None:
        """Remember which parameter a function comes from."""
        checker, entity = self.checker, self.request.entities[position]
        if self.function.parameters[position].type is None and local_function(entity) is not None:
            checker.function_parameters[variable] = self.function.label, position
        elif isinstance(entity, DynamicValue) and entity.atom in checker.function_parameters:  # which is passed on
            checker.function_parameters[variable] = checker.function_parameters[entity.atom]

    def _received_value(self, position: int, variable: Var, annotation: Type | None) -> AbstractValue:
        """The value of a parameter in the body."""
        checker, function, span = self.checker, self.function, self.request.span
        parameter, entity = function.parameters[position], self.request.entities[position]
        what = f"argument {parameter.name} of {function.name}"
        if self.is_entry and parameter in checker.function_arguments:
            return _function_argument(checker, self.body, variable, parameter, annotation, what)
        if isinstance(annotation, StackType) and isinstance(prune(variable.type), TupleType):  # type: ignore[arg-type]
            listed = DynamicValue(variable, prune(variable.type))  # type: ignore[arg-type]
            given = dynamic_lists.as_growing(checker, self.body, listed, parameter.span, parameter.type)
            checker.unify_at(given.type, annotation, span or parameter.span, what)
            return given
        if annotation is not None and variable.type is not None:
            is_shown = parameter.span is not None and span is not None
            declared = (Label(parameter.span, "declared here"),) if is_shown else ()  # type: ignore[arg-type]
            checker.unify_at(variable.type, annotation, span or parameter.span, what, labels=declared)
        received = range_numbers.of_python(
            checker,
            DynamicValue(variable, annotation or variable.type or self.instance.result),
            (function.label, position),
            annotation is not None,
        )
        if is_count(entity, function, position):
            received = range_numbers.of_range(received)
        expanded = expand(checker, self.body, received, parameter.span)
        with_lengths = constant_results.with_lengths(expanded, self.request.lengths[position])
        found = labels.with_labels(with_lengths, entity)
        if position in self.request.iterated:
            found = iterables.rebuild_iterable(self.request.iterated[position], found)
        data_dependent.note_any(checker, found, parameter.type)
        return found

    # ---- the result

    def _declare_result(self) -> None:
        """Demand the written type of the result, if there is one."""
        function = self.function
        if function.result is None:
            return
        what = f"what {function.name} returns"
        written = annotation_type(self.checker, self.context, function.result, what=what, span=function.span)
        self.written = written
        if not self.request.packs:
            self.checker.unify_at(written, self.instance.result, function.span, "the result")
        self.declared_at = [(function.span, lambda: f"declared to return {show(resolve(written))}")]

    def _on_exit(self, out: TypedBlockBuilder, entities: tuple[AbstractValue, ...], span: Span | None) -> None:
        """A `return`."""
        checker, function, instance = self.checker, self.function, self.instance
        self.by_sizes.append(function.result is None and size_conditions.is_lenient(checker))
        found = entities[0]
        if self.is_entry:
            checker.decisions.holding.append(returned_functions.has_functions(found))
        if self.request.packs:
            found = self._pack_functions(out, found, span)
        if function.label in checker.decisions.choosing_texts:
            found = labels.as_numbers(texts.of_run(checker, out, found, span), span)
        elif not self.is_entry:
            found = self._without_labels(found, span)
        elif labels.labels_key(found) is not None:
            checker.decisions.labeled.append(found)
        value = result_value(checker, out, function, instance, found, any(self.by_sizes), span)
        self.exits.append(entities[0])
        try:
            if not checker.generic or not self.results.is_apart(value.type, span):
                if not self.returned:
                    checker.solver.define(instance.result, value.type)
                checker.unify_at(value.type, instance.result, span, f"the result of {function.name}")
        except TypeMismatch as error:
            error.labels = tuple(Label(at, text()) for at, text in self.declared_at if at is not None)
            raise
        out.terminator = Exit(self.label, (value.atom,), span)
        self.returned = True
        if not self.declared_at:
            self.declared_at = [(span, lambda: f"another path returns {show(resolve(value.type))}")]

    def _without_labels(self, entity: AbstractValue, span: Span | None) -> AbstractValue:
        """A result without the strings in it, which the caller knows. Raises TypeMismatch where they differ between
        paths."""
        entity = labels.with_plain_numbers(entity)
        if self.exits and labels.labels_key(entity) != labels.labels_key(labels.with_plain_numbers(self.exits[0])):
            both = entity, self.exits[0]
            if all(map(texts.holds_text, both)) or all(map(labels.holds_members, both)):
                raise TextsDiffer(self.function.label)
            where = tuple(Label(at, "another path returns others") for at, _ in self.declared_at[:1] if at is not None)
            raise TypeMismatch(
                f"the members of enumerations in the result of {self.function.name} differ between paths",
                span,
                labels=where,
                help="they are known at compile time: let the enumeration be an IntEnum, whose members are numbers",
            )
        if texts.holds_text(entity):
            self.instance.returned_text = self.function.label
        return labels.without_labels(entity)

    def _pack_functions(self, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
        """A result as what the functions in it have captured, if it holds any."""
        checker, function, instance = self.checker, self.function, self.instance
        try:
            packed = returned_functions.pack_result(checker, out, entity, self.written, self.is_entry, span)
            if self.returned and instance.returned != (packed and packed.node):  # another path has returned
                raise returned_functions.FunctionChosenAtRunTime
        except returned_functions.FunctionChosenAtRunTime:
            if self.is_entry:
                raise
            raise returned_functions.ResultStaysDynamic(function.label) from None
        if packed is None:
            if self.written is not None:
                checker.unify_at(self.written, instance.result, function.span, "the result")
            return entity
        instance.returned = packed.node
        return packed.values

    def _return_nothing(self) -> None:
        result = self.instance.result
        if isinstance(prune(result), Unknown):
            self.checker.unify_at(NONE, result, self.request.span, "the result")

    def _note_constant_result(self) -> None:
        """Remember what the checker knows of the result: its numbers and sizes."""
        function, instance = self.function, self.instance
        instance.known = constant_results.common_constants(self.exits, self.before, counts=function.result is None)
        takes_counts = all(is_count(e, function, p) or is_number(e) for p, e in enumerate(self.request.entities))
        is_global = isinstance(self.request.callee, GlobalFunction)
        if instance.calls_itself and takes_counts and function.result is None and is_global:
            instance.known = constant_results.of_counts(instance.result, instance.known)


def _function_argument(
    checker: Checker, out: TypedBlockBuilder, var: Var, parameter: Var, annotation: Type | None, what: str
) -> AbstractValue:
    """An argument of the program that holds functions which other programs have returned."""
    assert var.type is not None
    given = expand(checker, out, DynamicValue(var, var.type), parameter.span)
    entity = restore_closures(checker, out, checker.function_arguments.pop(parameter), given, parameter.span)
    if not isinstance(annotation, FunctionType) or isinstance(entity, Tuple):
        return entity
    value = checker.engine.function_value(checker, out, entity, parameter.span)
    checker.unify_at(value.type, annotation, parameter.span, what)
    return value


def _check_function_argument(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    annotation: FunctionType,
    parameter: Var,
    name: str,
    span: Span | None,
) -> None:
    """Demand that a function that specializes another one has the type which is written for the parameter."""
    fixed: dict[int, AbstractValue] | None = None
    if isinstance(entity, GlobalFunction):
        if static_positions(entity):
            return  # it is not a value
        if len(surface_function(entity).parameters) == len(annotation.parameters):
            fixed = {}
    elif not isinstance(entity, PythonObject) or not is_function(entity.value):
        return
    value = checker.engine.function_value(checker, out, entity, span or parameter.span, fixed)
    declared = (Label(parameter.span, "declared here"),) if parameter.span is not None and span is not None else ()
    what = f"argument {parameter.name} of {name}"
    wanted = map_type(annotation, function=lambda f: attrs.evolve(f, effects=None))  # they are looked at by name
    checker.unify_at(value.type, wanted, span or parameter.span, what, labels=declared)


def _elaborate_body(
    checker: Checker,
    context: Context,
    function: Function,
    body: TypedBlockBuilder,
    instance: Instance,
    span: Span | None,
) -> None:
    if is_of_template(span) and not is_of_template(checker.hints.span):
        span = checker.hints.span  # where a function of the template's is called
    frame = checker.frame.of_function(instance, function.name, span)
    try:
        with checker.at_frame(frame), checker.inside_of_function():
            checker.engine.elaborate_block(checker, context, function.body, body, None)
    except Exception:
        if is_of_template(checker.hints.span):  # what users know of it is the call
            checker.hints.span = span
        raise
    checker.solver.run()
