"""The decorated function: how it is called, and what may be asked of it.

Its programs are found or made, for each signature, by `relay.calling.programs`; a call like an earlier one goes by
`relay.calling.dispatch`.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import attrs

from relay.calling import checks
from relay.calling.all_gradients import gradient_place, with_gradients
from relay.calling.arguments import ArgumentDescription, describe, describe_static, too_deep
from relay.calling.closure_selection import (
    chosen_result,
    selection_definition,
    with_dtypes,
)
from relay.calling.dispatch import ProgramDispatcher
from relay.calling.donation import DonatedArguments, donated_names
from relay.calling.executable import Executable
from relay.calling.lowering import Lowering
from relay.calling.parameters import annotated_types, annotation, bind_arguments
from relay.calling.programs.compiler import FunctionCompiler
from relay.calling.programs.program_table import Explanation, Programs
from relay.calling.results import Values, wrap
from relay.compilation.custom_gradients import with_gradient
from relay.compilation.drawings import drawing
from relay.compilation.options import Options
from relay.compilation.program_cost import ProgramCost, signature_cost
from relay.compilation.stages import CompiledSignature
from relay.compilation.texts import general_text, typed_text
from relay.errors import CompileError, FrontendError, InternalError, RelayError, RelayWarning
from relay.eval import interpreter
from relay.eval.values import Data
from relay.frontend import lower
from relay.frontend.data import data_classes
from relay.frontend.functions import with_static
from relay.ir.definition import Definition, DerivedDefinition, primal, seed_count
from relay.ir.expr import Module, Parameter
from relay.ir.types import Type, show
from relay.support import python_mode
from relay.support.locks import compiling
from relay.text.display.drawing import Drawing
from relay.text.display.programs import program_html
from relay.typecheck.elaboration import Argument, StaticArg, load, scheme

if TYPE_CHECKING:
    from relay.codegen.runtime.cpu import Program
    from relay.codegen.tiling import Choices

log = logging.getLogger("relay.compile")


class RelayFunction(ProgramDispatcher):
    """A function of the language: what `@relay` and `relay.grad` return. Call it with arrays, numbers and tuples of
    them.

    Raises FrontendError at decoration for constructs that Relay does not have, TypeCheckError at the first call with
    new types, ExecutionError for what can be found only at run time.
    """

    def __new__(cls, definition: Definition | DerivedDefinition, options: Options, *others: Any) -> RelayFunction:
        """Functions whose results are checked, and those that return the gradients of all parameters, are of classes of
        their own."""
        if cls is not RelayFunction:
            return super().__new__(cls)
        gives_all = isinstance(definition, DerivedDefinition) and gradient_place(definition) is not None
        own = _Differentiating if gives_all else cls
        return super().__new__(own if options.check is None else _Checking)

    def __init__(
        self,
        definition: Definition | DerivedDefinition,
        options: Options,
        wrapped: Callable[..., Any] | None = None,
        donated: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(primal(definition).function, seed_count(definition))
        self.__relay__ = definition
        self._options = options
        self._compiler = FunctionCompiler(self, self._programs, options, donated)
        self._warned: set[str] = set()  # of what the interpreter runs, since it cannot be compiled
        self._made: dict[object, RelayFunction] = {}  # its derivatives and other transformations
        self._lock = self._compiler.lock
        self._donated = donated
        self._python = wrapped
        self.__name__ = self._function.name
        self.__doc__ = self._function.documentation
        if wrapped is not None:
            functools.update_wrapper(self, wrapped)

    # ---- running

    @property
    def python(self) -> Callable[..., Any] | None:
        """The Python function that was decorated; None for functions made of others, or of a text."""
        return self._python

    @property
    def __func__(self) -> Any:  # so that `break f` of pdb is one in the Python function
        if self._python is None:
            raise AttributeError("__func__")
        return self._python

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """In a class it is a method, as a Python function is: `self` is its first argument."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        """It is pickled as Python functions are, by its name, and copied as itself. Raises TypeError without a name."""
        if self._python is None:
            raise TypeError(f"{self!r} has no name in a module, by which it could be pickled")
        return self._python.__qualname__

    def __copy__(self) -> RelayFunction:
        return self

    def __deepcopy__(self, memo: object) -> RelayFunction:
        return self

    def _compile_call(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[CompiledSignature, Values]:
        """As `_lower`: a program that code generation takes."""
        lowered, values = self._lower(arguments, keywords, device=True)
        if lowered.chooses_functions:
            return lowered, values
        while lowered.is_symbolic and not self._compiler.lowers(
            lowered,
            lambda lowered=lowered, values=values: lowered.for_values(values).program,  # type: ignore[misc]
        ):
            lowered, values = self._lower(arguments, keywords, device=True)
        return lowered.for_values(values), values

    def interpret(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the same program on the reference interpreter."""
        __tracebackhide__ = True
        lowered, values = self._lower(arguments, keywords, symbolic=True)
        if lowered.chooses_functions:
            return self._choose(lowered, arguments, keywords, True)
        lowered.warn_of_breakpoints()
        try:
            found = interpreter.run(lowered.user_program, values, names=lowered.source_names)
        finally:
            values.give_back(lowered.parameters, interpreted=True)
        result = wrap(found, lowered.result, interpreted=True)
        return result if lowered.returned is None else lowered.returned(result, self, True)

    def _run_fallback(self, error: InternalError, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """The interpreter's result for a call that cannot be compiled, if the function or RELAY_FALLBACK says so; a
        warning says it once for each program. Otherwise the error is raised."""
        __tracebackhide__ = True
        if not self._options.interprets:
            raise error
        with self._lock:
            is_new = str(error) not in self._warned
            self._warned.add(str(error))
        if is_new:
            reason = f"{self.__name__} runs on the interpreter, much more slowly, for it cannot be compiled:\n{error}"
            warnings.warn(reason, RelayWarning, stacklevel=3)
        return self.interpret(*arguments, **keywords)

    def _choose(
        self, lowered: CompiledSignature, arguments: Sequence[Any], keywords: Mapping[str, Any], interpreted: bool
    ) -> Any:
        """The result of a call that returns functions that are selected at run time."""
        __tracebackhide__ = True
        names = [p.name for p in self._function.parameters]
        names += [f"seed{i}__" for i in range(self._seeds)]
        signature = list(self._function.signature) or [Parameter() for _ in names]
        signature += [Parameter()] * (len(names) - len(signature))
        described = self._describe(arguments, keywords)
        values = with_dtypes(self._bind(arguments, keywords), described, lowered.typed.main)
        bound = zip(names, signature, values, strict=True)
        given = [(name, s, v) for name, s, v in bound if not (isinstance(v, StaticArg) and v.default)]
        kept = [(name, s) for name, s, _ in given]

        def run(result: str, parameters: int | None) -> Any:
            key = ("chosen", result, parameters, tuple(name for name, _ in kept))
            call = self.make_once(
                key, lambda: selection_definition(self.__relay__, self.__name__, kept, result, parameters)
            )
            return (call.interpret if interpreted else call)(*(value for _, _, value in given))

        return chosen_result(lowered, run)

    def prepare_call(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], as_called: bool = False
    ) -> tuple[CompiledSignature, Values]:
        """The program for the sizes of these arguments, and their run-time values, for tools that run it themselves;
        `as_called`: that of a call, which may be for other sizes, too. Raises CompileError if it returns functions that
        are selected at run time: it is run once for each choice."""
        if as_called:
            try:
                lowered, values = self._compile_call(arguments, keywords)
            except InternalError:  # which the program raises again
                lowered, values = self._lower(arguments, keywords, symbolic=False)
        else:
            lowered, values = self._lower(arguments, keywords, symbolic=False)
        if lowered.chooses_functions:
            raise _selection_error(self)
        return lowered, values

    def prepare_compiled(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[CompiledSignature, Values]:
        """As `prepare_call`, but the program that a call with these arguments runs, which may be of symbolic sizes."""
        lowered, values = self._compile_call(arguments, keywords)
        if lowered.chooses_functions:
            raise _selection_error(self)
        return lowered, values

    def with_program(
        self, lowered: CompiledSignature, program: Program, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> RelayFunction:
        """A function that is called as this one is, and runs another native program of this one's for such
        arguments."""
        made = type(self)(self.__relay__, self._options, None, self._donated)
        key = tuple(d.key for d in self._describe(arguments, keywords))
        made._programs.exact[key] = lowered.with_native(program)
        return made

    def make_once(self, key: object, make: Callable[[], Definition]) -> RelayFunction:
        """A function that is made of this one; the same one each time."""
        found = self._made.get(key)
        if found is None:
            found = self._made.setdefault(key, RelayFunction(make(), self._options))
        return found

    def reload(self) -> None:
        """Forget compiled programs, and read the captured numbers and arrays again at the next call.

        A program takes them from the Python variables around it when it is first type-checked, and keeps those values.
        """
        with self._lock:
            self._programs.clear()
            self._compiler.reload()
            self._warned.clear()
            derived = list(self._made.values())
        for function in derived:
            function.reload()

    def def_gradient(
        self, backward: Callable[..., Any] | None = None, *, saving: Callable[..., Any] | None = None
    ) -> Any:
        """Say how this function is differentiated: a decorator for `backward(saved, seed)`.

        `seed` is the cotangent of the result; `backward` returns those of the parameters, bare for a single one, with
        None for what has no gradient. `saved` is the tuple of the arguments, or what `saving` keeps: a function of the
        same parameters that returns (result, saved) and runs in place of this one in the forward part. Both are
        functions of the language, and differentiated themselves at the next order.

        Raises FrontendError if the function has been used already, or is a derivative; their types are checked with the
        function's.
        """
        definition = self.__relay__
        if not isinstance(definition, Definition):
            raise FrontendError("the gradient of a derivative is not defined; define that of the function")

        def define(python: Callable[..., Any]) -> RelayFunction:
            assert isinstance(definition, Definition)
            if self._programs or self._made:
                raise FrontendError(
                    f"the gradient of {self.__name__} must be defined before the first call or derivative",
                    self._function.span,
                )
            rule, kept = _ensure_decorated(python), None if saving is None else _ensure_decorated(saving)
            self.__relay__ = with_gradient(definition, rule.__relay__, None if kept is None else kept.__relay__)
            return rule

        return define if backward is None else define(backward)

    def compile(self, *arguments: Any, **keywords: Any) -> Executable:
        """The compiled program for these arguments: arrays, numbers, structures of them, or their types
        (`Tensor[Float, (64, 784)]`). None are needed where annotations give all types. `target="vta"`, unless that is a
        parameter of the function, is as in `@relay(target="vta")`."""
        __tracebackhide__ = True
        options = self._options
        if "target" in keywords and "target" not in [p.name for p in self._function.parameters]:
            options = attrs.evolve(options, target=keywords["target"])
            keywords = {name: value for name, value in keywords.items() if name != "target"}
        if not arguments and not keywords and not self._seeds:
            arguments = annotated_types(self._function)
        if options.target == self._options.target:
            lowered, _ = self._compile_call(arguments, keywords)
            lowered = lowered.whole or lowered
        else:
            lowered, _ = self._lower(arguments, keywords, symbolic=False if options.dynamic is False else None)
            lowered = lowered.for_target(options.target)
        lowered.refuse_functions()
        program = lowered.program
        parameters = [(p.name, p.type) for p in lowered.typed.main.parameters if p.type is not None]
        return Executable(self.__name__, program, parameters, lowered.result, self._donated, lowered.parameters)

    # ---- looking inside

    def tunable(self, *arguments: Any, **keywords: Any) -> Callable[[Choices], Callable[[], object]]:
        """A compiler of the program for these arguments' sizes with given choices; what it returns is called without
        arguments. The call prints nothing."""
        from relay.ad.print_erasure import without_prints
        from relay.codegen.runtime import cpu

        lowered, values = self._lower(arguments, keywords, symbolic=False)
        core, threads = without_prints(lowered.core), cpu.default_threads()

        def compile_with(choices: Choices) -> Callable[[], object]:
            program = cpu.Program(cpu.compile_native(core, threads, choices), Data)
            return lambda: program(values)

        return compile_with

    def forget_programs(self) -> None:
        """Let the next calls generate code again."""
        with self._lock:
            self._programs.forget_native_code()

    def lower(self, *arguments: Any, **keywords: Any) -> Lowering:
        """The function at the types of these arguments, without running it: `.typed` and `.core` are its programs,
        `.text` is the core as text, `.compile()` gives native code.

        Raises what a call would raise before it runs: TypeCheckError, TypeMismatch, ShapeError.
        """
        lowered, values = self._lower(arguments, keywords)
        core = lambda: self.core(*arguments, **keywords)  # noqa: E731
        return Lowering(lowered.typed, lowered.result, values, core, lambda: self.compile(*arguments, **keywords))

    def programs(self) -> Programs:
        """The programs that were compiled for calls of this function: for which signature, why, how often each was
        used, and how long it took."""
        with self._lock:
            return self._programs.programs()

    def explain(self, *arguments: Any, **keywords: Any) -> Explanation:
        """The program that serves a call, or the guards that fail and what would be compiled. Compiles nothing.
        Raises what a call would raise for arguments that Relay cannot take."""
        described, symbolic = self._describe(arguments, keywords), self._may_be_symbolic(None)
        key, types = tuple(d.key for d in described), [d.argument for d in described]
        last = self._last_program(arguments, keywords)
        with self._lock:
            return self._programs.explain(key, types, symbolic, bool(self._options.dynamic), last, self._compiler.lists)

    def module(self, *arguments: Any, **keywords: Any) -> Module:
        """The IR module for these arguments: the typed, higher-order program, as `typed`."""
        return self.typed(*arguments, **keywords)

    def cost(self, *arguments: Any, **keywords: Any) -> ProgramCost:
        """The floating-point operations, the bytes moved and the memory of a call with these arguments, or with
        arguments of these types: in all, by line and by operator, as numbers and as formulas of the sizes. Nothing
        runs.

        Counted is the optimized program for any sizes, of a derivative its forward and backward part
        (`relay.compilation.program_cost`). Raises what a call would raise before it runs.
        """
        lowered, given = self._compiler.program_of_any_size(self._descriptions(arguments, keywords))
        return signature_cost(lowered, given)

    @property
    def surface(self) -> Module:
        """The function before elaboration: untyped, with the names that it takes from Python. Of a derivative it is
        the function that is differentiated."""
        return Module({self._function.name: self._function}, self._function.name)

    def typed(self, *arguments: Any, **keywords: Any) -> Module:
        """The typed, higher-order program for these arguments."""
        return self._lower(arguments, keywords)[0].typed

    def core(self, *arguments: Any, **keywords: Any) -> Module:
        """The first-order program that these arguments run: specialized, differentiated, optimized."""
        lowered = self._lower(arguments, keywords)[0]
        if lowered.is_symbolic and not self._compiler.lowers(lowered, lambda: lowered.core):
            lowered = self._lower(arguments, keywords, symbolic=False)[0]
        return lowered.core

    @property
    def type(self) -> Type:
        """The function's type, quantified over what annotations leave open.

        What depends on the call is written as an application of a type-level function, `broadcast(s1, s2)`. Raises
        TypeCheckError where the program has none.
        """
        return scheme(self.__relay__).type

    def text(self, *arguments: Any, **keywords: Any) -> str:
        """The program as text: the typed program, of a derivative its code, under the lines of the source.

        Without arguments it is at the types that the annotations give, and parts that only a call decides are shown by
        variables, or untyped; a derivative's code needs all types, from annotations or from arguments.
        """
        if arguments or keywords:
            return typed_text(self.__relay__, self.typed(*arguments, **keywords))
        return general_text(self.__relay__)

    def plot(self, *arguments: Any, stage: str = "typed", derivative: bool = False, **keywords: Any) -> Drawing:
        """The data flow for these arguments, or for the types that the annotations give, as a drawing: notebooks show
        it, `.save("f.svg")` writes a file. Loops, branches and functions are boxes; edges are labeled with the types of
        values.

        `stage`: "typed", the program as it is written; "core", first-order, before optimization; "optimized";
        "kernels", where each is a function. `derivative`: the program of the gradient beside it.

        Raises FrontendError for another stage, and what a call would raise before it runs.
        """
        types: list[Argument] = []
        if not arguments and not keywords and not self._seeds:
            types += annotated_types(self._function)
        if not types:
            types += (d.argument for d in self._describe(arguments, keywords))
        with compiling:
            load()
        return drawing(self.__relay__, types, stage, self._options.opt_level, derivative)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<relay function {self.__name__}>"

    def _repr_html_(self) -> str:
        """The program as HTML for notebooks, with types shown on hover; or the reason why it has none."""
        try:
            return program_html(self.__name__, show(self.type), self.text())
        except RelayError as error:
            return program_html(self.__name__, "", None, error.diagnostics)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    # ---- from Python's arguments to a program

    def _lower(
        self,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        symbolic: bool | None = None,
        device: bool = False,
    ) -> tuple[CompiledSignature, Values]:
        """The program for these arguments, and their run-time values. `symbolic`: it may have symbolic sizes. With
        `device`, tensors on a GPU stay there, and the program is for it; otherwise they are copied to the host."""
        given = self._descriptions(arguments, keywords)
        described = self._programs.with_static(given)
        lowered = self._programs.exact.get(tuple(d.key for d in described))
        if lowered is None:
            described, lowered = self._compiler.serve(given, self._may_be_symbolic(symbolic))
        parameters = iter(lowered.typed.main.parameters)
        values = Values(types=True, device=device)
        for d in described:
            if not isinstance(d.argument, StaticArg):
                parameter = next(parameters)
                assert parameter.type is not None
                values.add(d.value, parameter.type, parameter.name)
        return (lowered.on_gpu() if values.on_device else lowered), values

    def describe_arguments(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[Argument]:
        """The abstract arguments of a call: what the type checker needs to know of each. Raises what a call would
        raise for them."""
        return [described.argument for described in self._describe(arguments, keywords)]

    def _describe(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[ArgumentDescription]:
        """The arguments of a call, by the parameters; numbers that configure the program are static."""
        return self._programs.with_static(self._descriptions(arguments, keywords))

    def _descriptions(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[ArgumentDescription]:
        """The arguments of a call, by the parameters, as they are given."""
        given = self._bind(arguments, keywords)
        signature = self._function.signature
        static = [position < len(signature) and signature[position].static for position in range(len(given))]
        try:
            return [
                describe_static(v, self._function, i)
                if static[i]
                else describe(v, self._function, i, annotation=annotation(self.__relay__, i))
                for i, v in enumerate(given)
            ]
        except RecursionError:
            raise too_deep(given, self._function) from None

    def _may_be_symbolic(self, symbolic: bool | None) -> bool:
        return self._options.dynamic is not False if symbolic is None else symbolic

    def _bind(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
        return bind_arguments(self.__relay__, self.__name__, self._seeds, arguments, keywords)


class _Donating(RelayFunction):
    """A function whose results may take the memory of some of its arguments."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        if python_mode.active.get() is not None:
            return super().__call__(*arguments, **keywords)
        names = [parameter.name for parameter in self._function.parameters]
        with DonatedArguments(self.__name__, names, self._bind(arguments, keywords), self._donated):
            return super().__call__(*arguments, **keywords)


class _Checking(RelayFunction):
    """A function whose results are checked: a NaN or infinity is an ExecutionError that tells where it comes from."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        if python_mode.active.get() is not None:
            return super().__call__(*arguments, **keywords)
        before = checks.argument_copies((arguments, keywords))
        result = super().__call__(*arguments, **keywords)
        checks.require_finite(self, result, *before)
        return with_gradients(self.__relay__, result)


class _Differentiating(RelayFunction):
    """A derivative with respect to all of several parameters: what it returns is not taken for one gradient."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        return with_gradients(self.__relay__, super().__call__(*arguments, **keywords))

    def interpret(self, *arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        return with_gradients(self.__relay__, super().interpret(*arguments, **keywords))


def _selection_error(function: RelayFunction) -> CompileError:
    """The error of tools for a function whose result selects functions at run time."""
    return CompileError(
        f"{function.__name__} returns a function that is selected at run time",
        function._function.span,
        help="debug a function that calls it and returns what it computes",
    )


# ---- the public functions


def data_class(cls: type, frame: Any) -> type:
    """Make a class a data type. `frame` is the Python frame that decorates it. Raises FrontendError."""
    place = data_classes.ClassPlace.from_frame(cls, frame)
    return data_classes.define(cls, place, lambda definition, python=None: RelayFunction(definition, Options(), python))


def decorate(python: Callable[..., Any], options: Options, frame: FrameType | None = None) -> RelayFunction:
    """Read a Python function's source and make it a function of the language. `frame` is the Python frame that
    decorates it. Raises FrontendError."""
    behind = "put @relay directly above `def`, and the other decorator above it"
    if isinstance(python, type):
        raise data_classes.decorated_class(python, frame)
    if not isinstance(python, FunctionType):
        help = "write a function that calls it: relay(lambda x: f(x))"
        if hasattr(python, "__wrapped__") or isinstance(python, staticmethod | classmethod):
            help = behind
        raise FrontendError(f"@relay decorates functions, found {type(python).__name__}", help=help)
    try:
        definition = lower.lower_function(python)
    except FrontendError as error:
        if hasattr(python, "__wrapped__"):
            error.notes = (*error.notes, f"this is the result of another decorator on {python.__name__}")
            error.help = behind
        raise
    definition = attrs.evolve(with_static(definition, options.static_argnames), pure=options.pure)
    donated = donated_names(definition.function, options.donate_argnames, options.donate_argnums)
    return _Donating(definition, options, python, donated) if donated else RelayFunction(definition, options, python)


def _ensure_decorated(function: Callable[..., Any]) -> RelayFunction:
    return function if isinstance(function, RelayFunction) else decorate(function, Options())


def explain(f: RelayFunction, /, *arguments: Any, **keywords: Any) -> Explanation:
    """The program of `f` that serves a call with these arguments, or the guards that fail and what would be compiled.

    Compiles nothing. Raises FrontendError for what is not a decorated function, and what the call would raise for
    arguments that Relay cannot take.
    """
    if not isinstance(f, RelayFunction):
        raise FrontendError(f"explain takes a decorated function, found {type(f).__name__}", help="explain(f, x)")
    return f.explain(*arguments, **keywords)
