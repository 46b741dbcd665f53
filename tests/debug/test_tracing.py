"""Traces: what every variable was bound to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relay
from relay import Ref, debug
from relay.cli import main
from relay.errors import FrontendError


@relay
def step_of(w, rate):
    gradient = 2.0 * w
    return w - rate * gradient


@relay
def descend(w, rounds):
    for _ in range(rounds):
        w = step_of(w, 0.25)
    return w.sum()


W = np.array([4.0, 8.0])


def test_every_binding_in_order() -> None:
    found = debug.trace(descend, W, 2)
    assert found.result == 3.0 and found.error is None and found.dropped == 0
    rows = found.filter("gradient")
    assert [list(row.value) for row in rows] == [[8.0, 16.0], [4.0, 8.0]]
    first = rows[0]
    assert (first.function, first.operator, first.depth, first.round) == ("step_of", "multiply", 2, 1)
    assert first.file == __file__ and first.line == descend.__relay__.function.span.line - 5
    assert first.type == "Tensor[float64, (2,)]"
    assert [row.number for row in found] == sorted(row.number for row in found)
    assert [row.round for row in found.filter("descend") if row.name == "w" and row.span == found[0].span] == [1]
    assert {row.function for row in found} == {"descend", "step_of"}
    assert found[:2].records()[0]["name"] == "w" and list(found[:2].records()[0]["value"]) == [4.0, 8.0]


@pytest.mark.parametrize(
    ("of", "names"),
    [
        ("subtract", {"difference"}),
        (["gradient", "sum"], {"gradient", "sum_result"}),
        (lambda row: row.depth == 2 and row.value.ndim == 0, {"rate"}),
    ],
)
def test_selection(of: object, names: set[str]) -> None:
    found = debug.trace(descend, W, 2, of=of)  # type: ignore[arg-type]
    assert {row.name for row in found} == names
    line = found[0].line
    assert line is not None and all(row.line == line for row in debug.trace(descend, W, 2, of=line))


def test_statistics() -> None:
    found = debug.trace(descend, np.array([np.nan, 8.0]), 3, values="statistics", of="gradient")
    assert [row.statistics.nan for row in found if row.statistics] == [1, 1, 1] and found[0].value is None
    assert [row.statistics.largest for row in found if row.statistics] == [16.0, 8.0, 4.0]
    assert found.records()[2]["mean"] == 4.0 and "4 to 4, mean 4, deviation 0, 1 NaN" in str(found)


def test_bounded_memory() -> None:
    @relay
    def replace(x, rounds):
        for _ in range(rounds):
            x = x + 1.0
        return x.sum()

    found = debug.trace(replace, np.zeros(1000), 200, memory=100_000)
    assert 5 < len(found) < 20 and found.dropped > 300
    assert found.filter("sum")[0].value == found.result == 200_000.0
    assert f".. {found.dropped} older ones are not kept .." in str(found)
    long = debug.trace(replace, np.zeros(2), 100)
    assert len(long.table(10).splitlines()) == 12 and f".. {len(long) - 10} more .." in long.table(10)


def test_saving_and_comparing(tmp_path: Path) -> None:
    found, other = debug.trace(descend, W, 2), debug.trace(descend, W + np.array([0.0, 1e-3]), 2)
    found.save(tmp_path / "t.npz")
    saved = np.load(tmp_path / "t.npz")
    position = next(n for n, row in enumerate(found) if row.name == "gradient")
    assert saved["name"][position] == "gradient" and list(saved[f"value_{position}"]) == [8.0, 16.0]
    assert found.compare(debug.trace(descend, W, 2)) is None and found.compare(other, tolerance=1e-2) is None
    difference = found.compare(other)
    assert difference is not None and difference.row is found[0] and "w in descend" in str(difference)
    longer = found.compare(debug.trace(descend, W, 3))
    assert longer is not None and longer.row is not None and longer.row.name == "rounds"
    debug.trace(descend, W, 2, values="statistics").save(tmp_path / "s.npz")
    assert np.load(tmp_path / "s.npz")["largest"][0] == 8.0


def test_gradients_closures_and_references() -> None:
    found = debug.trace(relay.grad(descend, wrt=0), W, 2)
    assert list(found.result) == [0.25, 0.25] and any(row.name.startswith("d_") for row in found)

    @relay
    def counted(cell, x):
        f = (lambda v: v * x) if x > 0.0 else (lambda v: v)
        cell.value = cell.value + f(2.0)
        return {"twice": cell.value * 2.0}

    cell = Ref(np.array(1.0))
    found = debug.trace(counted, cell, 3.0)
    assert found.result["twice"] == 14.0 and [row.value for row in found.filter("add")] == [7.0]


def test_an_error_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @relay
    def picked(x, i):
        y = x * 2.0
        return y[i]

    found = debug.trace(picked, W, 5)
    assert found.error is not None and found.result is None and list(found.filter("y")[0].value) == [8.0, 16.0]
    assert str(found).endswith("then: index out of range")

    file = tmp_path / "program.py"
    file.write_text("import relay\n\n@relay\ndef f(x):\n    y = x * 0.5\n    return y.sum()\n")
    np.savez(tmp_path / "a.npz", x=np.ones(4))
    out = tmp_path / "out.npz"
    assert main(["debug", f"{file}:f", "--args", str(tmp_path / "a.npz"), "--trace", str(out)]) == 0
    assert "multiply" in capsys.readouterr().out and "y" in np.load(out)["name"]


def test_what_is_refused(tmp_path: Path) -> None:
    for options in ({"values": "all"}, {"memory": -1}, {"of": 1.5}, {"stage": "last"}):
        with pytest.raises(FrontendError):
            debug.trace(descend, W, 2, **options)  # type: ignore[arg-type]
    with pytest.raises(FrontendError, match="cannot be written"):
        debug.trace(descend, W, 1).save(tmp_path / "no" / "t.npz")
