"""The machine's peak: the most operations and bytes per second, by which kernels are judged."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen
class MachinePeak:
    """Operations per second by dtype, and bytes per second by the bytes that are gone over, in rising order, with this
    many threads."""

    threads: int
    flops: dict[str, float]
    bandwidth: tuple[tuple[int, float], ...]

    def flops_of(self, dtype: str) -> float:
        """Operations per second on elements of a dtype. Shorter floats are computed as float32."""
        return self.flops.get(dtype, self.flops["float32"])

    def bandwidth_of(self, size: int) -> float:
        """Bytes per second of something that goes over this many bytes: those of the next smaller size that was
        measured."""
        found = [rate for measured, rate in self.bandwidth if measured <= size]
        return found[-1] if found else self.bandwidth[0][1]

    def seconds(self, flops: int, size: int, dtype: str | None) -> tuple[float, float]:
        """The least time for this many operations, and that for this many bytes. Those on integers (no dtype) count no
        time, since their rate is not measured."""
        return 0.0 if dtype is None else flops / self.flops_of(dtype), size / self.bandwidth_of(size)

    def __str__(self) -> str:
        rates = [f"{dtype} {rate / 1e9:.3g} GFLOP/s" for dtype, rate in self.flops.items()]
        (_, near), (_, far) = self.bandwidth[0], self.bandwidth[-1]
        return f"{', '.join(rates)}, {near / 1e9:.3g} GB/s in the cache, {far / 1e9:.3g} GB/s in memory"

    def to_json(self) -> dict[str, Any]:
        return attrs.asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> MachinePeak:
        """Raises KeyError, TypeError or ValueError for something else."""
        flops = {str(dtype): float(rate) for dtype, rate in content["flops"].items()}
        bandwidth = tuple((int(size), float(rate)) for size, rate in content["bandwidth"])
        rates = [*flops.values(), *(rate for _, rate in bandwidth)]
        if "float32" not in flops or not bandwidth or not all(0 < rate < float("inf") for rate in rates):
            raise ValueError("it holds no measured peak")
        return cls(int(content["threads"]), flops, bandwidth)
