"""Sequences of passes, and the ones that the compiler uses at each level."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, TypeAlias

import attrs

from relay.ad import reverse
from relay.errors import InternalError
from relay.ir.expr import Function, Module
from relay.ir.traverse import count_bindings
from relay.ir.validation.check import Stage, check
from relay.support.gc_pause import without_collection
from relay.support.phases import phase
from relay.text.printer import to_text
from relay.transform.passes import EXACT, ConfiguredPass, Pass, read_steps, step_of
from relay.transform.properties import CODE, CONTRACTS, PROPERTIES, STAGES, check_order, properties_after

_CLEAN = ("simplify", "fold_constants", "eliminate_common_subexpressions", "simplify", "eliminate_dead_code")
_EXPANDED = ("expand_composites", "inline", "reduce_strength", "flatten_tuples", *_CLEAN)
_FLAT = ("flatten_sums", "allocate_tapes", "flatten_tuples", *_CLEAN)
_LAST = ("remove_identities", "eliminate_dead_code", "loop_tail_calls")  # barriers stand until equal calls are merged
_LOOPS = ("fold_induction_variables", "simplify", "hoist_invariants", "vectorize_loops", "batch_products")
_LOOPS_BEFORE = tuple(
    step
    for name in _LOOPS
    for step in (
        ("recompute_rounds", "vectorize_loops{will_be_differentiated}") if name == "vectorize_loops" else (name,)
    )
)
_FIRST = (
    *("expand_composites", "flatten_records", "inline", "simplify", "evaluate_partially", "inline", "reduce_strength"),
    *("eliminate_references", "loop_tail_calls", "flatten_parameters", "flatten_tuples", *_CLEAN, "inline"),
    *("eliminate_cells", "allocate_tapes", "flatten_tuples", "reorder_products"),
)
_ELEMENTS = ("compose_indices", "sink_reads")  # what loops still read one by one

PREPARATION: tuple[tuple[str, ...], ...] = (
    ("expand_composites", "loop_tail_calls"),
    ("expand_composites", "loop_tail_calls", "simplify", "eliminate_dead_code"),
    (*_FIRST, "batch_recursion", *_LOOPS_BEFORE, *_ELEMENTS, "eliminate_dead_code", "eliminate_dead_arguments"),
    (
        *(*_FIRST, "unroll_loops", "batch_recursion", *_LOOPS_BEFORE, *_ELEMENTS, *_CLEAN),
        "eliminate_dead_arguments",
    ),
)
"""The phase `prepare`: what is done with a structured core module at the levels 0 to 3, before it is differentiated."""

BETWEEN: tuple[tuple[str, ...], ...] = (
    ("lower_collectives", "expand_composites"),
    ("lower_collectives", "expand_composites", "simplify", "eliminate_dead_code"),
    ("lower_collectives", *_EXPANDED),
    ("lower_collectives", *_EXPANDED, "inline", *_CLEAN),
)
"""The phase `between`: what is done with a derivative that is differentiated again.

Loops keep their form, which the next order relies on: their stacks are read once, from the last entry to the first,
where a round begins."""

LEVELS: tuple[tuple[str, ...], ...] = (
    (*BETWEEN[0], "loop_tail_calls"),
    (*BETWEEN[1], "loop_tail_calls"),
    (
        *(
            *BETWEEN[2],
            "eliminate_dead_arguments",
            "eliminate_dead_fields",
            "eliminate_references",
            "eliminate_cells",
            "choose_layouts",
        ),
        *(*_LOOPS, "reorder_products", "distribute_loops", "sink_accumulators", *_FLAT, *_LAST),
    ),
    (
        *(
            *BETWEEN[3],
            "eliminate_dead_arguments",
            "eliminate_dead_fields",
            "eliminate_references",
            "eliminate_cells",
            "unroll_loops",
        ),
        *("fold_scales", "join_products", "choose_layouts", *_LOOPS),
        *("reorder_products", "distribute_loops", "sink_accumulators", *_FLAT, *_LAST),
    ),
)
"""The phase `optimize`: what is done with a structured core module at the levels 0 to 3."""


Phase: TypeAlias = Literal["lower", "prepare", "differentiate", "between", "optimize"]

PHASES: tuple[Phase, ...] = ("lower", "prepare", "differentiate", "optimize")
"""The phases from a typed program to the core that code is generated of, in order."""

_UNROUNDED = (EXACT - {"expand_composites"}) | {"expand_composites{will_be_differentiated=True}"}


@attrs.frozen(eq=False)
class PassRecord:
    """One pass that was run: its name with its options, how long it took in seconds, what it was given and what it
    made."""

    name: str
    seconds: float
    given: Module
    module: Module

    @property
    def bindings_before(self) -> int:
        """The module's bindings before the pass."""
        return count(self.given)

    @property
    def bindings_after(self) -> int:
        """The module's bindings after the pass."""
        return count(self.module)

    @property
    def text(self) -> str:
        """The module after the pass, without the elements of large constants."""
        return to_text(self.module, elide=True)


class Pipeline:
    """Passes in order, as one pass, from a module at `stage`.

    `passes` is a text such as `"inline, cse, fold-constants{max_size=1MiB}"`, or a sequence of such texts and functions
    from module to module. With `checked` each pass's result is checked; a wrong one is an InternalError. `records`
    tells what each pass did in the last call. `progress` is called before each pass with its name, how many are done,
    and how many there are. `wanted` are properties (`relay.transform.properties`) that the last module has to have.

    Raises ValueError for what is not a pass or option, and, when it is called, where a pass needs what those before it
    do not give.
    """

    def __init__(
        self,
        passes: str | Iterable[str | Pass],
        *,
        checked: bool = False,
        stage: Stage = "structured",
        progress: Callable[[str, int, int], None] | None = None,
        wanted: Iterable[str] = (),
    ) -> None:
        given = (passes,) if isinstance(passes, str) else tuple(passes)
        self.passes: tuple[ConfiguredPass, ...] = tuple(step for change in given for step in step_of(change))
        self.checked = checked
        self.known = STAGES[stage]  # the properties of the modules that it is given
        self.wanted = frozenset(wanted)
        self.progress = progress
        self.records: tuple[PassRecord, ...] = ()

    @classmethod
    def for_level(
        cls,
        level: int,
        phases: Sequence[Phase] = PHASES,
        *,
        exact: bool = False,
        checked: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
        without: Collection[str] = (),
    ) -> Pipeline:
        """The passes of some phases at a level, 0 to 3, `without` those of some names.

        `exact`: those after which a program gives the same answer to the last bit, with the bodies of composite
        operators in their places. Raises ValueError for another level.
        """
        if not 0 <= level < len(LEVELS):
            raise ValueError(f"the optimization level must be 0 to {len(LEVELS) - 1}, found {level}")
        steps = [step for phase in phases for step in _phase(phase, level, exact)]
        if exact:
            steps = [s for s in steps if s.name in _UNROUNDED]
        steps = [s for s in steps if s.name not in without]
        stage: Stage = "typed" if phases[0] == "lower" else "structured"
        wanted = CODE if phases == PHASES and not exact else ()
        return cls(steps, checked=checked, stage=stage, progress=progress, wanted=wanted)

    def __call__(self, module: Module) -> Module:
        with without_collection():
            return self._run(module)

    def _run(self, module: Module) -> Module:
        records: list[PassRecord] = []
        known = self.known
        check_order(self.passes, known, self.wanted)
        for done, step in enumerate(self.passes):
            if self.progress is not None:
                self.progress(step.name, done, len(self.passes))
            given, start = module, time.perf_counter()
            with phase("passes", step.name):
                module = step(module)
            seconds = time.perf_counter() - start
            records.append(PassRecord(step.name, seconds, given, module))
            known = properties_after(step, known)
            if self.checked:
                _check(module, step.name, known)
        self.records = tuple(records)
        return module


def count(module: Module) -> int:
    """The number of bindings in a module."""
    return sum(count_bindings(f.body) for f in module.functions.values() if isinstance(f, Function))


def _check(module: Module, name: str, known: frozenset[str]) -> None:
    """Raise InternalError unless a module is well formed and has the properties that it should have after a pass."""
    stage: Stage = "structured" if "structured" in known else "core" if "first_order" in known else "typed"
    check(module, stage)
    for promised in known - STAGES[stage]:
        if not PROPERTIES[promised].holds(module):
            raise InternalError(f"after {name} the module is not {PROPERTIES[promised].adjective}")


def _phase(phase: Phase, level: int, exact: bool) -> Sequence[ConfiguredPass]:
    """The passes of a phase."""
    match phase:
        case "lower":
            expanded = ", expand_composites{will_be_differentiated}" if exact else ""
            return read_steps(f"specialize, structure, lower_collectives{expanded}")
        case "differentiate":
            between = Pipeline.for_level(level, ("between",), exact=exact)

            def differentiate(module: Module) -> Module:
                return reverse.differentiate(module, between)

            return (ConfiguredPass("differentiate", differentiate, CONTRACTS["differentiate"]),)
        case _:
            passes = {"prepare": PREPARATION, "between": BETWEEN, "optimize": LEVELS}[phase][level]
            return read_steps(", ".join(passes))


def prepare(module: Module, level: int = 2, *, checked: bool = False) -> Module:
    """A structured core module made smaller before it is differentiated, which pays for each order of derivatives.

    Composite operators are expanded, and tail calls become loops, at every level. Raises ValueError for another level
    than 0 to 3.
    """
    return Pipeline.for_level(level, ("prepare",), checked=checked)(module)


def optimize(module: Module, level: int = 2, *, checked: bool = False) -> Module:
    """A structured core module made smaller and faster. Raises ValueError for another level than 0 (nothing) to 3."""
    return Pipeline.for_level(level, ("optimize",), checked=checked)(module)
