"""`make test-gpu`: everything that needs a GPU, as one report. Without a GPU it says so in one line, and ends with 0.

1. Correctness: all programs of the tests, values and gradients, and programs that are large enough for cuBLASLt and
   cuDNN, beside the interpreter.
2. compute-sanitizer, memcheck and racecheck, on a sample of them, where it is installed.
3. Speed, beside PyTorch and JAX where they are installed, one process each, and as a part of the GPU's peaks.

It ends with 1 if anything was wrong. `--dry-run` does all of it without a GPU, on a sample of the programs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpu_cases import CASES, LSTM_64, SMALL_WORKLOADS, WORKLOADS
from gpu_models import MODELS
from gpu_worker import MARK, ROOT, SECONDS, check, program_keys, toolchain

from relay.codegen.cuda.driver import Gpu, open_gpu
from relay.codegen.cuda.target import ARCHITECTURES
from relay.errors import RelayError

FRAMEWORKS = ("relay", "torch", "torch-compile", "jax")

Lines = list[str]


def worker(arguments: Sequence[str], prefix: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """What a worker tells, line by line; at last its status and the end of what it wrote besides."""
    command = [*prefix, sys.executable, str(Path(__file__).with_name("gpu_worker.py")), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, errors="replace"
    )
    other: Lines = []
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(MARK):
            yield json.loads(line[len(MARK) :])
        elif line.strip():
            other = [*other[-30:], line.rstrip()]
    yield {"status": process.wait(), "output": other}


def checked(keys: Sequence[str], flags: Sequence[str], say: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
    """The outcomes of programs. Where a process ends, the program that it was at has failed, and another goes on."""
    left, found = list(keys), []
    while left:
        end: dict[str, Any] = {}
        before = len(left)
        for line in worker(["correctness", *flags, *left[:50]]):
            if "key" in line:
                found.append(line)
                left.remove(line["key"])
                say(line)
            else:
                end = line
        if end["status"] not in (0, 3) or len(left) == before:
            text = f"its process ended with {end['status']} (after {SECONDS} s, if it hung): "
            text += " | ".join(end["output"][-3:])
            found.append({"key": left[0], "name": left[0], "outcome": "failed", "text": text[:400]})
            say(found[-1])
            left.pop(0)
    return found


def correctness(keys: list[str], flags: Sequence[str], workers: int) -> tuple[Lines, bool]:
    """The first part of the report, and whether all is right."""
    done = Counter[str]()

    def say(line: dict[str, Any]) -> None:
        done[line["outcome"]] += 1
        if line["outcome"] in ("wrong", "failed"):
            print(f"  {line['outcome']}: {line['name']} ({line['key']}): {line['text']}", flush=True)
        if sum(done.values()) % 100 == 0:
            print(f"  {sum(done.values())} of {len(keys)}: {dict(done)}", flush=True)

    found: list[dict[str, Any]] = []
    if "--dry-run" in flags:  # nothing ends the process, and the programs are here already
        for key in keys:
            found.append({"key": key, **check(key)})
            say(found[-1])
    else:
        parts = [keys[n::workers] for n in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            found = [line for part in pool.map(lambda part: checked(part, flags, say), parts) for line in part]
    counts = Counter(line["outcome"] for line in found)
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    lines = ["## Correctness", "", f"{len(found)} values and gradients: {summary}"]
    for outcome in ("wrong", "failed", "refused"):
        lines += [f"- {outcome}: {x['name']} ({x['key']}): {x['text']}" for x in found if x["outcome"] == outcome]
    seconds = [line["seconds"] for line in found if "seconds" in line]
    if seconds:
        lines.append(f"- compiling and interpreting took {max(seconds):.1f} s at most")
    return lines, not counts["wrong"] + counts["failed"]


def sanitizer(keys: list[str]) -> tuple[Lines, bool]:
    """The second part."""
    lines = ["## compute-sanitizer", ""]
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if tool is None:
        return [*lines, "not done: compute-sanitizer is not installed (it comes with NVIDIA's CUDA toolkit)"], True
    right = True
    for kind in ("memcheck", "racecheck"):
        prefix = [tool, "--tool", kind, "--error-exitcode", "9", "--target-processes", "application-only"]
        *told, end = worker(["correctness", "--chunk", "1", *keys], prefix)
        clean = end["status"] == 0 and len(told) == len(keys)
        right = right and clean
        lines.append(f"- {kind}, {len(keys)} programs: {'clean' if clean else 'status ' + str(end['status'])}")
        lines += [] if clean else [f"      {line}" for line in end["output"][-20:]]
    return lines, right


UNITS = {"sm_80": 1024, "sm_90": 2048}
"""Multiply-and-add units for half precision in each multiprocessor."""


def peaks(gpu: Gpu) -> dict[str, float]:
    """The operations of a dtype and the bytes ("memory") that the GPU does in a second at most, by the numbers that the
    driver gives: 128 multiply-and-add units for float32 in each multiprocessor, and two transfers in each clock of the
    memory."""
    kinds, device = gpu.driver.CUdevice_attribute, gpu.call("cuDeviceGet", gpu.index)

    def attribute(name: str) -> int:
        return int(gpu.call("cuDeviceGetAttribute", getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name}"), device))

    clocks = attribute("MULTIPROCESSOR_COUNT") * attribute("CLOCK_RATE") * 1e3
    transfers = attribute("MEMORY_CLOCK_RATE") * 1e3 * 2 * attribute("GLOBAL_MEMORY_BUS_WIDTH") / 8
    halves = clocks * UNITS[gpu.architecture] * 2
    return {"float32": clocks * 128 * 2, "bfloat16": halves, "memory": transfers}


def speed(frameworks: Sequence[str], dry: bool, seconds: float, peak: dict[str, float]) -> Lines:
    """The third part."""
    names = [*CASES, *WORKLOADS, LSTM_64, *MODELS]
    if dry:
        names = ["product_1024", "product_1024_bfloat16", "elementwise", "softmax_rows", *SMALL_WORKLOADS]
    times: dict[str, dict[str, float]] = {}
    notes: Lines = []
    for framework in frameworks:
        print(f"  timing {framework}", flush=True)
        left = list(names)
        while left:
            for line in worker([framework, *["--dry-run"] * dry, "--seconds", str(seconds), *left]):
                if "missing" in line:
                    notes.append(f"- {framework} is not installed: {line['missing']}")
                    left = []
                elif "key" in line:
                    left.remove(line["key"])
                    if "seconds" in line:
                        times.setdefault(framework, {})[line["key"]] = line["seconds"]
                    else:
                        notes.append(f"- {framework}, {line['key']}: {line['text']}")
                elif left:  # the process has ended at this one
                    notes.append(f"- {framework}, {left[0]}: its process ended with {line['status']}")
                    notes += [f"      {text}" for text in line["output"][-3:]]
                    left.pop(0)
    shown = [framework for framework in frameworks if framework in times]
    lines = ["## Speed", "", "| | " + " | ".join(shown) + " | best other / relay | of the peak |"]
    lines.append("| --- |" + " ---: |" * (len(shown) + 2))
    for name in names:
        row = [times[framework].get(name) for framework in shown]
        own = times.get("relay", {}).get(name)
        others = [t for f, t in zip(shown, row, strict=True) if t is not None and f != "relay"]
        ratio = f"{min(others) / own:.2f}" if own and others else ""
        cells = ["" if t is None else f"{1e6 * t:.1f} us" for t in row]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {ratio} | {_part(name, own, dry, peak)} |")
    return [*lines, "", *notes]


def _part(name: str, seconds: float | None, dry: bool, peak: dict[str, float]) -> str:
    """What part of the GPU's peak a case reaches."""
    if name not in CASES or seconds is None or dry:
        return ""
    case = CASES[name]
    size = case.size
    if case.operations is not None:
        return f"{case.operations(size) / seconds / peak[case.dtype]:.2f} ({case.dtype})"
    assert case.bytes is not None
    return f"{case.bytes(size) / seconds / peak['memory']:.2f} (memory)"


def main() -> int:
    """Print the report, and write it to a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="without a GPU: kernels run on the processor")
    parser.add_argument("--only", nargs="+", choices=("correctness", "sanitizer", "speed"))
    parser.add_argument("--sample", type=int, help="how many values and gradients are checked")
    parser.add_argument("--workers", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each workload is timed")
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
    parser.add_argument("--output", type=Path, default=None, help="a file for the report")
    options = parser.parse_args()
    with toolchain(options.dry_run, None):
        try:
            gpu = open_gpu()
        except RelayError as error:
            print(f"no GPU, so nothing was tested: {error.message}")
            return 0
        if gpu.architecture not in ARCHITECTURES:
            print(f"nothing was tested: the GPU is an {gpu.architecture}, kernels are for {', '.join(ARCHITECTURES)}")
            return 0
        peak = peaks(gpu)
        title = f"# {gpu.name} ({gpu.architecture})" + ", emulated on the processor" * options.dry_run
        libraries = {"cuBLASLt": gpu.cublas, "cuDNN": gpu.cudnn}
    title += "".join(f"\n\n{name} is not there" for name, library in libraries.items() if library is None)
    parts = options.only or ["correctness", "sanitizer", "speed"]
    keys = [key for key in program_keys() if not (options.dry_run and key.startswith("library"))]  # large ones
    count = options.sample or (4 if options.dry_run else len(keys))
    random.Random(0).shuffle(keys)
    flags = ["--dry-run"] * options.dry_run
    report, right = [title, ""], True
    if "correctness" in parts:
        print("correctness", flush=True)
        with toolchain(options.dry_run, None):
            lines, good = correctness(keys[:count], flags, options.workers)
        report, right = [*report, *lines, ""], right and good
    if "sanitizer" in parts and not options.dry_run:
        print("compute-sanitizer", flush=True)
        lines, good = sanitizer(keys[:10])
        report, right = [*report, *lines, ""], right and good
    if "speed" in parts:
        print("speed", flush=True)
        frameworks = ("relay",) if options.dry_run else options.frameworks
        report += speed(frameworks, options.dry_run, 0.01 if options.dry_run else options.seconds, peak)
    text = "\n".join(report)
    print("\n" + text)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
