"""`relay run`: a program that is given as text, on arrays from a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from relay.cli.inputs import arguments_for, enter, read_arrays, read_program
from relay.cli.refusal import Refusal
from relay.compilation.stages import CPU, DEFAULT_LEVEL, CompiledSignature, check_target
from relay.eval import interpreter
from relay.eval.named_arrays import arrays_of, elements
from relay.eval.values import Data, Reference, Stack
from relay.ir.types import DataDefinition, DataType, RefType, StackType, TensorType, TupleType, Type, show

NAME = "run"
HELP = "run a program in Relay's notation on the arrays of an .npz file, and print its results"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("file", metavar="PROGRAM.relay")
    parser.add_argument("--entry", metavar="FUNCTION", help="the function to run, if not the program's entry")
    parser.add_argument(
        "--args",
        metavar="ARGS.npz",
        help="arrays by the names of the parameters and of their parts: p.0 of a tuple, p.w of data, p[0] of a list",
    )
    parser.add_argument(
        "--output", metavar="OUT.npz", help="write the results to this .npz file, by name: result, or result.0, .."
    )
    parser.add_argument("--interpret", action="store_true", help="run the reference interpreter instead of native code")
    parser.add_argument("--target", default=CPU, help='the target: cpu, vta, or "vta, log_block=5"')
    parser.add_argument("--level", type=int, default=DEFAULT_LEVEL, choices=range(4), help="the optimization level")


def run(options: argparse.Namespace) -> int:
    """Run the program and print its results by name."""
    module = read_program(options.file)
    if options.entry is not None:
        module = enter(module, options.entry)
    parameters = module.main.parameters
    arrays = {} if options.args is None else read_arrays(options.args)
    values = arguments_for(parameters, arrays, options.args or "--args")
    _check_result("result", module.main.type.result)
    if options.interpret:
        result = interpreter.run(module, values)
    else:
        check_target(options.target)
        signature = CompiledSignature(module, module.main.type.result, options.level, target=options.target)
        result = signature.program(values)
    if options.output is None:
        for name, value in _flat("result", result):
            if isinstance(value, Data):
                print(f"{name}: {value.definition.name}\n{_text(value)}")
            elif isinstance(value, Stack | list):
                print(f"{name}: a list of {len(elements(value))}\n{_text(value)}")
            else:
                print(f"{name}: {value.dtype} {value.shape}\n{value}")
    else:
        try:
            found = dict(arrays_of("result", result))
            with Path(options.output).open("wb") as file:
                np.savez(file, **found)  # type: ignore[arg-type]
        except RecursionError:
            raise Refusal("the result is nested too deeply for a file, or holds itself") from None
        except OSError as error:
            raise Refusal(f"cannot write {options.output}: {error.strerror}") from None
    return 0


def _check_result(name: str, type_: Type) -> None:
    """Raises Refusal for a result that cannot be printed and written."""
    seen: set[DataDefinition] = set()
    pending = [(name, type_)]
    while pending:
        part, type_ = pending.pop()
        match type_:
            case TensorType():
                pass
            case TupleType(items):
                pending += ((f"{part}.{i}", item) for i, item in enumerate(items))
            case StackType(item) | RefType(item):
                pending.append((part, item))
            case DataType(definition):
                if definition not in seen:
                    seen.add(definition)
                    pending += ((part, field) for c in definition.constructors for field in c.fields)
            case _:
                raise Refusal(f"{part} has a {show(type_)}: only tensors, tuples, data, references and lists are shown")


def _flat(name: str, value: object) -> Iterator[tuple[str, np.ndarray | Data | Stack | list[object]]]:
    """The arrays, data and lists of a result by their names."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _flat(f"{name}.{index}", item)
    elif isinstance(value, Reference):
        yield from _flat(name, value.content)
    elif isinstance(value, Data | Stack | list):
        yield name, value
    else:
        yield name, np.asarray(value)


def _text(value: object) -> str:
    """Data as its constructor with its fields, and the content of references. In a loop: lists are long."""
    parts: list[str] = []
    pending = [value]
    shown: set[int] = set()  # references, which may hold themselves
    while pending:
        match pending.pop():
            case str() as text:
                parts.append(text)
            case Data(definition, constructor, fields):
                names = next(c.names for c in definition.constructors if c.name == constructor)
                labels = [f"{name}=" for name in names] or [""] * len(fields)
                pending += _sequence_parts(
                    f"{constructor}(" if fields else constructor, labels, fields, ")" if fields else ""
                )
            case Reference(content) as cell:
                pending.append("(shown before)" if id(cell) in shown else content)
                shown.add(id(cell))
            case Stack() | list() as made:
                items = elements(made)
                pending += _sequence_parts("[", [""] * len(items), items, "]")
            case tuple() as items:
                pending += _sequence_parts("(", [""] * len(items), items, ",)" if len(items) == 1 else ")")
            case array:
                parts.append(" ".join(np.array2string(np.asarray(array), separator=", ").split()))
    return "".join(parts)


def _sequence_parts(begin: str, labels: Sequence[str], items: Sequence[object], end: str) -> list[object]:
    """The parts of a sequence that are shown, the last one first."""
    shown: list[object] = [begin]
    for position, (label, item) in enumerate(zip(labels, items, strict=True)):
        shown += [", " * (position > 0) + label, item]
    return [*shown, end][::-1]
