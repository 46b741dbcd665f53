"""The roofline of the accelerator VTA: operations for each byte against operations a second, for layers of ResNet-18.

    python benchmarks/vta_roofline.py [FOLDER]

Each layer is one tile after the other, and with two virtual threads, in which loading and storing go on while GEMM
multiplies. Prints a table and writes roofline.svg.
"""

import sys
from pathlib import Path

import matplotlib

from relay.codegen.vta.config import DEFAULT
from relay.codegen.vta.layers.resnet import resnet_layers
from relay.codegen.vta.layers.search import best
from relay.codegen.vta.simulator.cycles import CHISEL, Timing, estimate


def timings() -> dict[str, tuple[Timing, Timing, float]]:
    """Each layer with one and with two virtual threads, and what part of the latter's cycles its own products are."""
    found = {}
    for layer in resnet_layers():
        one, two = (estimate(best(layer, threads).stream.instructions, DEFAULT) for threads in (1, 2))
        found[layer.name] = one, two, layer.products / two.cycles
    return found


def draw(layers: dict[str, tuple[Timing, Timing, float]], file: Path) -> None:
    """Both kinds of points below the roof."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    peak = 2 * DEFAULT.batch * DEFAULT.block**2 * CHISEL.megahertz / 1000
    bandwidth = CHISEL.bus * CHISEL.megahertz / 1000
    figure, axis = pyplot.subplots(figsize=(6, 4))
    axis.plot([8, peak / bandwidth, 512], [8 * bandwidth, peak, peak], color="black")
    for number, label in enumerate(("one virtual thread", "two virtual threads")):
        points = [pair[number] for pair in layers.values()]
        axis.scatter([p.intensity for p in points], [p.gops for p in points], label=label, zorder=3)
    for name, (one, two, _) in layers.items():
        axis.plot([one.intensity, two.intensity], [one.gops, two.gops], color="gray", linewidth=0.7)
        axis.annotate(name, (two.intensity, two.gops), textcoords="offset points", xytext=(4, 4), fontsize=8)
    axis.set(xscale="log", yscale="log", xlabel="operations a byte", ylabel="GOPS")
    axis.legend()
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/vta")
    layers = timings()
    print(f"{'':4} {'one thread':>20} {'two threads':>20} {'own':>6} {'ops/byte':>9} {'GOPS':>6}  busiest")
    for name, (one, two, own) in layers.items():
        print(
            f"{name:4} {one.cycles:12} {one.utilization:7.3f} {two.cycles:12} {two.utilization:7.3f} {own:6.3f}"
            f" {two.intensity:9.0f} {two.gops:6.1f}  {two.bound}"
        )
    draw(layers, folder / "roofline.svg")
    print(f"wrote {folder / 'roofline.svg'}")


if __name__ == "__main__":
    main()
