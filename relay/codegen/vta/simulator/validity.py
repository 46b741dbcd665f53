"""Validity of instructions by themselves, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from relay.codegen.vta.config import Config
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, Queue, Store
from relay.codegen.vta.layout import AluOp, Memory
from relay.codegen.vta.simulator.findings import Report
from relay.codegen.vta.simulator.tokens import Schedule, illegal_tokens


def shifts(config: Config) -> range:
    """By how much all implementations shift."""
    half = 1 << (config.log_acc_width - 1)
    return range(-half, half)


def check_instructions(instructions: Sequence[AnyInstruction], config: Config, report: Report) -> None:
    """Tell of instructions that are illegal, or not the same everywhere."""
    for position, instruction in enumerate(instructions):
        for flag in illegal_tokens(instruction):
            unit = instruction.queue.name.lower()
            report.add(
                "tokens", f"instruction {position} has {flag}, which leads nowhere from the {unit} unit", position
            )
        match instruction:
            case Load():
                _check_load(position, instruction, report)
            case Store():
                _check_store(position, instruction, report)
            case Gemm():
                _check_loop(position, instruction, report)
            case Alu():
                _check_loop(position, instruction, report)
                _check_alu(position, instruction, shifts(config), report)
            case Finish():
                pass


def _check_rows(position: int, transfer: Load | Store, report: Report) -> None:
    if transfer.x_size and not transfer.y_size:
        report.add("empty-rows", f"instruction {position} has rows of {transfer.x_size} elements, but none", position)


def _check_load(position: int, load: Load, report: Report) -> None:
    _check_rows(position, load, report)
    if load.memory is Memory.OUT:
        report.add("memory", f"instruction {position} loads {load.memory.name}, which is only stored", position)
    if load.memory is Memory.ACC8:  # even of nothing: its tokens are not posted
        report.add("acc8-load", f"instruction {position} loads {load.memory.name}", position)
    if not load.x_size:
        if load.memory is Memory.INP and load.is_padded:
            report.add("padded-load", f"instruction {position} loads nothing with padding", position)
        return
    if load.memory in (Memory.WGT, Memory.ACC, Memory.ACC8) and load.is_padded:
        report.add("padded-load", f"instruction {position} loads {load.memory.name} with padding", position)
    if load.memory is Memory.UOP and (load.y_size > 1 or load.is_padded):
        what = f"in {load.y_size} rows" if load.y_size > 1 else "with padding"
        report.add("micro-op-load", f"instruction {position} loads micro-ops {what}", position)
    if load.memory is Memory.UOP and load.dram % 2 and not load.sram % 2:
        places = f"from an odd place, {load.dram:#x}, to an even one, {load.sram}"
        report.add("micro-op-load", f"instruction {position} loads micro-ops {places}", position)


def _check_store(position: int, store: Store, report: Report) -> None:
    _check_rows(position, store, report)
    if not store.x_size:
        return
    if store.memory is not Memory.OUT:
        report.add("memory", f"instruction {position} stores {store.memory.name}, not OUT", position)
    if store.is_padded:
        report.add("padded-store", f"instruction {position} stores with padding", position)


def _check_loop(position: int, loop: Gemm | Alu, report: Report) -> None:
    if not loop.steps:
        report.add(
            "empty-loop",
            f"instruction {position} has {loop.iter_out} x {loop.iter_in} iterations over the micro-ops "
            f"{loop.uop_begin} to before {loop.uop_end}",
            position,
        )


def _check_alu(position: int, alu: Alu, allowed: range, report: Report) -> None:
    if alu.op is AluOp.MUL:
        report.add("multiply", f"instruction {position} multiplies", position)
    if not alu.use_imm:
        if alu.op is AluOp.SHR and alu.imm < 0:  # Chisel looks at the sign even so
            report.add("shift-range", f"instruction {position} has a negative immediate that it does not use", position)
        return
    if alu.op is AluOp.SHR and alu.imm not in allowed:
        report.add("shift-range", f"instruction {position} shifts by {alu.imm}", position)
    if (alu.dst_out, alu.dst_in) != (alu.src_out, alu.src_in):
        report.add(
            "immediate-source",
            f"instruction {position} has an immediate, destination factors {alu.dst_out}, {alu.dst_in} and "
            f"source factors {alu.src_out}, {alu.src_in}",
            position,
        )


def check_finish(instructions: Sequence[AnyInstruction], schedule: Schedule, report: Report) -> None:
    """Tell of a stream that does not end with FINISH, or where something may happen after it."""
    positions = [p for p, instruction in enumerate(instructions) if isinstance(instruction, Finish)]
    if not positions:
        report.add("finish", "the stream has no FINISH")
        return
    if len(positions) > 1:
        report.add("finish", f"there are {len(positions)} FINISH, instructions {positions[0]} and {positions[1]}")
    last = positions[-1]
    if last != len(instructions) - 1:
        report.add("finish", f"instruction {len(instructions) - 1}, the last one, is not FINISH", last)
    clock = schedule.clocks[last]
    for queue in Queue:
        if clock[queue] < len(schedule.queues[queue]):
            later = schedule.queues[queue][clock[queue]]
            report.add("finish", f"instruction {later} may run after FINISH: no token orders it before", later, last)
    finish = instructions[last]
    if finish.pop_prev or finish.pop_next or finish.push_prev or finish.push_next:
        report.add("finish-tokens", f"instruction {last}, FINISH, has tokens", last)
