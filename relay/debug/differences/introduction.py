"""The introduction of a difference: the pass, or the code of the kernel, that caused it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from relay.ad import reverse
from relay.codegen.runtime import cpu
from relay.compilation import tuning_records
from relay.compilation.stages import CPU, CompiledSignature, lowering
from relay.debug.differences.outcomes import (
    ENDLESS,
    FAILURES,
    Outcome,
    Tolerance,
    compare,
    copy_values,
    interpreted_outcome,
)
from relay.debug.differences.search import Change, Runner
from relay.errors import InternalError
from relay.eval.values import Data, Reference
from relay.ir.expr import Module, OpCall
from relay.ir.traverse import walk
from relay.support.locks import compiling
from relay.transform.passes import ConfiguredPass
from relay.transform.pipeline import Pipeline

LIMIT = 100_000
"""The steps that any run on the interpreter may take."""


@attrs.frozen(eq=False)
class Cause:
    """The cause of the difference. `kind` is "pass", "kernel", "code" (around the kernels: loops, calls, memory) or
    "program" (that of earlier calls: a newly compiled one is right), "target" (an accelerator) or "reference" (an
    operator's, which fails where its compiled code gives a result). `name`: of the
    pass, or the operators of the kernel; `rule` and `reason`: the schedule rule of the kernel's loops, and why it
    was chosen. `position` counts the passes from 1 on; `before` is the program that differs after this step.
    `inner`: of differentiation, the pass between two orders that is wrong."""

    kind: str
    name: str
    rule: str = ""
    reason: str = ""
    position: int = 0
    passes: int = 0
    level: int = 0
    inner: str | None = None
    before: Module | None = attrs.field(default=None, repr=False)

    def __str__(self) -> str:
        match self.kind:
            case "pass":
                inner = "" if self.inner is None else f", by {self.inner} between two derivatives"
                return f"the pass {self.name}{inner}, number {self.position} of {self.passes} at level {self.level}"
            case "kernel":
                return f"the kernel of {self.name}, by the schedule rule {self.rule}: {self.reason}"
            case "code":
                return f"code generation, around the kernels{f' of {self.name}' if self.name else ''}"
            case "reference":
                return f"the reference of {self.name}, which fails: the interpreter cannot run it, compiled code can"
            case "target":
                return f"the target {self.name}: compiled for the processor it is right"
            case _:
                return "the native program of earlier calls: a newly compiled one is right"


def native_runner(native: cpu.Program) -> Runner:
    """A compiled program as what is compared."""

    def run(arguments: Sequence[object]) -> Outcome:
        given = copy_values(arguments)
        try:
            return Outcome(native(given), tuple(given))
        except FAILURES as error:
            return Outcome(error=error)
        except Exception as error:  # of Python functions that it calls
            return Outcome(error=InternalError(f"{type(error).__name__}: {error}"))

    return run


def compiled_runner(module: Module) -> Runner:
    """Code generation as a change. Raises CompileError or InternalError."""
    threads = cpu.default_threads()
    with compiling:
        native = cpu.compile_native(module, threads, tuning_records.choices(threads))
    return native_runner(cpu.Program(native, Data, Reference))


def pass_change(step: ConfiguredPass, limit: int) -> Change:
    """A pass as a change, after which the interpreter runs the program."""

    def change(module: Module) -> Runner:
        changed = _apply(step, module)
        return lambda arguments: interpreted_outcome(changed, arguments, limit)

    return change


def _apply(step: ConfiguredPass, module: Module) -> Module:
    """Raises InternalError where the pass fails."""
    try:
        return step(module)
    except FAILURES:
        raise
    except Exception as error:
        raise InternalError(f"the pass {step.name} fails: {type(error).__name__}: {error}", module.main.span) from error


def find_cause(
    signature: CompiledSignature, arguments: Sequence[object], expected: Outcome, tolerance: Tolerance
) -> tuple[Cause, Change]:
    """The cause of a program's difference from its reference, and that as a change. The passes are run again, and
    bisection finds the first pass after which the program differs."""
    steps = lowering(signature.level).passes
    limit = LIMIT + ENDLESS * expected.steps
    modules = [signature.typed]
    for step in steps:
        try:
            modules.append(_apply(step, modules[-1]))
        except FAILURES:
            return _pass(steps, len(modules) - 1, modules[-1], signature.level), pass_change(step, limit)

    def differs(position: int) -> bool:
        return differs_after(modules[position])

    def differs_after(module: Module) -> bool:
        return compare(interpreted_outcome(module, arguments, limit), expected, tolerance).differs

    if differs(len(steps)):
        position = _bisect_steps(len(steps), differs)
        cause, step = _pass(steps, position, modules[position], signature.level), steps[position]
        inner = (
            None
            if step.name != "differentiate"
            else _pass_between_derivatives(modules[position], signature.level, differs_after)
        )
        return (cause if inner is None else attrs.evolve(cause, inner=inner)), pass_change(step, limit)
    core = modules[-1]
    try:
        again = compiled_runner(core)(arguments)
    except FAILURES as error:
        again = Outcome(error=error)
    if compare(again, expected, tolerance).differs:
        return Cause("code", "", level=signature.level, before=core), compiled_runner
    kind = "program" if signature.target == CPU else "target"
    return Cause(kind, signature.target, level=signature.level), compiled_runner


def _bisect_steps(count: int, differs: Callable[[int], bool]) -> int:
    """The number of `count` steps that may be taken so that nothing differs, while it does after one more."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle, high)
    return low


def _pass_between_derivatives(module: Module, level: int, differs: Callable[[Module], bool]) -> str | None:
    """The pass between two derivatives that makes the difference; None if differentiation itself does."""
    steps = Pipeline.for_level(level, ("between",)).passes

    def differs_with(count: int) -> bool:
        def differs_between(derivative: Module) -> Module:
            for step in steps[:count]:
                derivative = step(derivative)
            return derivative

        return differs(reverse.differentiate(module, differs_between))

    try:
        return None if differs_with(1) else steps[_bisect_steps(len(steps), differs_with)].name
    except FAILURES:
        return None


def _pass(steps: Sequence[ConfiguredPass], position: int, before: Module, level: int) -> Cause:
    return Cause("pass", steps[position].name, position=position + 1, passes=len(steps), level=level, before=before)


def kernel_cause(cause: Cause, module: Module) -> Cause:
    """The cause with the kernel of a program that has little else; as it is if there is none."""
    with compiling:
        from relay.codegen.lowering.module_builder import schedules

    threads = cpu.default_threads()
    try:
        found = schedules(module, threads, tuning_records.choices(threads))
    except FAILURES:
        return cause
    last = [b.value.operator for b in walk(module.main.body) if isinstance(b.value, OpCall)][-1:]
    chosen = [s for s in found if set(last) <= set(s.operators)] or list(found)
    if not chosen:
        return cause
    kernel = chosen[-1]
    name = ", ".join(kernel.operators)
    if len(found) > 1 and len(module.functions) > 1:
        return attrs.evolve(cause, name=name)
    rule = kernel.decisions[0] if kernel.decisions else None
    return attrs.evolve(
        cause,
        kind="kernel",
        name=name,
        rule="" if rule is None else rule.rule,
        reason="" if rule is None else rule.reason,
    )
