"""Each instruction form alone and in chains, against what NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
import pytest
from accelerator.streams import Stream

from relay.codegen.vta.config import DEFAULT, Config
from relay.codegen.vta.isa import Alu, AnyInstruction, Gemm, Load, Store
from relay.codegen.vta.layout import AluOp, Memory
from relay.codegen.vta.simulator import plans
from relay.codegen.vta.simulator.findings import Checks, StreamError
from relay.codegen.vta.simulator.run import Simulation, simulate

Array = np.ndarray
COPY = Alu(op=AluOp.SHR, use_imm=True, imm=0, uop_end=1, iter_in=16, dst_in=1, src_in=1)
"""Makes results of rows, as the hardware's output buffer wants them."""

CONFIGS = {
    "default": DEFAULT,
    "two rows": Config(log_batch=1),
    "16-bit activations": Config(log_inp_width=4, log_wgt_width=4, log_block=3, log_wgt_buffer=16, log_acc_buffer=15),
    "16-bit accumulators": Config(log_acc_width=4, log_acc_buffer=16),
}


def run(
    instructions: Sequence[AnyInstruction], config: Config = DEFAULT, allow: Sequence[str] = (), **options: object
) -> tuple[Simulation, dict[str, Array]]:
    """Run instructions in order after the scratchpads are filled; the buffers' contents before, too."""
    stream = Stream(config, seed=3, **options)  # type: ignore[arg-type]
    fill = [stream.load(name) for name in ("uop", "acc", "inp", "wgt")]
    placed = [
        attrs.evolve(i, dram=stream.place("out", Memory.OUT)) if isinstance(i, Store) and i.dram == 0 else i
        for i in instructions
    ]
    data = {name: b.data.astype(np.int64) for name, b in stream.buffers.items() if b.data is not None}
    return simulate(stream.program([*fill, *placed]), checks=Checks(allow=allow)), data


def accumulators(result: Simulation, count: int = 32) -> Array:
    return result.pads.acc[:count].astype(np.int64)


def wrapped(values: Array, config: Config) -> Array:
    """As accumulators wrap."""
    return values.astype(config.dtype(Memory.ACC)).astype(np.int64)


@pytest.mark.parametrize("name", CONFIGS)
def test_gemm(name: str) -> None:
    config = CONFIGS[name]
    product = Gemm(iter_out=3, iter_in=4, dst_out=4, dst_in=1, src_out=1, src_in=2, wgt_out=2, wgt_in=1)
    result, data = run([product], config)
    expected = data["acc"].copy()
    for o in range(3):
        for i in range(4):
            expected[4 * o + i] += data["inp"][o + 2 * i] @ data["wgt"][2 * o + i].T
    assert (accumulators(result) == wrapped(expected, config)).all()


def test_gemm_adds_up_where_destinations_repeat() -> None:
    """Over three weights, with other destinations in between."""
    micro_ops = [(i, i, 0) for i in range(3)] + [(i, 5 + i, 1) for i in range(3)]
    result, data = run([Gemm(uop_end=6, iter_in=2, src_in=1, wgt_in=1)], micro_ops=micro_ops)
    expected = data["acc"].copy()
    for i in range(2):
        for dst, src, wgt in micro_ops:
            expected[dst] += data["inp"][src + i] @ data["wgt"][wgt + i].T
    assert (accumulators(result) == expected).all()


def test_accumulators_wrap() -> None:
    """2**31 - 1 plus products."""
    grow = [Alu(op=AluOp.SHR, use_imm=True, imm=-16)] * 2 + [Gemm()]
    result, data = run(grow)
    expected = np.int64(data["acc"][0] << 32) + data["inp"][0] @ data["wgt"][0].T
    assert (accumulators(result)[0] == expected.astype(np.int32)).all()
    top = [Alu(op=AluOp.MAX, use_imm=True, imm=32767), Alu(op=AluOp.SHR, use_imm=True, imm=-16)]
    result, data = run([*top, Alu(op=AluOp.ADD)])  # doubled
    shifted = (np.maximum(data["acc"][0], 32767) << 16).astype(np.int32).astype(np.int64)
    assert (accumulators(result)[0] == (2 * shifted).astype(np.int32)).all()


def test_gemm_with_reset() -> None:
    result, data = run([Gemm(reset=True, iter_in=3, dst_in=2)])
    data["acc"][[0, 2, 4]] = 0
    assert (accumulators(result) == data["acc"]).all()


OPERATIONS: dict[AluOp, Callable[[Array, Array | int], Array]] = {
    AluOp.MIN: np.minimum,
    AluOp.MAX: np.maximum,
    AluOp.ADD: np.add,
    AluOp.MUL: np.multiply,
}


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("imm", [None, 77, -32768, 32767])
def test_alu(op: AluOp, imm: int | None) -> None:
    src = 0 if imm is None else 1
    alu = Alu(op=op, use_imm=imm is not None, imm=imm or 0, iter_in=8, dst_in=1, src_in=src, uop_begin=1, uop_end=2)
    result, data = run([alu], allow=["multiply"], micro_ops=[(0, 0, 0), (8, 8 if imm is not None else 20, 0)])
    right = data["acc"][20] if imm is None else imm
    data["acc"][8:16] = OPERATIONS[op](data["acc"][8:16], right)
    assert (accumulators(result) == wrapped(data["acc"], DEFAULT)).all()


@pytest.mark.parametrize("imm", [0, 1, 15, -1, -16])
def test_shifts(imm: int) -> None:
    result, data = run([attrs.evolve(COPY, imm=imm)])
    data["acc"][:16] = data["acc"][:16] >> imm if imm >= 0 else data["acc"][:16] << -imm
    assert (accumulators(result) == wrapped(data["acc"], DEFAULT)).all()


def test_shifts_by_a_tensor() -> None:
    """Row 20 is made of 0 to 15."""
    low = [Alu(op=AluOp.MAX, use_imm=True, imm=0, uop_begin=1, uop_end=2)]
    low += [attrs.evolve(low[0], op=AluOp.MIN, imm=15)]
    shift = Alu(op=AluOp.SHR, iter_in=8, dst_in=1, uop_begin=2, uop_end=3)
    result, data = run([*low, shift], micro_ops=[(0, 0, 0), (20, 20, 0), (0, 20, 0)])
    data["acc"][20] = np.clip(data["acc"][20], 0, 15)
    data["acc"][:8] >>= data["acc"][20]
    assert (accumulators(result) == data["acc"]).all()


def test_steps_of_the_alu_see_those_before_them() -> None:
    """A running sum: each row has the one before it added, when that has its own."""
    running = Alu(op=AluOp.ADD, iter_in=15, dst_in=1, src_in=1)
    result, data = run([running], allow=["repeated-destination"], micro_ops=[(1, 0, 0)])
    data["acc"][:16] = np.cumsum(data["acc"][:16], axis=0)
    assert (accumulators(result) == data["acc"]).all()


def test_pooling_is_a_maximum_over_repeated_destinations() -> None:
    """Two by two windows of a row of eight and the next one."""
    pool = Alu(op=AluOp.MAX, uop_end=4, iter_in=4, dst_in=1, src_in=2)
    micro_ops = [(16, 0, 0), (16, 1, 0), (16, 8, 0), (16, 9, 0)]
    result, data = run([pool], allow=["repeated-destination"], micro_ops=micro_ops)
    windows = data["acc"][:16].reshape(2, 4, 2, 1, 16).max(axis=(0, 2))
    data["acc"][16:20] = np.maximum(data["acc"][16:20], windows)
    assert (accumulators(result) == data["acc"]).all()


def test_padded_and_strided_loads() -> None:
    """Three rows of four from rows of seven, zeros around; activations, accumulators and 8-bit accumulators."""
    stream = Stream()
    shape = dict(y_size=3, x_size=4, x_stride=7, y_pad_top=1, y_pad_bottom=2, x_pad_left=3, x_pad_right=1)
    for memory, name in ((Memory.INP, "inp"), (Memory.ACC, "acc"), (Memory.ACC8, "inp")):
        load = Load(memory=memory, sram=100, dram=stream.place(name, memory) + 2, **shape)  # type: ignore[arg-type]
        result, data = run([load], allow=["acc8-load", "padded-load"])
        expected = np.zeros((6, 8, 1, 16), np.int64)
        for row in range(3):
            expected[1 + row, 3:7] = data[name][2 + 7 * row : 6 + 7 * row]
        pad = result.pads.inp if memory is Memory.INP else result.pads.acc
        assert (pad[100:148].reshape(6, 8, 1, 16) == expected).all()


def test_weights_are_loaded_by_rows_of_output_channels() -> None:
    result, data = run([Load(memory=Memory.WGT, sram=500, dram=Stream().place("wgt", Memory.WGT) + 1, x_size=2)])
    assert (result.pads.wgt[500:502].transpose(0, 2, 1) == data["wgt"][1:3]).all()


@pytest.mark.parametrize("name", CONFIGS)
def test_stores_keep_the_low_bits(name: str) -> None:
    config = CONFIGS[name]
    result, data = run([COPY, Store(sram=4, y_size=3, x_size=2, x_stride=5)], config)
    low = data["acc"].astype(config.dtype(Memory.OUT))
    expected = np.zeros_like(result["out"])
    for row in range(3):
        expected[5 * row : 5 * row + 2] = low[4 + 2 * row : 6 + 2 * row]
    assert (result["out"] == expected).all()


def test_rows_of_a_store_that_overlap_are_written_in_order() -> None:
    result, data = run([COPY, Store(sram=0, y_size=3, x_size=4, x_stride=2)])
    expected = np.zeros((32, 1, 16), np.int8)
    for row in range(3):
        expected[2 * row : 2 * row + 4] = data["acc"][4 * row : 4 * row + 4]
    assert (result["out"] == expected).all()


def test_what_is_stored_can_be_loaded() -> None:
    stream = Stream()
    load = Load(memory=Memory.INP, sram=50, dram=stream.place("out", Memory.OUT), x_size=4)
    result, data = run([COPY, Store(x_size=4, x_stride=4), load])
    assert (result.pads.inp[50:54] == data["acc"][:4].astype(np.int8)).all()


def test_transfers_of_nothing_do_nothing() -> None:
    stream = Stream()
    nothing = [Load(memory=m, y_size=5, y_pad_top=3) for m in (Memory.INP, Memory.WGT, Memory.ACC, Memory.UOP)]
    before, _ = run([])
    after, _ = run([*nothing, Store(y_size=5, dram=stream.place("inp", Memory.OUT))], allow=["padded-load"])
    assert (before.pads.acc == after.pads.acc).all() and (before["inp"] == after["inp"]).all()
    assert (before.pads.inp == after.pads.inp).all() and (before.pads.wgt == after.pads.wgt).all()


def test_long_instructions_run_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same results and findings whatever the size of the parts."""
    gemm = Gemm(uop_end=3, iter_out=2, iter_in=5, dst_out=3, src_in=1, wgt_out=1)
    stream = [gemm, Alu(op=AluOp.ADD, uop_end=3, iter_in=4, src_in=3)]
    micro_ops = [(0, 1, 2), (1, 9, 0), (2, 4, 1)]
    allow = ["repeated-destination", "micro-op-weight"]
    whole, _ = run(stream, allow=allow, micro_ops=micro_ops)
    monkeypatch.setattr(plans, "MOST_STEPS", 4)
    parts, _ = run(stream, allow=allow, micro_ops=micro_ops)
    assert (whole.pads.acc == parts.pads.acc).all()


def test_repeats_are_found_across_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 2, 3, 100):
        monkeypatch.setattr(plans, "MOST_STEPS", size)
        with pytest.raises(StreamError, match="repeated-destination"):
            run([Gemm(uop_end=2, iter_in=2)], micro_ops=[(0, 0, 0), (1, 1, 0)])
        run([Gemm(uop_end=3, iter_in=2)], micro_ops=[(0, 0, 0), (1, 1, 0), (2, 0, 0)])
