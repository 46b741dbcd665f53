"""`relay transform`: a program that is given as text, made ready for inference, from some inputs to some outputs."""

from __future__ import annotations

import argparse
from typing import get_args

import numpy as np

from relay.api.modules import from_module
from relay.api.numbers import choose_precision
from relay.api.quantization import Method, to_int8
from relay.cli.inputs import enter, read_arrays, read_program
from relay.cli.opt import write_program
from relay.cli.refusal import Refusal
from relay.ir.expr import Derivative, Module
from relay.ir.types import TensorType, base_of_dtype, show
from relay.text.printer import to_text
from relay.transform.deployment.outputs import select_outputs
from relay.transform.deployment.sizes import module_sizes, sizes_report
from relay.transform.pipeline import Pipeline
from relay.transform.properties import properties_of

NAME = "transform"
HELP = "make a program ready for inference: keep what outputs need, remove what only training does, quantize"

INFERENCE = (
    "switch-to-inference, remove-prints, remove-assertions, remove-identities, inline, expand-composites, simplify,"
    " fold-constants{made, max_size=64MiB}, fold-scales, fold-constants{made, max_size=64MiB}, simplify, cse, dce,"
    " merge-constants"
)
"""The passes that run unless others are given."""

DTYPES = ("bfloat16", "float16", "float32", "float64")
"""The precisions that `--error` tries, which texts can be in."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("file", metavar="PROGRAM.relay")
    parser.add_argument("--inputs", metavar="NAMES", default="", help="variables that are parameters of the result")
    parser.add_argument("--outputs", metavar="NAMES", default="", help="variables that are its results")
    parser.add_argument("--entry", metavar="FUNCTION", help="the function, if not the entry")
    parser.add_argument("--passes", metavar="LIST", default=INFERENCE, help=f"instead of {INFERENCE}")
    parser.add_argument("--then", metavar="LIST", default="", help="passes after those, as quantize-weights")
    parser.add_argument(
        "--samples",
        metavar="FILE.npz",
        help="before --then, compute products in 8 bits, with scales measured on samples: an array for each input,"
        " whose first axis counts the samples",
    )
    parser.add_argument(
        "--error",
        metavar="BOUND",
        type=float,
        help="with --samples, instead of products in 8 bits: the cheapest of float16, bfloat16, float32 and float64 for"
        " each value with which the results on the samples are within this relative error",
    )
    parser.add_argument("--method", choices=get_args(Method), default="percentile", help="how they give a scale")
    parser.add_argument("-o", "--output", metavar="OUT.relay", help="write the result, instead of printing it")
    parser.add_argument("--constants", metavar="OUT.npz", help="with -o: write large constants to this file")


def run(options: argparse.Namespace) -> int:
    """Write the program, and print the sizes before and after."""
    if options.constants is not None and options.output is None:
        raise Refusal("--constants needs -o")
    if options.error is not None and options.samples is None:
        raise Refusal("--error needs --samples")
    module = read_program(options.file)
    if options.entry is not None:
        module = enter(module, options.entry)
    before = module_sizes(module)
    try:
        if "structured" not in properties_of(module):
            module = Pipeline("specialize, structure", stage="typed")(module)
        if any(isinstance(f, Derivative) for f in module.functions.values()):
            module = Pipeline("differentiate")(module)
        inputs, outputs = _names(options.inputs), _names(options.outputs)
        if inputs or outputs:
            module = select_outputs(module, inputs, outputs)
        result = _run_passes(module, options.passes)
        if inputs or outputs:  # without parameters that only what the passes removed has read
            result = select_outputs(result, inputs)
        if options.samples is not None:
            result = _with_fewer_bits(result, _samples(result, options.samples), options)
        if options.then:
            result = _run_passes(result, options.then)
            result = select_outputs(result, inputs) if inputs or outputs else result
    except ValueError as error:
        raise Refusal(str(error)) from None
    if options.output is not None:
        write_program(result, options.output, options.constants)
    else:
        print(to_text(result))
    print(sizes_report(before, module_sizes(result)))
    return 0


def _with_fewer_bits(module: Module, samples: list[list[np.ndarray]], options: argparse.Namespace) -> Module:
    """The program with fewer bits, as the options say. Prints what they have cost."""
    if options.error is None:
        quantized = to_int8(module, samples, options.method, power_of_two=False)
        print(quantized)
        return quantized.module
    found = choose_precision(from_module(module), samples, error=options.error, formats=DTYPES)
    print(found)
    changed: Module = found.function.core(*samples[0])
    return changed


def _run_passes(module: Module, passes: str) -> Module:
    pipeline = Pipeline(passes)
    pipeline.known = properties_of(module)
    return pipeline(module)


def _samples(module: Module, file: str) -> list[list[np.ndarray]]:
    """The samples of a file: arguments for the program. Raises Refusal for a file that has not as many for each."""
    arrays = read_arrays(file)
    names = [p.name for p in module.main.parameters]
    missing = [name for name in names if name not in arrays]
    if missing:
        raise Refusal(f"{file} has no samples of {missing[0]}; it has {', '.join(arrays) or 'nothing'}")
    counts = {name: len(arrays[name]) if arrays[name].ndim else 0 for name in names}
    if len(set(counts.values())) > 1 or not all(counts.values()):
        found = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise Refusal(f"the first axis of each array counts the samples, and there are as many of each; found {found}")
    for parameter in module.main.parameters:
        of, type_, base = arrays[parameter.name][0], parameter.type, base_of_dtype(arrays[parameter.name].dtype)
        if base is None or type_ != TensorType(base, of.shape):
            wanted = show(type_) if type_ is not None else "unknown"
            raise Refusal(f"a sample of {parameter.name} is {wanted}, found {of.dtype} {of.shape} in {file}")
    return [list(arguments) for arguments in zip(*(arrays[name] for name in names), strict=True)]


def _names(text: str) -> list[str]:
    return [name.strip().removeprefix("%") for name in text.split(",") if name.strip()]
