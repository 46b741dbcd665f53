"""The sizes of a program, before and after passes."""

from __future__ import annotations

import zlib

import attrs

from relay.ir.analysis.metering import work
from relay.ir.expr import Constant, Function, Module
from relay.ir.traverse import all_blocks, count_bindings, operands, terminator_operands, walk
from relay.support.tables import aligned_rows


@attrs.frozen
class ModuleSizes:
    """The sizes of a module: functions, bindings, constant arrays, their bytes as they are and compressed (zlib), and
    the floating-point operations of a call."""

    functions: int
    bindings: int
    constants: int
    constant_bytes: int
    compressed_bytes: int
    flops: int


def module_sizes(module: Module) -> ModuleSizes:
    """The sizes of a typed module. Constants that are one array count once."""
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    arrays = {}
    for function in functions:
        atoms = [a for b in walk(function.body) for a in operands(b.value)]
        atoms += [a for block in all_blocks(function.body) for a in terminator_operands(block.terminator)]
        arrays.update({id(a.value): a.value for a in atoms if isinstance(a, Constant) and a.value.size > 1})
    return ModuleSizes(
        functions=len(module.functions),
        bindings=sum(count_bindings(f.body) for f in functions),
        constants=len(arrays),
        constant_bytes=sum(a.nbytes for a in arrays.values()),
        compressed_bytes=sum(len(zlib.compress(a.tobytes())) for a in arrays.values()),
        flops=work(module).flops,
    )


def sizes_report(before: ModuleSizes, after: ModuleSizes) -> str:
    """The sizes before and after, a line for each."""
    rows = [["", "before", "after"]]
    for field in attrs.fields(ModuleSizes):
        one, other = getattr(before, field.name), getattr(after, field.name)
        rows.append([field.name.replace("_", " "), f"{one:,}", f"{other:,}"])
    return "\n".join(aligned_rows(rows, "<>>"))
