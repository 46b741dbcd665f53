"""Sequences of passes, and the ones that the compiler uses at each level."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import attrs

from relay.ir.expr import Function, Module
from relay.ir.sizes.facts import assuming
from relay.ir.traverse import count_bindings
from relay.ir.validation.check import Stage, check
from relay.support.gc_pause import without_collection
from relay.text.printer import to_text
from relay.transform.passes import ConfiguredPass, Pass, step_of

_CLEAN = ("simplify", "fold_constants", "eliminate_common_subexpressions", "simplify", "eliminate_dead_code")
_FLAT = ("flatten_sums", "allocate_tapes", "flatten_tuples", *_CLEAN)
_LOOPS = ("fold_induction_variables", "simplify", "hoist_invariants", "batch_products")
_FIRST = (
    *("expand_composites", "flatten_records", "inline", "simplify", "evaluate_partially", "inline", "reduce_strength"),
    *("eliminate_references", "loop_tail_calls", "flatten_parameters", "flatten_tuples", *_CLEAN, "inline"),
    *("eliminate_cells", "flatten_tuples"),
    *("compose_indices", "sink_reads", "reorder_products"),
)

PREPARATION: tuple[tuple[str, ...], ...] = (
    ("expand_composites", "loop_tail_calls"),
    ("expand_composites", "loop_tail_calls", "simplify", "eliminate_dead_code"),
    (*_FIRST, *_LOOPS, "eliminate_dead_code", "eliminate_dead_arguments"),
    (*_FIRST, "unroll_loops", *_LOOPS, *_CLEAN, "eliminate_dead_arguments"),
)
"""What `prepare` does with a structured core module at the levels 0 to 3, before it is differentiated."""

BETWEEN: tuple[tuple[str, ...], ...] = (
    ("expand_composites",),
    ("expand_composites", "simplify", "eliminate_dead_code"),
    ("expand_composites", "inline", "reduce_strength", "flatten_tuples", *_CLEAN),
    ("expand_composites", "inline", "reduce_strength", "flatten_tuples", *_CLEAN, "inline", *_CLEAN),
)
"""What is done with a derivative that is differentiated again. Loops keep their form, which the next order relies on:
their stacks are read once, from the last entry to the first, where a round begins."""

LEVELS: tuple[tuple[str, ...], ...] = (
    BETWEEN[0],
    BETWEEN[1],
    (
        *(
            *BETWEEN[2],
            "eliminate_dead_arguments",
            "eliminate_dead_fields",
            "eliminate_references",
            "eliminate_cells",
            "choose_layouts",
        ),
        *(*_LOOPS, "reorder_products", "distribute_loops", "sink_accumulators", *_FLAT),
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
        *("reorder_products", "distribute_loops", "sink_accumulators", *_FLAT),
    ),
)
"""What `optimize` does with a structured core module at the levels 0 to 3."""


@attrs.frozen(eq=False)
class PassRecord:
    """One pass that was run: its name with its options, how long it took in seconds, what it was given and what it
    made."""

    name: str
    seconds: float
    given: Module
    module: Module

    @property
    def before(self) -> int:
        """The module's bindings before the pass."""
        return count(self.given)

    @property
    def after(self) -> int:
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
    and how many there are. Raises ValueError for what is not a pass or option.
    """

    def __init__(
        self,
        passes: str | Iterable[str | Pass],
        *,
        checked: bool = False,
        stage: Stage = "structured",
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        given = (passes,) if isinstance(passes, str) else tuple(passes)
        self.passes: tuple[ConfiguredPass, ...] = tuple(step for change in given for step in step_of(change))
        self.checked = checked
        self.stage = stage
        self.progress = progress
        self.records: tuple[PassRecord, ...] = ()

    def __call__(self, module: Module) -> Module:
        with without_collection():
            return self._run(module)

    def _run(self, module: Module) -> Module:
        records: list[PassRecord] = []
        stage = self.stage
        for done, step in enumerate(self.passes):
            if self.progress is not None:
                self.progress(step.name, done, len(self.passes))
            given, start = module, time.perf_counter()
            with assuming(module.where):
                module = step(module)
            seconds = time.perf_counter() - start
            records.append(PassRecord(step.name, seconds, given, module))
            stage = step.makes or stage
            if self.checked:
                check(module, stage)
        self.records = tuple(records)
        return module


def count(module: Module) -> int:
    """The number of bindings in a module."""
    return sum(count_bindings(f.body) for f in module.functions.values() if isinstance(f, Function))


def prepare(module: Module, level: int = 2, *, checked: bool = False) -> Module:
    """A structured core module made smaller before it is differentiated, which pays for each order of derivatives.

    Composite operators are expanded, and tail calls become loops, at every level. Raises ValueError for another level
    than 0 to 3.
    """
    return Pipeline(_passes(PREPARATION, level), checked=checked)(module)


def optimize(module: Module, level: int = 2, *, checked: bool = False) -> Module:
    """A structured core module made smaller and faster. Raises ValueError for another level than 0 (nothing) to 3."""
    return Pipeline(_passes(LEVELS, level), checked=checked)(module)


def simplify_derivative(module: Module, level: int = 2) -> Module:
    """A derivative made smaller before it is differentiated again."""
    return Pipeline(_passes(BETWEEN, level))(module)


def _passes(levels: Sequence[tuple[str, ...]], level: int) -> tuple[str, ...]:
    if not 0 <= level < len(levels):
        raise ValueError(f"the optimization level must be 0 to {len(levels) - 1}, found {level}")
    return levels[level]
