"""RELAY_VERIFY=1: differential test of machine code against the operators' references before its use.

Machine code is made by Relay, TVM and LLVM for one processor, and any of them may be wrong on it. So a compiled program
without control flow is run on small random arguments, and its results are compared with those of the operators'
references. Of other programs the kernels are tried, in a program without control flow that is made of them; those that
this process has tried before are not tried again.

Results agree if they differ by what roundings may do: those of a few kernels, or what becomes of a rounding of the
arguments. What may be decided by a rounding (places, comparisons and steps of computed floats) is not compared.
Integers are drawn until the program accepts them, as indices of short axes; what operators require of their operands
is asserted before each kernel. Programs with more than `MOST` elements are not tried, nor kernels for data-dependent
sizes, since the rest of the program decides what these may be. Nor are operators that are Python functions, since
these may notice that they are called.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import ml_dtypes
import numpy as np

from relay.errors import ExecutionError, MachineCodeError, RelayError
from relay.eval.sizes import attribute_with_sizes, with_sizes
from relay.ir import tree
from relay.ir.dims import DataDependentDim, TypeId, evaluate, variables
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Block,
    Constant,
    Exit,
    Function,
    LoopLabel,
    MakeTuple,
    Module,
    OpCall,
    Project,
    Var,
)
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.traverse import all_blocks
from relay.ir.types import BOOL, BaseType, TensorType, TupleType, Type
from relay.operator import Emitter, Operator, Pattern, lookup
from relay.support import progress
from relay.transform.fusion.fusion_groups import FusionGroup, plan

if TYPE_CHECKING:
    from relay.codegen.runtime.native import NativeModule

log = logging.getLogger("relay.compile")

Array = np.ndarray[Any, np.dtype[Any]]

MOST = 200_000
"""The most elements of all values of a program that is tried."""

TOGETHER = 30
"""Kernels that are tried in one program."""

APART = 8
"""Of at most this many kernels that are refused together each is tried by itself."""

INTEGERS = ((0, 4), (0, 2), (1, 2), (0, 1))
"""Ranges of the integers among arguments, until a program accepts some: indices of short axes, divisors that are not
0."""

ROUNDINGS = {"float64": 1e-10, "float32": 3e-5, "float16": 2.0**-5, "bfloat16": 2.0**-2}
"""Errors of a few kernels, relative to the largest number that is computed; the coarsest dtype among them counts."""

ADDITION = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-24, "bfloat16": 2.0**-24}
"""The rounding of one addition, relative to its result; short floats are added in float32. A sum of n terms, one after
another, may be wrong by n of them."""

CHANGES = 50
"""The number of times the effect of a rounding of the arguments by which a result may differ, in addition."""

_EXACT = frozenset(
    {"negative", "abs", "maximum", "minimum", "relu", "where", "max", "min", "sort", "topk_values", "copy"}
)
_STEPS = frozenset({"floor", "ceil", "round", "trunc", "sign", "mod", "floor_divide", "where"})

_tried: set[object] = set()
"""The keys of the kernels that this process has tried."""


def verify(module: Module, native: NativeModule, threads: int) -> None:
    """Try the machine code of a structured first-order program. Raises MachineCodeError if it is wrong."""
    progress.show_progress("verifying the machine code")
    if native.externals is None and _is_straight(module):
        _try(module, native, threads)
        return
    free: list[FusionGroup] = []
    demanding: list[FusionGroup] = []  # whose operands have to fit each other, as indices do
    for kernel in _unverified_kernels(module):
        (free if all(map(_is_free, kernel.bindings)) else demanding).append(kernel)
    for kernels in (free, demanding):
        for start in range(0, len(kernels), TOGETHER):
            _try_kernels(kernels[start : start + TOGETHER], module, threads)


def _try_kernels(kernels: Sequence[FusionGroup], module: Module, threads: int) -> None:
    """Try kernels in one program; each by itself, if arguments of some are refused."""
    made = _of_kernels(kernels, module)
    try:
        compiled = _compile_module(made, threads)
    except RelayError as error:
        log.info("some kernels of %s are not verified: %s", module.entry, error.message)
        return
    if not _try(made, compiled, threads) and 1 < len(kernels) <= APART:
        for kernel in kernels:
            _try_kernels([kernel], module, threads)


def _compile_module(module: Module, threads: int) -> NativeModule:
    from relay.codegen.lowering.module_builder import assemble

    return assemble(module, threads, {})


# ---- which programs


def _is_straight(module: Module) -> bool:
    """True if a program only computes tensors from tensors."""
    main = module.main
    kinds = (OpCall, MakeTuple, Project, Assert)
    return (
        all(isinstance(binding.value, kinds) for binding in main.body.bindings)
        and isinstance(main.body.terminator, Exit)
        and all(_is_of_tensors(p.type) for p in main.parameters)
    )


def _is_of_tensors(type_: Type | None) -> bool:
    if isinstance(type_, TupleType):
        return all(map(_is_of_tensors, type_.items))
    return isinstance(type_, TensorType)


def _unverified_kernels(module: Module) -> Iterator[FusionGroup]:
    """The kernels of a program that have not been tried, without the calls of Python functions."""
    from relay.codegen.kernels.kernels import signature

    for function in module.functions.values():
        if not isinstance(function, Function):
            continue
        for block in all_blocks(function.body):
            for group in plan(block).values():
                ours = tuple(binding for binding in group.bindings if not _is_external(binding))
                left = {binding.targets[0] for binding in ours}
                outputs = tuple(v for v in group.outputs if v in left)
                if not outputs:
                    continue
                part = FusionGroup(ours, outputs, tuple(v for v in group.kept if v in left))
                _, sizes, key = signature(part)
                if key not in _tried and not any(isinstance(size, DataDependentDim) for size in sizes):
                    _tried.add(key)
                    yield part


def _is_external(binding: Binding) -> bool:
    """True if a call is one of a Python function, which may notice it."""
    assert isinstance(binding.value, OpCall)
    return lookup(binding.value.operator).external is not None


def _is_free(binding: Binding) -> bool:
    """True if a call may have any operands of its types: it has no requirements of them, and does not use them as
    indices."""
    call = binding.value
    assert isinstance(call, OpCall)
    operator = lookup(call.operator)
    whole = [a for a in call.arguments if not (isinstance(t := _type(a), TensorType) and _is_float(t))]
    if not whole:
        return True
    together = operator.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST, Pattern.REDUCTION)
    return not operator.requirements and (together or len(call.arguments) == 1 or operator.variadic)


def _type(atom: Atom) -> Type | None:
    return atom.type if isinstance(atom, Var | Constant) else None


def _is_float(type_: TensorType) -> bool:
    return isinstance(type_.base, BaseType) and type_.base.is_float


def _of_kernels(groups: Sequence[FusionGroup], module: Module) -> Module:
    """A program that runs kernels on arguments of their own. Sizes are shown by further arguments."""
    from relay.codegen.kernels.kernels import signature

    parameters: list[Var] = []
    bindings: list[Binding] = []
    results: list[Var] = []
    dims: dict[TypeId, None] = {}
    for group in groups:
        dims |= dict.fromkeys(signature(group)[1])
        own: dict[Var, Var] = {}

        def rename_atom(atom: Atom, own: dict[Var, Var] = own) -> Atom:
            if not isinstance(atom, Var):
                return atom
            if atom not in own:
                own[atom] = Var(atom.name, atom.type)
                parameters.append(own[atom])
            return own[atom]

        for binding in group.bindings:
            call = binding.value
            assert isinstance(call, OpCall)
            changed = OpCall(call.operator, tuple(map(rename_atom, call.arguments)), call.attributes, call.span)
            (target,) = binding.targets
            own[target] = Var(target.name, target.type)
            bindings += _requirements(changed)
            bindings.append(Binding((own[target],), changed))
        results += [own[output] for output in group.outputs]
    parameters += [Var(dim.name, TensorType(BOOL, (dim,))) for dim in dims]
    where = tuple(c for c in module.where if all(v in dims for v in (*variables(c.left), *variables(c.right))))
    return _with_results(results, parameters, bindings, where)


def _requirements(call: OpCall) -> list[Binding]:
    """The assertions of what an operator requires of its operands, as elaboration writes them before the call."""
    operator = lookup(call.operator)
    emitter = Emitter(call.span)
    for requirement in operator.requirements:
        symbols = [emitter.value(a) for a in call.arguments]
        holds = requirement.holds(*((tuple(symbols),) if operator.variadic else symbols), **call.attributes)
        if holds is not None:
            emitter.bindings.append(Binding((), Assert(holds.atom, requirement.message, call.span)))
    return emitter.bindings


def _with_results(results: Sequence[Var], parameters: Sequence[Var], bindings: Sequence[Binding], where: Any) -> Module:
    type_ = TupleType(tuple(r.type for r in results if r.type is not None))
    whole, label = Var("results", type_), LoopLabel("tried")
    body = Block((*bindings, Binding((whole,), MakeTuple(tuple(results)))), Exit(label, (whole,)))
    return Module({"tried": Function("tried", tuple(parameters), body, label, type_)}, "tried", (), where)


# ---- running


@attrs.frozen(eq=False)
class _ReferenceRun:
    """The references' results for some arguments: all values, and whether they are exact (True), rounded (False), or
    may be decided by a rounding (None)."""

    values: Mapping[Var, Any]
    exact: Mapping[Var, bool | None]
    terms: dict[str, float] = attrs.field(factory=dict)  # by dtype, of the longest sum

    def value_of(self, atom: Atom) -> Any:
        return atom.value if isinstance(atom, Constant) else self.values[atom]  # type: ignore[index]

    def is_exact(self, atom: Atom) -> bool | None:
        return True if isinstance(atom, Constant) else self.exact[atom]  # type: ignore[index]

    @property
    def floats(self) -> list[Array]:
        arrays = [a for value in self.values.values() for a in _leaves(value)]
        return [a for a in arrays if a.dtype.name in ROUNDINGS]

    @property
    def error(self) -> float:
        """The error that roundings may cause in results."""
        found = self.floats
        largest = max((float(np.abs(w[np.isfinite(w)]).max(initial=1.0)) for w in map(_as_float64, found)), default=1.0)
        roundings = max((ROUNDINGS[a.dtype.name] for a in found), default=0.0)
        additions = max((ADDITION[name] * terms for name, terms in self.terms.items()), default=0.0)
        return (roundings + additions) * largest

    def note_terms(self, operator: Operator, operands: Sequence[Array], result: Any) -> None:
        """Note of how many terms the numbers are sums that an operator gives."""
        if operator.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST, Pattern.INJECTIVE):
            return
        sizes = [max(o.size, 1) for o in operands if o.dtype.name in ROUNDINGS]
        for part in _leaves(result):
            if sizes and part.dtype.name in ROUNDINGS:
                # (m, k) @ (k, n) has k = sqrt(m k * k n / (m n)); what has the size of its operand may be a running sum
                terms = max(max(sizes) / max(part.size, 1), math.sqrt(math.prod(sizes) / max(part.size, 1)))
                terms = max(terms, max(part.shape, default=1))
                self.terms[part.dtype.name] = max(self.terms.get(part.dtype.name, 0.0), terms)


def _try(module: Module, native: NativeModule, threads: int) -> bool:
    """Run a program on random arguments, if it accepts any. Raises MachineCodeError if what it gives is wrong, each
    time."""
    for integers in INTEGERS:
        wrong = _attempt(module, native, 0, integers)
        if wrong is None:
            continue
        if wrong and (again := _attempt(module, native, 1, integers)) is not None and wrong & again:
            raise _wrong_kernel_error(module, threads, min(wrong & again), integers)
        return True
    return False


def _attempt(module: Module, native: NativeModule, attempt: int, integers: tuple[int, int]) -> set[int] | None:
    """The results, by position, that differ from those of the references; None if the program was not run."""
    from relay.codegen.runtime.cpu import DataResult, Program

    chosen = _arguments(module, attempt, integers)
    if chosen is None:
        return None
    sizes, arguments = chosen
    expected = _run_references(module, sizes, arguments)
    if expected is None:
        return None
    try:
        found = Program(native, DataResult)(_copies(arguments))
    except ExecutionError:
        return None  # as what was asserted may be decided by a rounding
    (result,) = module.main.body.terminator.values  # type: ignore[union-attr]
    exact = [flag for flag, _ in _flags(module, expected, result)]
    pairs = list(zip(_leaves(found), _leaves(expected.value_of(result)), exact, strict=True))
    suspects = {
        n for n, (one, other, flag) in enumerate(pairs) if flag is not None and not _agree(one, other, expected)
    }
    if not suspects:
        return set()
    changed = [
        e for e in (_run_references(module, sizes, _perturb_arguments(arguments, n)) for n in range(4)) if e is not None
    ]
    return {
        n
        for n in suspects
        if not _is_rounding_error(n, pairs[n][0], pairs[n][1], [_leaves(e.value_of(result)) for e in changed], expected)
    }


def _agree(found: Array, expected: Array, run: _ReferenceRun, more: float = 0.0) -> bool:
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if expected.dtype.name not in ROUNDINGS:
        return bool(np.array_equal(found, expected))
    one, other = _as_float64(found), _as_float64(expected)
    counts = np.isfinite(other)
    with np.errstate(invalid="ignore"):
        return bool((np.abs(one[counts] - other[counts]) <= run.error + more).all())


def _is_rounding_error(
    position: int, found: Array, expected: Array, changed: Sequence[Sequence[Array]], run: _ReferenceRun
) -> bool:
    """True if roundings of the arguments change a result as much, or a number in it to another one."""
    if expected.dtype.name not in ROUNDINGS:
        return any(not np.array_equal(leaves[position], expected) for leaves in changed)
    changes = [np.abs(_as_float64(leaves[position]) - _as_float64(expected)) for leaves in changed]
    largest = max((float(c[np.isfinite(c)].max(initial=0.0)) for c in changes), default=0.0)
    return _agree(found, expected, run, CHANGES * largest)


def _as_float64(array: Array) -> Array:
    return array.astype(np.float64)


def _leaves(value: Any) -> list[Array]:
    return [np.asarray(leaf) for leaf in tree.flatten(value)[0]]


def _copies(value: Any) -> Any:
    leaves, structure = tree.flatten(value)
    return tree.unflatten(structure, [np.array(leaf) for leaf in leaves])


# ---- arguments


def _arguments(module: Module, attempt: int, integers: tuple[int, int]) -> tuple[dict[TypeId, int], list[Any]] | None:
    """Sizes that the program is for, and random arguments; None if there are too many elements, or no sizes found."""
    choose = random.Random(attempt)
    dims = list(symbolic_dims(module))
    ranges = ((2, 40), (2, 9), (33, 70), (2, 4))
    for trial in range(40):
        sizes = {dim: choose.randint(*ranges[(trial + attempt) % len(ranges)]) for dim in dims}
        if all(c.holds(evaluate(c.left, sizes), evaluate(c.right, sizes)) for c in module.where):
            break
    else:
        return None
    total = 0
    for binding in module.main.body.bindings:
        for target in binding.targets:
            total += _elements(target.type, sizes)
    total += sum(_elements(p.type, sizes) for p in module.main.parameters)
    if total > MOST:
        return None
    rng = np.random.default_rng(attempt)
    return sizes, [_argument(p.type, sizes, rng, integers) for p in module.main.parameters]


def _elements(type_: Type | None, sizes: Mapping[TypeId, int]) -> int:
    if isinstance(type_, TupleType):
        return 0  # of other values
    return int(np.prod(_shape(type_, sizes), dtype=np.int64))


def _shape(type_: Type | None, sizes: Mapping[TypeId, int]) -> tuple[int, ...]:
    assert isinstance(type_, TensorType)
    known = with_sizes(type_, sizes)
    assert isinstance(known, TensorType)
    return known.dims


def _argument(
    type_: Type | None, sizes: Mapping[TypeId, int], rng: np.random.Generator, integers: tuple[int, int]
) -> Any:
    if isinstance(type_, TupleType):
        return tuple(_argument(item, sizes, rng, integers) for item in type_.items)
    assert isinstance(type_, TensorType) and isinstance(type_.base, BaseType)
    shape = _shape(type_, sizes)
    if type_.base.is_float:
        return np.asarray(rng.uniform(-1.5, 1.5, shape)).astype(type_.dtype)
    return np.asarray(rng.integers(*((0, 2) if type_.base == BOOL else integers), shape)).astype(type_.dtype)


def _perturb_arguments(arguments: Sequence[Any], seed: int) -> list[Any]:
    """The arguments, each float by up to two roundings larger or smaller."""
    rng = np.random.default_rng(seed)

    def perturb(value: Any) -> Any:
        if value.dtype.name not in ROUNDINGS:
            return value
        step = float(ml_dtypes.finfo(value.dtype).eps)
        return (_as_float64(value) * (1 + step * rng.uniform(-2, 2, value.shape))).astype(value.dtype)

    leaves, structure = tree.flatten(list(arguments))
    perturbed: list[Any] = tree.unflatten(structure, [perturb(leaf) for leaf in leaves])
    return perturbed


# ---- the references


def _run_references(module: Module, sizes: Mapping[TypeId, int], arguments: Sequence[Any]) -> _ReferenceRun | None:
    """The references' results for the arguments; None if they refuse them."""
    values: dict[Var, Any] = dict(zip(module.main.parameters, arguments, strict=True))
    exact: dict[Var, bool | None] = dict.fromkeys(module.main.parameters, True)
    run = _ReferenceRun(values, exact)
    for binding in module.main.body.bindings:
        match binding.value:
            case OpCall(name, operands, attributes):
                operator = lookup(name)
                given = {a: attribute_with_sizes(v, sizes) for a, v in attributes.items()}
                try:
                    result: Any = operator.evaluate([run.value_of(a) for a in operands], given)
                except Exception as error:  # the reference is NumPy's, which has errors of its own
                    log.info("%s is not verified: %s", module.entry, error)
                    return None
                run.note_terms(operator, [np.asarray(run.value_of(a)) for a in operands], result)
                flag = _flag(operator, [run.is_exact(a) for a in operands], [run.value_of(a) for a in operands], result)
            case MakeTuple(items):
                result, flag = tuple(map(run.value_of, items)), True
            case Project(value, index):
                result, flag = run.value_of(value)[index], run.is_exact(value)
            case Assert(condition):
                if not run.value_of(condition) or run.is_exact(condition) is None:
                    return None
                continue
            case _:
                return None
        for target in binding.targets:
            values[target], exact[target] = result, flag
    return run


def _flag(operator: Operator, flags: Sequence[bool | None], operands: Sequence[Array], result: Any) -> bool | None:
    """The exactness of a call's result: exact (True), rounded (False), or possibly decided by a rounding (None)."""
    if None in flags or operator.memory.uninitialized:
        return None
    results = _leaves(result)
    if all(flags):
        whole = not any(a.dtype.name in ROUNDINGS for a in (*operands, *results))
        same = operator.pattern is Pattern.INJECTIVE or operator.name in _EXACT or operator.algebra.coercion
        return whole or same or all(a.dtype.name not in ROUNDINGS for a in results)
    if operator.name in _STEPS and operator.name != "where":
        return None
    return None if any(a.dtype.name not in ROUNDINGS for a in results) else False


def _flags(module: Module, run: _ReferenceRun, atom: Atom) -> Iterator[tuple[bool | None, Atom]]:
    """For each leaf of a value whether it is exact, and the atom that it is the value of."""
    made = {b.targets[0]: b.value for b in module.main.body.bindings if b.targets}
    value = made.get(atom) if isinstance(atom, Var) else None
    if isinstance(value, MakeTuple):
        for item in value.items:
            yield from _flags(module, run, item)
        return
    for _ in _leaves(run.value_of(atom)):
        yield run.is_exact(atom), atom


# ---- the error


def _wrong_kernel_error(module: Module, threads: int, wrong: int, integers: tuple[int, int]) -> MachineCodeError:
    """The error for a program with a wrong result: it names the first kernel that gives another answer where all
    values are results, or else those that make this result."""
    main = module.main
    (result,) = main.body.terminator.values  # type: ignore[union-attr]
    sizes, arguments = _arguments(module, 0, integers) or ({}, [])
    run = _run_references(module, sizes, arguments)
    assert run is not None
    _, atom = list(_flags(module, run, result))[wrong]
    bindings = [b for b in main.body.bindings if isinstance(b.value, OpCall | Assert)]
    values = [t for b in bindings for t in b.targets if isinstance(t.type, TensorType)]
    found = expected = None
    try:
        from relay.codegen.runtime.cpu import DataResult, Program

        parts = [b for b in main.body.bindings if b.targets]
        whole = _with_results(values, main.parameters, parts, module.where)
        for value, one in zip(
            values, Program(_compile_module(whole, threads), DataResult)(_copies(arguments)), strict=True
        ):
            if run.exact[value] is not None and not _agree(np.asarray(one), run.value_of(value), run):
                atom, found, expected = value, np.asarray(one), run.value_of(value)
                break
    except (RelayError, ValueError) as error:
        log.info("the wrong kernel was not found: %s", error)
    calls = _calls(module, atom)
    names = ", ".join(dict.fromkeys(c.operator for c in calls))
    numbers = ", ".join(f"{dim} = {size}" for dim, size in sizes.items())
    shown = "" if found is None else f": found {_array_text(found)}, expected {_array_text(expected)}"
    shapes = ", ".join(str(_type(a)) for c in calls[:1] for a in c.arguments)
    for_sizes = f" for {numbers}" if numbers else ""
    return MachineCodeError(
        f"{names or main.name} ({shapes}) gives other numbers than its reference{for_sizes}{shown}",
        next((c.span for c in calls if c.span is not None), main.span),
    )


def _calls(module: Module, atom: Atom) -> list[OpCall]:
    """The call that makes a value, and the others of its kernel, the last one first."""
    for group in plan(module.main.body).values():
        if any(b.targets[0] is atom for b in group.bindings):
            return [b.value for b in reversed(group.bindings) if isinstance(b.value, OpCall)]
    return []


def _array_text(array: Any) -> str:
    text = np.array2string(np.asarray(array).reshape(-1)[:6], separator=", ", max_line_width=1000)
    return text if np.size(array) <= 6 else f"{text[:-1]}, ..]"


__all__ = ["verify"]
