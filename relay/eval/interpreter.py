"""The reference interpreter: the meaning of the language.

It runs every typed module, from elaboration's result to the last core. A machine has a stack of frames, one for each
function that is being run; a frame has its variables and a stack of activations, one for each block that is being run.
One step executes one binding or one terminator, so neither calls nor loops nor branches use Python's own stack, and a
debugger can stop between any two steps. A call in tail position replaces the frame of its caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, assert_never

import numpy as np

from relay.errors import ExecutionError, InternalError, Label, Span, bugs_of
from relay.errors.raised import catches, failure
from relay.eval.backtrace import Call as RunningCall
from relay.eval.backtrace import backtrace_of
from relay.eval.caught import catch, end_attempt
from relay.eval.examples import Example, asking_example
from relay.eval.frames import Activation, Frame, is_tail_call
from relay.eval.operation import Operations
from relay.eval.reuse import Reuse, is_alone
from relay.eval.sizes import attribute_with_sizes, made_in_attributes, sizes_of, with_sizes
from relay.eval.steps import Steps, check
from relay.eval.tape import Differentiation, Differentiator, Tape, tapes_of, unbox
from relay.eval.values import Closure, Data, GradientFunction, Reference, Stack, describe, fits, primal
from relay.ir import program_output
from relay.ir.debugging.source_names import SourceNames
from relay.ir.dims import DataDependentDim, TypeId, evaluate, no_size
from relay.ir.expr import (
    Ascribe,
    Assert,
    Atom,
    Attempt,
    AxisSize,
    BindDim,
    Binding,
    Breakpoint,
    Call,
    CatchesError,
    Constant,
    Construct,
    CustomGradient,
    Derivative,
    EndAttempt,
    Extent,
    Function,
    Global,
    Grad,
    If,
    Lambda,
    Loop,
    MakeTuple,
    Match,
    Module,
    OpCall,
    Print,
    PrintErased,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Rethrow,
    Shadow,
    StackGet,
    StackLength,
    StackNew,
    StackPrefix,
    StackPush,
    StackSet,
    Static,
    Var,
)
from relay.ir.surface import SurfaceExpr
from relay.ir.traverse import free_variables, operands
from relay.ir.types import RefType, StackType, TensorType, TupleType, Type, prune, show
from relay.support.limits import stack_size, too_deep

SHOWN_CALLS = 3
"""The number of calls that a run-time error shows, from the innermost on."""

SHOWN_VARIABLES = 8
"""The number of variables of the innermost call that it shows, the last ones that got a value."""

CALL_BYTES = 1024
"""About what a waiting call of a small function takes of memory: `stack_size` tells how many may wait."""

ALWAYS_DEEP_ENOUGH = 10_000
"""The calls that may wait without a look at the memory."""


class Machine:
    """Runs one call. `frames` is the stack, the innermost last; `step` until it returns False, then see `result`.

    With `checked`, every value is compared with the type of the variable that it is bound to. `sizes` are those of the
    module's symbolic dims in this call; an operator gets its attributes with numbers in their place.
    """

    environment: Callable[[Mapping[Var, object]], dict[Var, object]] = dict
    """Makes the variables of a new frame; a debugger's are recorded."""

    def __init__(
        self,
        checked: bool = True,
        sizes: Mapping[TypeId, int] | None = None,
        quiet: bool = False,
        names: SourceNames | None = None,
        examples: tuple[Example, ...] = (),
    ) -> None:
        self.checked = checked
        self.names = names
        self.examples = examples
        self.quiet = quiet
        self.sizes = sizes or {}
        self.frames: list[Frame | Differentiation] = []
        self.result: object = None
        self._deepest = ALWAYS_DEEP_ENOUGH
        self.operations = Operations(checked)
        self.differentiator = Differentiator(self.operations, self._run_nested, self._ask if examples else None)
        self.reuse = Reuse(self.operations)
        self.steps = Steps(self)
        self._captured: dict[Function, tuple[Var, ...]] = {}
        self._sized_calls: dict[tuple[object, ...], OpCall] = {}
        self._made_in: dict[OpCall, tuple[DataDependentDim, ...]] = {}

    def run(self, function: object, arguments: Sequence[object], below: float = math.inf) -> object:
        """Call a function value and step to the end. Its own gradient is for levels of tapes `below` one."""
        frames = self.frames
        try:
            with bugs_of("the interpreter", lambda: self._place(function)), np.errstate(all="ignore"):
                self.enter(function, arguments, below=below)
                while frames:
                    try:
                        while frames:  # step(), written out
                            frame = frames[-1]
                            activation = frame.activations[-1]  # type: ignore[union-attr]
                            position = activation.position
                            activation.position = position + 1
                            activation.steps[position](frame, activation)  # type: ignore[arg-type]
                    except ExecutionError as error:
                        if not catch(frames, error):
                            raise
        except ExecutionError as error:
            self._add_backtrace(error)
            raise
        return self.result

    def _add_backtrace(self, error: ExecutionError) -> None:
        if not error.backtrace:
            error.backtrace = backtrace_of(self.frames, self.names)
            error.labels = error.labels or self._calls()
            if error.span is not None and error.span.is_internal and error.labels:  # it is at the user's call
                error.span = error.labels[0].span
            error.labels = tuple(label for label in error.labels if label.span != error.span)
            error.notes = (*error.notes, *_variables_note(error.backtrace[-1:]))

    # ---- examples along an axis

    def _nested_machine(self, quiet: bool = False) -> Machine:
        return Machine(self.checked, self.sizes, quiet, examples=self.examples)

    def with_examples(self, examples: tuple[Example, ...]) -> Machine:
        """A machine that runs a part of what this one runs, in these examples."""
        return Machine(self.checked, self.sizes, self.quiet, self.names, examples)

    def run_round(
        self, frame: Frame, binding: Binding, around: Sequence[Frame | Differentiation]
    ) -> tuple[object, ...]:
        """The values that a round of a loop passes on to the next. `around`: the frames that wait for it."""
        passed: list[tuple[object, ...]] = []

        def end(values: tuple[object, ...]) -> None:
            passed.append(values)
            self.frames.clear()

        self.steps.prepare(frame.closure.function)
        frame.activations.append(self.steps.ending_round(binding, end))
        self.frames.append(frame)
        try:
            with np.errstate(all="ignore"):
                while self.step():
                    pass
        except ExecutionError as error:
            self.frames[:0] = around
            self._add_backtrace(error)
            raise
        (values,) = passed
        return values

    def collective(self, frame: Frame, binding: Binding, call: OpCall) -> None:
        """Run an operator whose result depends on all examples along an axis."""
        (target,) = binding.targets
        operands: Any = [self.atom(frame, a) for a in call.arguments]
        if frame.sizes:
            call = self._concrete_call(call, frame.sizes)
        frame.environment[target] = self.differentiator.apply(call, operands, None)

    def _ask(self, call: OpCall, operands: Sequence[Any], tape: Tape | None) -> object:
        """The answer to a collective call that the example asks for; None if it does not, or the call is another."""
        if not self.operations.is_collective(call):
            return None
        example = asking_example(self.examples, call, tape)
        return None if example is None else example.ask(call, operands)

    def _place(self, function: object) -> Span | None:
        """The place that the call of a function has reached."""
        if self.frames:
            return self.backtrace()[-1][1]
        return function.function.span if isinstance(function, Closure) else None

    def _calls(self) -> tuple[Label, ...]:
        """The innermost calls that led to where the program is."""
        frames = self.backtrace()[-SHOWN_CALLS - 1 :]
        calls = list(zip(frames[1:], frames, strict=False))[::-1]
        written = [(name, span) for (name, _), (_, span) in calls if span is not None and not span.is_internal]
        return tuple(Label(span, f"in this call of {name}") for name, span in written)

    def _run_nested(self, module: Module, arguments: Sequence[object]) -> object:
        """The result of a program of its own: the body of a composite operator."""
        return Machine(self.checked, examples=self.examples).run(Closure(module.main, {}, module), arguments)

    def backtrace(self) -> list[tuple[str, Span | None]]:
        """The functions that are being run and where each has got to, the innermost last."""
        return [("grad", f.grad.span) if isinstance(f, Differentiation) else (f.name, f.span) for f in self.frames]

    # ---- one step

    def step(self) -> bool:
        """Execute one binding or terminator of the innermost block. False when the call has returned."""
        frame = self.frames[-1]
        assert isinstance(frame, Frame)
        activation = frame.activations[-1]
        activation.position += 1
        try:
            activation.steps[activation.position - 1](frame, activation)
        except ExecutionError as error:
            if not catch(self.frames, error):
                raise
        return bool(self.frames)

    def operator(self, frame: Frame, binding: Binding, call: OpCall) -> None:
        """Run an operator that may write into an operand, or whose type or attributes mention sizes."""
        (target,) = binding.targets
        operands = [self.atom(frame, a) for a in call.arguments]
        spare = self.reuse.operand(frame, binding, operands)
        type_ = target.type
        if frame.sizes:
            call = self._concrete_call(call, frame.sizes)
            type_ = None if type_ is None else with_sizes(type_, frame.sizes)
        if spare:
            frame.environment[target] = self.operations.update(call, operands)  # type: ignore[arg-type]
        else:
            frame.environment[target] = self.differentiator.apply(call, operands, type_)  # type: ignore[arg-type]

    def execute(self, frame: Frame, activation: Activation, binding: Binding) -> None:
        """Run a binding. What takes more than a step leaves an activation or a frame, which will bind the targets."""

        def value(atom: Atom) -> object:
            return self.atom(frame, atom)

        def bind(result: object) -> None:
            self.steps.results(binding)(frame, (result,))

        match binding.value:
            case Var() | Constant() | Global() as atom:
                bind(value(atom))
            case Call(function, arguments):
                callee, passed = value(function), tuple(map(value, arguments))
                if is_tail_call(frame):
                    self.frames.pop()
                self.enter(callee, passed, frame.sizes, frame.quiet)
            case MakeTuple(items):
                bind(tuple(map(value, items)))
            case Project(whole, index):
                bind(value(whole)[index])  # type: ignore[index]
            case Match(matched, match_arms):
                data = value(matched)
                assert isinstance(data, Data)
                for match_arm in match_arms:
                    if match_arm.constructor == data.constructor:
                        self._bind(frame, match_arm.fields, data.fields)
                        frame.activations.append(self.steps.activation(match_arm.body, binding))
                        break
                else:
                    raise InternalError(f"no arm for {data.constructor}")
            case Construct(definition, constructor, arguments):
                bind(Data(definition, constructor, tuple(map(value, arguments))))
            case Lambda():
                self._make_closures(frame, activation)
            case Grad(function) as grad:
                differentiated = value(function)
                assert isinstance(differentiated, Closure | GradientFunction)
                bind(GradientFunction(differentiated, grad))
            case RefNew(content):
                bind(Reference(value(content)))
            case RefRead(reference):
                bind(_cell(value(reference)).content)
            case RefWrite(reference, content):
                _cell(value(reference)).content = value(content)
            case Shadow(reference, sweep, initial, slot):
                bind(_cell(value(reference)).shadow(slot, value(sweep), value(initial)))
            case Assert(condition, message, span):
                if not value(condition):
                    raise failure(message, span)
            case Print(_, atoms) as text:
                if not frame.quiet or text.fails:
                    program_output.write(text, [np.asarray(unbox(value(a))) for a in atoms])
            case Attempt():
                self._bind(frame, binding.targets, (np.asarray(False), np.zeros((), np.int32), np.zeros(0, np.int32)))
            case EndAttempt(failed):
                end_attempt(frame, failed)
            case CatchesError(error, names):
                bind(np.asarray(catches(value(error).raised, names.split())))  # type: ignore[attr-defined]
            case Rethrow(error):
                raise value(error)  # type: ignore[misc]
            case Breakpoint():
                pass  # the debugger stops before it
            case StackNew():
                bind(Stack([], 0))
            case StackPush() | StackSet() | StackPrefix() as change:
                self.change_stack(frame, binding, change, ())
            case StackGet(stack, at, span):
                held = _stack(value(stack))
                bind(held.buffer[_position(value(at), held.length, span)])
            case StackLength(stack):
                bind(np.array(_stack(value(stack)).length, np.int64))
            case Extent(dim, base):
                bind(np.array(evaluate(dim, frame.sizes), base.dtype))
            case BindDim(made, size, span):
                number = int(value(size))  # type: ignore[call-overload]
                if not 0 <= number <= made.upper_bound:
                    raise ExecutionError(no_size(made), span)
                frame.sizes = {**frame.sizes, made: number}
            case AxisSize(tensor, axis):
                bind(np.array(primal(value(tensor)).shape[axis], np.int64))  # type: ignore[arg-type]
            case Ascribe(tensor):
                bind(value(tensor))
            case OpCall() | If() | Loop() as prepared:
                raise InternalError(f"{type(prepared).__name__} has steps of its own")
            case other:
                if isinstance(other, Static | SurfaceExpr):
                    raise InternalError(f"{type(other).__name__} belongs to the surface IR and cannot be run")
                assert_never(other)

    def change_stack(
        self, frame: Frame, binding: Binding, change: StackPush | StackSet | StackPrefix, ending: Sequence[Var]
    ) -> None:
        """Bind the stack after a change, which is made in place if only the variables in `ending`, which are not
        read again, refer to it."""
        others = [self.atom(frame, a) for a in operands(change)][1:]
        held = [_stack(self.atom(frame, change.stack))]
        for variable in ending:
            frame.environment.pop(variable, None)
        alone = bool(ending) and is_alone(held)
        stack = held[0]
        match change:
            case StackPush():
                result = stack.push(others[0], alone)
            case StackSet(_, _, _, span):
                result = stack.with_element(_position(others[0], stack.length, span), others[1], alone)
            case StackPrefix(_, _, span):
                result = stack.prefix(_position(others[0], stack.length + 1, span), alone)
            case _:
                assert_never(change)
        self.steps.results(binding)(frame, (result,))

    # ---- calls

    def enter(
        self,
        function: object,
        arguments: Sequence[object],
        sizes: Mapping[TypeId, int] | None = None,
        quiet: bool = False,
        below: float = math.inf,
    ) -> None:
        """Push the frame of a function value, which sees these sizes. Below the frame of a differentiated function
        is the frame that waits for it."""
        while isinstance(function, GradientFunction):
            waiting = Differentiation.begin(function.grad, arguments, self.differentiator)
            self.frames.append(waiting)
            function, arguments = function.function, waiting.inputs
        if not isinstance(function, Closure):
            raise InternalError(f"{describe(function)} is called")
        definition = function.function
        quiet = quiet or self.quiet or isinstance(definition.rule, PrintErased)
        if isinstance(definition.rule, CustomGradient):
            tapes = [tape for tape in tapes_of(tuple(arguments)) if tape.level < below]
            if tapes:
                tape = max(tapes, key=lambda t: t.level)
                self._deliver(self._custom(function, definition.rule, tuple(arguments), tape, quiet))
                return
        known = self.sizes if sizes is None else sizes
        if function.sizes:
            known = {**known, **function.sizes}
        self.steps.prepare(definition)
        variables = self.environment(function.environment)
        frame = Frame(function, variables, [self.steps.activation(definition.body)], known, quiet)
        self.frames.append(frame)
        if len(self.frames) > self._deepest:
            self._deepest = max(stack_size() // CALL_BYTES, ALWAYS_DEEP_ENOUGH)
            if len(self.frames) > self._deepest:
                raise too_deep(self._deepest)
        self._bind(frame, definition.parameters, arguments)

    def return_from(self, frame: Frame, result: object) -> None:
        """Pop a frame and give its result to whoever waits for it."""
        if (
            self.checked
            and (type_ := frame.closure.function.result) is not None
            and not fits(result, type_, frame.sizes)
        ):
            raise InternalError(f"{frame.name} returned {describe(result)}, its type says {show(type_)}")
        self.frames.pop()
        self._deliver(result)

    def _custom(
        self, function: Closure, rule: CustomGradient, arguments: tuple[object, ...], tape: Tape, quiet: bool
    ) -> object:
        """The result of a function with a gradient of its own, whose arguments, or the contents of references in
        them, are on a tape."""
        named = {
            n: Closure(_function(function.module, n), {}, function.module) for n in function.function.rule_functions
        }

        def forward(outer: tuple[object, ...]) -> tuple[object, object]:
            if rule.forward is None:
                return self._nested_machine(quiet).run(function, outer, tape.level), outer
            result = self._nested_machine(quiet).run(named[rule.forward], outer)
            assert isinstance(result, tuple)
            return result[0], result[1]

        def backward(saved: object, seed: object) -> object:
            return self._nested_machine().run(named[rule.backward], (saved, seed))

        return self.differentiator.custom(arguments, tape, forward, backward)

    def _deliver(self, result: object) -> None:
        """Give a result to whoever waits for it."""
        while self.frames:
            caller = self.frames[-1]
            if isinstance(caller, Frame):
                assert caller.binding is not None
                self._bind(caller, caller.binding.targets, (result,))
                return
            result = caller.finish(result)
            self.frames.pop()
        self.result = result

    def _make_closures(self, frame: Frame, activation: Activation) -> None:
        """Bind a lambda and those that follow it. They refer to each other, and to the current values of everything
        else. They see each other, and what else they use as it is now."""
        bindings = activation.block.bindings
        end = activation.position
        while end < len(bindings) and isinstance(bindings[end].value, Lambda):
            end += 1
        group = bindings[activation.position - 1 : end]
        activation.position = end
        environment: dict[Var, object] = {}
        for binding in group:
            (target,) = binding.targets
            assert isinstance(binding.value, Lambda)
            environment[target] = Closure(binding.value.function, environment, frame.closure.module, frame.sizes)
        own = frozenset(environment)
        for binding in group:
            assert isinstance(binding.value, Lambda)
            for var in self._free_variables(binding.value.function):
                if var not in own:
                    environment[var] = self.atom(frame, var)
        frame.environment.update((target, environment[target]) for target in own)

    def _free_variables(self, function: Function) -> tuple[Var, ...]:
        found = self._captured.get(function)
        if found is None:
            found = self._captured[function] = tuple(free_variables(function))
        return found

    def _concrete_call(self, call: OpCall, sizes: Mapping[TypeId, int]) -> OpCall:
        """The call with numbers for symbolic dims: the same object for the same sizes, so that caches find it."""
        made = self._made_in.get(call)
        if made is None:
            made = self._made_in[call] = tuple(made_in_attributes(call.attributes.values()))
        key = (call, *(sizes[dim] for dim in made))
        found = self._sized_calls.get(key)
        if found is None:
            attributes = {name: attribute_with_sizes(value, sizes) for name, value in call.attributes.items()}
            found = OpCall(call.operator, call.arguments, attributes, call.span)
            self._sized_calls[key] = found
        return found

    # ---- variables

    def atom(self, frame: Frame, atom: Atom) -> object:
        if type(atom) is Var:
            try:
                return frame.environment[atom]
            except KeyError:
                raise InternalError(f"{atom!r} has no value in {frame.name}") from None
        match atom:
            case Constant(value):
                return value
            case Var():
                raise InternalError("a subclass of Var")
            case Global(name):
                return _global(frame.closure.module, name)
            case Static():
                raise InternalError("Static belongs to the surface IR and cannot be run")
            case other:
                assert_never(other)

    def _bind(self, frame: Frame, targets: Sequence[Var], values: Sequence[object]) -> None:
        if len(targets) != len(values):
            raise InternalError(f"{len(values)} values for {len(targets)} variables in {frame.name}")
        for target, value in zip(targets, values, strict=True):
            if self.checked:
                check(frame, target, value)
            frame.environment[target] = value


def _variables_note(calls: Sequence[RunningCall]) -> Iterator[str]:
    """The note of an error about the variables of a call."""
    for call in calls:
        shown = [str(variable) for variable in call.variables]
        if len(shown) > SHOWN_VARIABLES:
            shown = [f".. {len(shown) - SHOWN_VARIABLES} more in error.backtrace", *shown[-SHOWN_VARIABLES:]]
        if shown:
            yield "\n".join([f"in {call.function}:", *shown])


def _global(module: Module, name: str) -> Closure | GradientFunction:
    """A function of the module, or one that is still to be derived from another."""
    found = module.functions.get(name)
    if found is None:
        raise InternalError(f"the function {name} does not exist")
    if isinstance(found, Derivative):
        return GradientFunction(_global(module, found.of), found.grad)
    return Closure(found, {}, module)


def _function(module: Module, name: str) -> Function:
    found = module.functions[name]
    assert isinstance(found, Function)
    return found


def _cell(value: object) -> Reference:
    if not isinstance(value, Reference):
        raise InternalError(f"{describe(value)} is used as a reference")
    return value


def _position(value: object, length: int, span: Span | None) -> int:
    """An index into a stack."""
    position = int(value)  # type: ignore[call-overload]
    if not 0 <= position < length:
        raise ExecutionError(f"index {position} is out of range for a stack of {length}", span)
    return position  # type: ignore[no-any-return]


def _stack(value: object) -> Stack:
    if not isinstance(value, Stack):
        raise InternalError(f"{describe(value)} is used as a stack")
    return value


# ---- entry points


def run(module: Module, arguments: Sequence[object], checked: bool = True, names: SourceNames | None = None) -> object:
    """Call the module's entry with values (tensors are arrays, or Python numbers for rank 0). `names` are what the
    user's names mean in it.

    The result's arrays belong to the caller. Raises ExecutionError, DifferentiationError, or for arguments of a wrong
    number or type ExecutionError too.
    """
    return call(Closure(module.main, {}, module), arguments, checked, names)


def call(
    function: object, arguments: Sequence[object], checked: bool = True, names: SourceNames | None = None
) -> object:
    """Call a function value; as `run`."""
    sizes: dict[TypeId, int] = {}
    if isinstance(function, Closure):
        arguments = accept(function.function, arguments)
        sizes = sizes_of(function.module, function.function, arguments)
    return unbox(Machine(checked, sizes, names=names).run(function, arguments))


def accept(function: Function, arguments: Sequence[object]) -> list[object]:
    """The arguments as run-time values of the parameters' types."""
    if len(arguments) != len(function.parameters):
        raise ExecutionError(
            f"{function.name} takes {len(function.parameters)} arguments, found {len(arguments)}", function.span
        )
    accepted = []
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        value = argument if parameter.type is None else _convert(argument, parameter.type)
        if parameter.type is not None and not fits(value, parameter.type):
            raise ExecutionError(
                f"{parameter.name} must be {show(parameter.type)}, found {describe(value)}", parameter.span
            )
        accepted.append(value)
    return accepted


def _convert(value: object, type_: Type) -> object:
    type_ = prune(type_)  # type: ignore[assignment]
    match type_:
        case TensorType() if isinstance(value, bool | int | float):
            return np.asarray(value, dtype=type_.dtype)
        case TupleType(items) if isinstance(value, tuple) and len(value) == len(items):
            return tuple(map(_convert, value, items))
        case RefType(content) if isinstance(value, Reference):
            value.content = _convert(value.content, content)
        case StackType(element) if isinstance(value, Stack):
            return _list(value, prune(element))
        case _:
            pass
    return np.asarray(value) if isinstance(value, np.generic) else value


def _list(value: Stack, element: object) -> Stack:
    """A list from Python in the form that the module has: its elements are in cells, which passes may have left out."""
    items = value.buffer[: value.length]
    if isinstance(element, RefType) and isinstance(prune(element.content), RefType):
        return Stack(items, value.length)  # references of the user's, whose cells stay
    content = element.content if isinstance(element, RefType) else element
    held = [item.content if isinstance(item, Reference) else item for item in items]
    made = [_convert(item, content) for item in held]  # type: ignore[arg-type]
    return Stack([Reference(item) for item in made] if isinstance(element, RefType) else made, value.length)
