"""The roofline of the accelerator VTA: operations for each byte against operations a second, for layers of ResNet-18.

    python benchmarks/vta_roofline.py [FOLDER]

Each layer is one tile after the other, and with two virtual threads, in which loading and storing go on while GEMM
multiplies. Prints a table: in what part of the cycles DMA, GEMM and ALU work, and what bounds the layer: DMA, or what
the compute unit, which does GEMM and ALU by turns, does most. Writes roofline.svg.
"""

import sys
from pathlib import Path

from relay.codegen.vta.config import DEFAULT
from relay.codegen.vta.layers.resnet import resnet_layers
from relay.codegen.vta.layers.search import best_schedule
from relay.codegen.vta.simulator.cycles import Timing, estimate
from relay.codegen.vta.simulator.roofline import roofline_svg


def timings() -> dict[str, tuple[Timing, Timing, float]]:
    """Each layer with one and with two virtual threads, and what part of the latter's cycles its own products are."""
    found = {}
    for layer in resnet_layers():
        one, two = (estimate(best_schedule(layer, threads).stream.instructions, DEFAULT) for threads in (1, 2))
        found[layer.name] = one, two, layer.products / two.cycles
    return found


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/vta")
    layers = timings()
    heads = f"{'own':>6} {'ops/byte':>9} {'GOPS':>6} {'DMA':>5} {'GEMM':>5} {'ALU':>5}"
    print(f"{'':4} {'one thread':>20} {'two threads':>20} {heads}  bound by")
    for name, (one, two, own) in layers.items():
        shares = " ".join(f"{share:5.0%}" for share in two.shares.values())
        print(
            f"{name:4} {one.cycles:12} {one.utilization:7.3f} {two.cycles:12} {two.utilization:7.3f} {own:6.3f}"
            f" {two.intensity:9.0f} {two.gops:6.1f} {shares}  {two.bound}"
        )
    series = {
        "one virtual thread": [(name, one) for name, (one, _, _) in layers.items()],
        "two virtual threads": [(name, two) for name, (_, two, _) in layers.items()],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "roofline.svg").write_text(roofline_svg(series))
    print(f"wrote {folder / 'roofline.svg'}")


if __name__ == "__main__":
    main()
