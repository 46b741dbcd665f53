"""State of function generation: what the functions of one program share, and the values of a function's variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, assert_never

import attrs

from relay.codegen.kernels.kernels import Kernels
from relay.codegen.lowering.constants import Constants
from relay.codegen.lowering.external import Externals
from relay.codegen.lowering.function_builder import CallWrapper, Code, FailureTable
from relay.codegen.lowering.layout import Layouts
from relay.codegen.lowering.memory.arena import Arena
from relay.codegen.lowering.memory.pool_growth import PoolGrowth
from relay.codegen.lowering.memory.pools import Pools
from relay.codegen.lowering.memory.rounds import RoundLifetimes
from relay.codegen.lowering.probes import Probes, Site
from relay.codegen.lowering.values import Leaf, Value
from relay.errors import InternalError, Span
from relay.ir.analysis.metering import Meter
from relay.ir.dims import DataDependentDim, Dim, TypeId
from relay.ir.expr import Atom, Constant, Global, Static, Var
from relay.ir.sizes.data_dependent import data_dependent_dims_in
from relay.ir.traverse import operands
from relay.ir.types import TensorType
from relay.transform.fusion.fusion_groups import FusionGroup


@attrs.frozen(eq=False)
class ProgramContext:
    """The common state of the functions of one program."""

    layouts: Layouts
    kernels: Kernels
    externals: Externals
    constants: Constants
    pools: Pools
    growth: PoolGrowth
    rounds: RoundLifetimes
    failures: FailureTable
    meter: Meter
    names: Mapping[str, Any]  # the native functions by the core functions
    frames: dict[str, Dim]  # the bytes of workspace that callers provide
    sizes: Mapping[TypeId, int]  # the places of symbolic dims in the context table
    arena: Arena
    made: Mapping[
        str, Sequence[DataDependentDim]
    ]  # the sizes made by its callers that a function is given, by its name
    packing: frozenset[str]  # the functions in which memory of the arena may come to be used from elsewhere
    devices: Mapping[str, Callable[..., None]]  # what a device computes, by the core functions
    probes: Probes | None = None  # of a profiling build


class FunctionState:
    """A function that is being generated: its code, and the values of its variables."""

    def __init__(self, shared: ProgramContext, name: str) -> None:
        self.shared = shared
        self.name = name
        self.code = Code(shared.sizes, shared.arena)
        self.variables: dict[Var, Value] = {}

    def value(self, atom: Atom) -> Value:
        match atom:
            case Var():
                return self.variables[atom]
            case Constant():
                return self.shared.constants.leaf(self.code, atom)
            case Global() | Static():
                raise InternalError(f"{atom!r} is not a first-order value")
            case _:
                assert_never(atom)

    def leaf(self, atom: Atom) -> Leaf:
        value = self.value(atom)
        assert isinstance(value, Leaf)
        return value

    # ---- of a profiling build

    def site(self, kind: str, name: str, group: FusionGroup | None, span: Span | None = None) -> Site | None:
        """A place that is measured, if anything is."""
        if self.shared.probes is None:
            return None
        bindings, outputs = ((), ()) if group is None else (group.bindings, group.outputs)
        atoms = (a for b in bindings for a in (*b.targets, *operands(b.value)))
        types = [a.type for a in atoms if isinstance(a, Var) and isinstance(a.type, TensorType)]
        dims = tuple(dict.fromkeys(d for t in types for d in data_dependent_dims_in(t.shape)))
        site = self.shared.probes.add(kind, name, self.name, bindings, outputs, dims, span)
        site.begin = self.code.workspace.time
        return site

    def timing_wrapper(self, site: Site | None) -> CallWrapper | None:
        """The statements that put a call of a site between readings of the clock; None where it is not measured."""
        return None if site is None or self.shared.probes is None else self.shared.probes.timing_wrapper(site)

    def record_call(self, site: Site | None) -> None:
        """Note that a site's call has been emitted."""
        if site is not None:
            site.end = self.code.workspace.time

    @contextmanager
    def measured_region(
        self, kind: str, name: str, group: FusionGroup | None, span: Span | None = None
    ) -> Iterator[None]:
        """A context: code that is emitted inside is between readings of the clock."""
        site, probes = self.site(kind, name, group, span), self.shared.probes
        start = None if site is None or probes is None or not site.is_measured else probes.start(self.code)
        yield
        if site is not None and probes is not None and start is not None:
            probes.stop(self.code, site, start)
        self.record_call(site)
