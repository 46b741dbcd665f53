"""The convolutions of ResNet-18 that are measured on accelerators, C2 to C11; C1, which has three channels, is not."""

from __future__ import annotations

import attrs

from relay.codegen.vta.layers.layer import AddBias, Layer, Maximum, Minimum, ShiftRight

_SHAPES = {
    "C2": (56, 64, 64, 3, 1),
    "C3": (56, 64, 128, 3, 2),
    "C4": (56, 64, 128, 1, 2),
    "C5": (28, 128, 128, 3, 1),
    "C6": (28, 128, 256, 3, 2),
    "C7": (28, 128, 256, 1, 2),
    "C8": (14, 256, 256, 3, 1),
    "C9": (14, 256, 512, 3, 2),
    "C10": (14, 256, 512, 1, 2),
    "C11": (7, 512, 512, 3, 1),
}
EPILOGUE = (ShiftRight(8), AddBias(by_product=True), Maximum(0), Minimum(127))


def resnet_layers(scale: int = 1) -> list[Layer]:
    """C2 to C11 for one image, with the sums shifted by 8 bits, a bias, and results from 0 to 127. `scale` divides the
    channels."""
    found = []
    for name, (size, ins, outs, kernel, stride) in _SHAPES.items():
        layer = Layer(ins // scale, outs // scale, size, size, (kernel, kernel), (stride, stride), (kernel // 2,) * 4)
        found.append(attrs.evolve(layer, epilogue=EPILOGUE, name=name))
    return found
