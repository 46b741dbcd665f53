"""The cells for cotangents that lie behind references: shadows.

One reference has one shadow in one execution of a derivative, wherever it came from and however often it was given, so
that aliases, references in references and references in data need no more than the reference itself. The sweep is a new
reference for each execution, so every execution begins without shadows; the slot is the derivative's own, so that its
shadows stay when another derivative is computed in its backward part.
"""

from __future__ import annotations

import attrs
import numpy as np

from relay.ad.cotangents import Cotangents, pack, type_of
from relay.ir.expr import Atom, Binding, Constant, RefNew, Shadow, Var
from relay.ir.types import INT64, RefType, Type, scalar
from relay.operator import Emitter

SWEEP = RefType(scalar(INT64))


@attrs.frozen
class Sweep:
    """One execution of a derivative: the reference that stands for it, and the derivative's slot."""

    reference: Var
    slot: str

    @staticmethod
    def begin(slot: str) -> tuple[Sweep, Binding]:
        """A new one, and what makes its reference."""
        sweep = Sweep(Var("sweep", SWEEP), slot)
        return sweep, Binding((sweep.reference,), RefNew(Constant(np.zeros((), np.int64))))

    def cell(self, emitter: Emitter, cotangents: Cotangents, reference: Atom, content: Type) -> Atom:
        """The cell for the cotangent of what a reference holds."""
        zeros = pack(emitter, cotangents.zeros(emitter, content, None))
        shadow = Shadow(reference, self.reference, zeros, self.slot, emitter.span)
        return emitter.bind(shadow, RefType(type_of(zeros)), "adjoint").atom
