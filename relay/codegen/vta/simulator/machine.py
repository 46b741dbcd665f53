"""Effects of instructions on the memories, and the checks that are made during them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

import numpy as np

from relay.codegen.vta.encoding import decode_micro_ops
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, Queue, Store
from relay.codegen.vta.layout import AluOp, Memory
from relay.codegen.vta.program import Program
from relay.codegen.vta.simulator.findings import Report
from relay.codegen.vta.simulator.plans import Plan, Plans, repeats
from relay.codegen.vta.simulator.races import Accesses, Places
from relay.codegen.vta.simulator.state import Dram, Region, Scratchpads, Writer
from relay.codegen.vta.simulator.tokens import Clock, Schedule
from relay.codegen.vta.simulator.validity import shifts

Array = np.ndarray
CHISEL_MICRO_OPS = 2048


class Stop(Exception):
    """The stream cannot go on: an access is out of bounds."""


class Machine:
    """The memories, and a report for mistakes."""

    def __init__(
        self, program: Program, inputs: Mapping[str, Array], schedule: Schedule, report: Report, plans: Plans
    ) -> None:
        self.program = program
        self.config = program.config
        self.schedule = schedule
        self.report = report
        self.pads = Scratchpads(program.config)
        self.dram = Dram(program, inputs)
        self._plans = plans
        checks = report.checks
        self._unwritten, self._races = checks.wants("unwritten"), checks.wants("race")
        self._repeated, self._stale = checks.wants("repeated-destination"), checks.wants("stale-output")
        shared = (Memory.INP, Memory.WGT, Memory.ACC)
        self._accesses: dict[object, Accesses] = {m: Accesses(self.config.depth(m)) for m in shared}
        self._decoded: dict[bytes, Array] = {}
        self._position = 0
        self._queue = Queue.LOAD
        self._clock: Clock = (0, 0, 0)

    def execute(self, position: int, instruction: AnyInstruction) -> None:
        """Run an instruction. Raises Stop if it cannot."""
        self._position, self._queue = position, instruction.queue
        self._clock = self.schedule.clocks[position]
        match instruction:
            case Gemm() | Alu():
                self._loop(instruction)
            case Load() if instruction.x_size:
                self._load(instruction)
            case Store() if instruction.x_size:
                self._store(instruction)
            case Load() | Store() | Finish():
                pass

    # ---- transfers

    def _load(self, load: Load) -> None:
        memory = Memory.ACC if load.memory is Memory.ACC8 else load.memory
        start, count = load.sram, load.rows * load.columns
        self._check_index(memory, start + count - 1, f"{load.rows} x {load.columns} elements from {start}")
        if memory is Memory.UOP and start + count > CHISEL_MICRO_OPS:
            self._add("micro-op-depth", f"fills micro-ops up to {start + count - 1}")
        self._write(memory, slice(start, start + count))
        if load.y_size:
            values = self._read_dram(load)
        else:
            values = np.zeros((0, load.x_size, *self.config.element_shape(memory)), self.config.dtype(load.memory))
        if load.is_padded:
            whole = np.zeros((load.rows, load.columns, *self.config.element_shape(memory)), values.dtype)
            top, left = load.y_pad_top, load.x_pad_left
            whole[top : top + load.y_size, left : left + load.x_size] = values
            values = whole
        self.pads.fill(memory, start, values.reshape(count, *self.config.element_shape(memory)))

    def _read_dram(self, load: Load) -> Array:
        """The elements of a rectangle in DRAM, (rows, columns, ..)."""
        region, offset, size = self._region(load)
        places = _rectangle(0, load.x_size, load.x_stride, load.y_size, 1)
        raw = region.elements(offset, size)[places]
        granules = self._granules(load, offset, size)
        if self._unwritten and not region.written[granules].all():
            self._add("unwritten", f"reads bytes of the buffer {region.buffer.name} that nothing has written")
        self._read(("dram", region.number), granules, region)
        values = raw.reshape(-1).view(self.config.dtype(load.memory))
        return values.reshape(load.y_size, load.x_size, *self.config.element_shape(load.memory))

    def _store(self, store: Store) -> None:
        start, count = store.sram, store.y_size * store.x_size
        if not count:
            return
        rows = slice(start, start + count)
        self._check_index(Memory.ACC, start + count - 1, f"{store.y_size} x {store.x_size} elements from {start}")
        writers = self.pads.writer[rows]
        if self._unwritten and not writers.all():
            self._add("unwritten", f"stores row {start + int((writers == 0).argmax())}, which nothing has written")
        elif self._stale and (writers != Writer.RESULT).any():
            stale = int((writers != Writer.RESULT).argmax())
            writer = Writer(writers[stale]).words
            self._add("stale-output", f"stores row {start + stale}, which {writer} wrote last")
        self._read(Memory.ACC, rows)
        region, offset, size = self._region(store)
        granules = self._granules(store, offset, size)
        access = self._dram_accesses(region)
        if self._races:
            self._report_race(
                access.write(self._queue, self._clock, granules), True, f"the buffer {region.buffer.name}"
            )
        region.written[granules] = True
        values = self.pads.acc[rows].astype(self.config.dtype(Memory.OUT))
        raw = values.reshape(count, -1).view(np.uint8)
        elements = region.elements(offset, size)
        if store.x_stride >= store.x_size:
            places = _rectangle(0, store.x_size, store.x_stride, store.y_size, 1)
            elements[places] = raw.reshape(count, size)
        else:  # rows overlap: the later one wins
            for row in range(store.y_size):
                first = row * store.x_stride
                elements[first : first + store.x_size] = raw[row * store.x_size : (row + 1) * store.x_size]

    def _region(self, transfer: Load | Store) -> tuple[Region, int, int]:
        """The buffer of a transfer, the offset there, and the size of an element."""
        size = self.config.element_bytes(transfer.memory)
        first = transfer.dram * size
        end = first + ((transfer.y_size - 1) * transfer.x_stride + transfer.x_size) * size
        region = self.dram.at(first)
        if region is None:
            self._stop("dram-bounds", f"begins at {first:#x}, where no buffer is")
        if end > region.buffer.end:
            name, last = region.buffer.name, region.buffer.end
            self._stop("dram-bounds", f"goes from {first:#x} to {end:#x}, but the buffer {name} ends at {last:#x}")
        return region, first - region.buffer.address, size

    def _granules(self, transfer: Load | Store, offset: int, size: int) -> Places:
        scale = size // self.dram.granule
        return _rectangle(offset // self.dram.granule, transfer.x_size, transfer.x_stride, transfer.y_size, scale)

    def _dram_accesses(self, region: Region) -> Accesses:
        key = ("dram", region.number)
        if key not in self._accesses:
            self._accesses[key] = Accesses(len(region.written))
        return self._accesses[key]

    # ---- loops

    def _loop(self, loop: Gemm | Alu) -> None:
        if not loop.steps:
            return
        self._check_index(Memory.UOP, loop.uop_end - 1, f"the micro-ops {loop.uop_begin} to before {loop.uop_end}")
        if loop.uop_end > CHISEL_MICRO_OPS:
            self._add("micro-op-depth", f"uses micro-ops up to {loop.uop_end - 1}")
        used = slice(loop.uop_begin, loop.uop_end)
        self._check_written(Memory.UOP, used)
        words = self.pads.uop[used].tobytes()
        table = self._decoded.get(words)
        if table is None:
            table = self._decoded[words] = decode_micro_ops(np.frombuffer(words, np.uint32), self.config)
        self._check_bounds(loop, table)
        if isinstance(loop, Alu):
            self._check_micro_ops(loop, table)
        last = np.zeros(0, np.int64)
        for plan in self._plans.instruction_plans(loop, table, words):
            if self._repeated:
                self._check_repeats(loop, plan, last)
                last = np.concatenate([last, plan.dst])[-2:]
            if isinstance(loop, Gemm):
                self._gemm(loop, plan)
            else:
                self._alu(loop, plan)

    def _check_bounds(self, loop: Gemm | Alu, table: Array) -> None:
        dst, src, wgt = table.max(axis=0).tolist()
        outer, inner = loop.iter_out - 1, loop.iter_in - 1
        self._check_index(Memory.ACC, dst + outer * loop.dst_out + inner * loop.dst_in, "destination")
        memory = Memory.INP if isinstance(loop, Gemm) else Memory.ACC
        if isinstance(loop, Alu) or not loop.reset:
            self._check_index(memory, src + outer * loop.src_out + inner * loop.src_in, "source")
        if isinstance(loop, Gemm) and not loop.reset:
            self._check_index(Memory.WGT, wgt + outer * loop.wgt_out + inner * loop.wgt_in, "weights")

    def _check_micro_ops(self, alu: Alu, table: Array) -> None:
        if table[:, 2].any():
            self._add("micro-op-weight", f"uses a micro-op with weight index {int(table[:, 2].max())}")
        if alu.use_imm and (table[:, 0] != table[:, 1]).any():
            dst, src, _ = table[(table[:, 0] != table[:, 1]).argmax()].tolist()
            self._add("immediate-source", f"has an immediate, and a micro-op with destination {dst} and source {src}")

    def _check_repeats(self, loop: Gemm | Alu, plan: Plan, last: Array) -> None:
        if isinstance(loop, Gemm) and loop.reset:
            return  # nothing is read
        step = repeats(plan.dst, plan.dst, last)
        if step is None and isinstance(loop, Alu) and not loop.use_imm:
            step = repeats(plan.src, plan.dst, last)
        if step is not None:
            row = int(plan.dst[step])
            self._add(
                "repeated-destination", f"reads row {row} within two steps of writing it, or {int(plan.src[step])}"
            )

    def _gemm(self, gemm: Gemm, plan: Plan) -> None:
        rows = plan.dst_rows
        if gemm.reset:
            self._write(Memory.ACC, rows)
            self.pads.acc[rows] = 0
            self.pads.writer[rows] = Writer.RESET
            return
        self._check_accumulators(rows)
        self._check_written(Memory.INP, plan.src_rows)
        self._check_written(Memory.WGT, plan.wgt_rows)
        self._read(Memory.INP, plan.src_rows)
        self._read(Memory.WGT, plan.wgt_rows)
        self._write(Memory.ACC, rows)
        plan.products.run(self.pads.inp, self.pads.wgt, self.pads.acc)
        self.pads.writer[rows] = Writer.RESULT

    def _alu(self, alu: Alu, plan: Plan) -> None:
        self._check_accumulators(plan.dst_rows)
        if not alu.use_imm:
            fresh = np.setdiff1d(plan.src_rows, plan.dst_rows, assume_unique=True)
            self._check_accumulators(fresh)
            self._read(Memory.ACC, fresh)
        self._write(Memory.ACC, plan.dst_rows)
        acc = self.pads.acc
        for batch in plan.batches:
            dst = plan.dst[batch]
            left = acc[dst].astype(np.int32)
            right = np.int32(alu.imm) if alu.use_imm else acc[plan.src[batch]].astype(np.int32)
            if alu.op is AluOp.SHR and not alu.use_imm and self.report.checks.wants("shift-range"):
                self._check_shifts(right)
            acc[dst] = _OPERATIONS[alu.op](left, right).astype(acc.dtype)
        self.pads.writer[plan.dst_rows] = Writer.RESULT

    def _check_shifts(self, amounts: Array | np.int32) -> None:
        lowest, highest = int(np.min(amounts)), int(np.max(amounts))
        if lowest < 0 or highest not in shifts(self.config):
            self._add("shift-range", f"shifts by a tensor with {lowest if lowest < 0 else highest} in it")

    # ---- what is looked at

    def _add(self, rule: str, message: str) -> None:
        self.report.add(rule, f"instruction {self._position} {message}", self._position)

    def _stop(self, rule: str, message: str) -> NoReturn:
        self._add(rule, message)
        raise Stop

    def _check_index(self, memory: Memory, last: int, what: str) -> None:
        depth = self.config.depth(memory)
        if last >= depth:
            self._stop("scratchpad-bounds", f"reaches {memory.name}[{last}] of {depth} ({what})")

    def _check_written(self, memory: Memory, rows: Places) -> None:
        written = self.pads.written[memory][rows]
        if self._unwritten and not written.all():
            first = int(written.argmin())
            row = rows.start + first if isinstance(rows, slice) else int(rows[first])
            self._add("unwritten", f"reads {memory.name}[{row}], which nothing has written")

    def _check_accumulators(self, rows: Array) -> None:
        writers = self.pads.writer[rows]
        if self._unwritten and not writers.all():
            self._add("unwritten", f"reads ACC[{int(rows[(writers == 0).argmax()])}], which nothing has written")

    def _read(self, key: object, places: Places, region: Region | None = None) -> None:
        if not self._races:
            return
        access = self._accesses[key] if region is None else self._dram_accesses(region)
        what = key.name if isinstance(key, Memory) else f"the buffer {region.buffer.name}" if region else ""
        self._report_race(access.read(self._queue, self._clock, places), False, what)

    def _write(self, memory: Memory, places: Places) -> None:
        if self._races and memory in self._accesses:
            self._report_race(self._accesses[memory].write(self._queue, self._clock, places), True, memory.name)

    def _report_race(self, race: tuple[Queue, int, bool] | None, writes: bool, what: str) -> None:
        if race is None:
            return
        queue, index, other_writes = race
        other = self.schedule.queues[queue][index]
        self.report.add(
            "race",
            f"instruction {self._position} {'writes' if writes else 'reads'} what instruction {other} "
            f"{'writes' if other_writes else 'reads'}, in {what}: no token says which comes first",
            other,
            self._position,
        )


def _rectangle(start: int, width: int, stride: int, rows: int, scale: int) -> Places:
    """The places of rows of elements, each of `scale` places."""
    if rows == 1 or stride == width:
        return slice(start, start + rows * width * scale)
    return (start + np.arange(rows)[:, None] * (stride * scale) + np.arange(width * scale)).reshape(-1)


def _shift(left: Array, right: Array | np.int32) -> Array:
    """Arithmetic shift right, or left by a negative number. Only the low five bits of the number count."""
    amount = np.asarray(right, np.int32)
    shifted: Array = np.where(amount >= 0, left >> (amount & 31), left << (-amount & 31))
    return shifted


_OPERATIONS: Mapping[AluOp, Callable[..., Array]] = {
    AluOp.MIN: np.minimum,
    AluOp.MAX: np.maximum,
    AluOp.ADD: np.add,
    AluOp.SHR: _shift,
    AluOp.MUL: np.multiply,
}
