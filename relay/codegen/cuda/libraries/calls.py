"""Calls of libraries in place of kernels: how a program that is being run starts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from relay.codegen.cuda.launches import GroupKernels
from relay.codegen.cuda.libraries import cublaslt, cudnn
from relay.codegen.cuda.libraries.convolutions import LibraryConvolution
from relay.codegen.cuda.libraries.products import LibraryProduct
from relay.codegen.cuda.tensors import DeviceTensor
from relay.ir.expr import Atom

if TYPE_CHECKING:
    from relay.codegen.cuda.execution import Frame


def run_by_library(
    frame: Frame, group: GroupKernels, operands: Sequence[DeviceTensor], results: Sequence[DeviceTensor]
) -> bool:
    """Start a group by a library; False if its own kernels are to compute it."""
    match group.library:
        case LibraryProduct() as product:
            return _multiply(frame, group, product, operands, results[0])
        case LibraryConvolution() as convolution:
            return _convolve(frame, group, convolution, operands, results)
        case _:
            return False


def _multiply(
    frame: Frame, group: GroupKernels, product: LibraryProduct, operands: Sequence[DeviceTensor], result: DeviceTensor
) -> bool:
    run = frame.run
    sizes = tuple(map(frame.size, product.sizes))
    library = run.gpu.cublas if product.pays(*sizes) else None
    plan = None if library is None else library.plan(product, sizes)
    if library is None or plan is None:
        return False
    addresses = [operand.memory.address for operand in operands]
    with run.gpu.launching(cublaslt.NAME, group.lines):
        library.launch(plan, addresses, result.memory.address, int(run.gpu.stream), run.allocate)
    return True


def _convolve(
    frame: Frame, group: GroupKernels, of_any_size: LibraryConvolution, operands: Sequence[DeviceTensor],
    results: Sequence[DeviceTensor],
) -> bool:  # fmt: skip
    run = frame.run
    convolution = of_any_size.at(frame.size)
    library = run.gpu.cudnn if convolution.refusal() is None else None
    plan = None if library is None else library.plan(convolution)
    if library is None or plan is None:
        return False

    def laid_out(tensor: DeviceTensor | None, copy: GroupKernels | None) -> DeviceTensor | None:
        return tensor if tensor is None or copy is None else frame.compute(copy, [tensor])[0]

    made = dict(zip(group.outputs, results, strict=True))
    variable = group.outputs[0] if group.rest is None else group.rest.result
    if variable not in made:
        made[variable] = run.empty(operands[convolution.parts[0]].dtype, convolution.result_shape)  # type: ignore[arg-type]
    result = made[variable]
    parts = *convolution.parts, convolution.addend
    *copies, copy_back = group.copies
    given = [laid_out(None if part is None else operands[part], copy) for part, copy in zip(parts, copies, strict=True)]
    given.append(operands[convolution.bias] if convolution.bias is not None else None)
    if convolution.has_epilogue and convolution.bias is None:
        given[-1] = run.device(np.zeros(int(convolution.y[1]), result.dtype))  # type: ignore[arg-type]
    own = result if copy_back is None else run.empty(result.dtype, result.shape)
    addresses = [None if tensor is None else tensor.memory.address for tensor in (*given, own)]
    with run.gpu.launching(cudnn.NAME, group.lines):
        if not library.launch(plan, addresses, int(run.gpu.stream), run.allocate):
            return False
    if copy_back is not None:
        frame.compute(copy_back, [own], [result])
    if group.rest is not None:
        known: dict[Atom, DeviceTensor] = dict(zip(group.operands, operands, strict=True))
        known.update(made.items())
        after = group.rest.kernels
        frame.compute(after, [known[atom] for atom in after.operands], [made[output] for output in after.outputs])
    return True
