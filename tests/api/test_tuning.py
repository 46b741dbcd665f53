"""`relay.tune`: other loops compute the same, what is faster is kept and used, and nothing gets slower."""

import json

import attrs
import numpy as np
import pytest

import relay as rl
from relay import relay
from relay.api import tuning
from relay.codegen.lowering.module_builder import options, schedules
from relay.codegen.runtime import cpu
from relay.codegen.tiling import DEFAULT, Choices, TilingChoice, TilingOptions
from relay.compilation import disk_cache, tuning_records
from relay.errors import ExecutionError, TypeMismatch


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("RELAY_NUM_THREADS", "2")
    return tmp_path


def product():
    @relay
    def layer(x, w, b):
        return relay.tanh(x @ w + b)

    return layer


def operands(rows, inner, columns):
    random = np.random.default_rng(0)
    return tuple(random.standard_normal(s).astype(np.float32) for s in ((rows, inner), (inner, columns), (columns,)))


@pytest.mark.parametrize("sizes", [(1, 9, 40), (7, 5, 33), (65, 12, 70)])
def test_every_choice_computes_the_same(sizes):
    layer, (x, w, b) = product(), operands(*sizes)
    expected = np.tanh(x.astype(np.float64) @ w + b)
    core = layer.core(x, w, b)
    ((name, found),) = options(core, 2).items()
    tilings = found.tilings["gemm"]
    first, last = tilings.tiles[0], tilings.tiles[-1]
    assert tilings.packed == tilings.parallel == (True, False)
    for choice in (
        TilingChoice(*first, True, True),
        TilingChoice(*last, False, False),
        TilingChoice(packed=False, parallel=True),
    ):
        program = cpu.Program(cpu.compile_native(core, 2, {name: choice}), cpu.DataResult)
        np.testing.assert_allclose(program((x, w, b)), expected, rtol=2e-6, atol=2e-6, err_msg=str(choice))


def with_one_tile(found: TilingOptions) -> TilingOptions:
    tilings = {rule: attrs.evolve(t, tiles=t.tiles[:1]) for rule, t in found.tilings.items()}
    return TilingOptions(found.rules, tilings)


def test_a_rule_that_is_quicker_is_kept(monkeypatch):
    @relay
    def classes(x):
        return rl.softmax(x)

    x = np.random.default_rng(0).standard_normal((100, 7)).astype(np.float32)
    before = classes(x).numpy()
    monkeypatch.setattr(tuning, "_in_turns", lambda first, second: (2.0, 1.0))
    seconds = iter([2.0, 3.0, 1.0, *[4.0] * 100])
    monkeypatch.setattr(tuning, "_seconds", lambda call, samples=5: next(seconds))
    (measured,) = rl.tune(classes, x).kernels
    ((_, found),) = options(classes.core(x), 2).items()
    assert measured.choice == TilingChoice(rule=found.rules[1]) and not found.tilings
    (schedule,) = schedules(classes.core(x), 2, tuning_records.choices(2))
    assert schedule.decisions[0].rule == found.rules[1]
    np.testing.assert_allclose(classes(x).numpy(), before, rtol=1e-6)


def faster_without_packing(monkeypatch):
    """Let programs seem fast whose last kernel does not pack."""
    compiled = []
    original = cpu.compile_native

    def compile_native(module, threads, choices=None, *more):
        compiled.append(choices or {})
        return original(module, threads, choices, *more)

    def seconds(call, samples=5):
        return times[call]

    class Times(dict):
        def __missing__(self, call):
            self[call] = 1.0 if any(c.packed is False for c in compiled[-1].values()) else 2.0
            return self[call]

    times = Times()
    kernels = tuning._kernels
    fewer = lambda *given: ((n, m, with_one_tile(o)) for n, m, o in kernels(*given))  # noqa: E731
    monkeypatch.setattr(tuning, "_kernels", fewer)
    monkeypatch.setattr(cpu, "compile_native", compile_native)
    monkeypatch.setattr(tuning, "_seconds", seconds)
    monkeypatch.setattr(tuning, "_in_turns", lambda first, second: (2.0, seconds(second)))
    return compiled


def test_what_is_faster_is_kept_and_used(folder, monkeypatch):
    compiled = faster_without_packing(monkeypatch)
    layer, (x, w, b) = product(), operands(70, 8, 16)
    before = layer(x, w, b).numpy()
    found = rl.tune(layer, x, w, b)
    assert found.kept and found.after < found.before and found.kernels[0].choice.packed is False
    assert "packed=False" in str(found)
    (choice,) = tuning_records.choices(2).values()
    assert choice == found.kernels[0].choice and tuning_records.choices(1) == {}
    compiled.clear()
    monkeypatch.setenv("RELAY_CACHE_SIZE", "0")
    np.testing.assert_allclose(layer(x, w, b).numpy(), before, rtol=1e-6)
    assert compiled == [tuning_records.choices(2)]


def test_choices_are_part_of_what_the_cache_knows():
    layer, arguments = product(), operands(4, 4, 4)
    typed = layer.typed(*arguments)
    some: tuple[Choices, ...] = {}, {"a": DEFAULT}, {"a": TilingChoice(packed=True)}
    keys = {disk_cache.key(typed, 2, 2, choices, frozenset()) for choices in some}
    assert len(keys) == 3


def test_what_is_not_faster_as_a_whole_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(tuning, "_in_turns", lambda first, second: (1.0, 1.0))
    layer, arguments = product(), operands(5, 6, 40)
    found = rl.tune(layer, *arguments, seconds=0.1)
    assert not found.kept and tuning_records.choices(2) == {} and not tuning_records.path().exists()


def test_no_time_is_no_change():
    found = rl.tune(product(), *operands(5, 6, 40), seconds=0.0)
    assert not found.kept and found.kernels == ()


def test_a_program_without_products_has_nothing_to_tune():
    @relay
    def double(x):
        return x + x

    assert rl.tune(double, np.ones(3, np.float32)).kernels == ()


GOOD = {"height": 4, "vectors": None, "packed": None, "parallel": None, "rule": None}


@pytest.mark.parametrize(
    "content",
    [
        *("{", "[]", '{"a": 3}', {"rows": 4}, 3),
        *({**GOOD, field: value} for field, value in (("height", "4"), ("vectors", 0), ("packed", 7), ("rule", 7))),
    ],
)
def test_a_damaged_file_is_not_used_which_is_said(content, caplog):
    tuning_records.keep(2, {"kernel": TilingChoice(height=4)})
    if not isinstance(content, str):
        entries = json.loads(tuning_records.path().read_text())
        for kernels in entries.values():
            kernels["kernel"] = content
        content = json.dumps(entries)
    tuning_records.path().write_text(content)
    with caplog.at_level("WARNING", "relay.compile"):
        assert tuning_records.choices(2) == {}
    assert str(tuning_records.path()) in caplog.text
    tuning_records.keep(2, {"other": TilingChoice(vectors=1)})
    assert tuning_records.choices(2) == {"other": TilingChoice(vectors=1)}


def test_a_program_prints_nothing_while_it_is_measured(capsys):
    @relay
    def layer(x, w):
        total = 0.0
        for _ in range(x.shape[1] * 4):
            product = x @ w
            print("product", product.sum())
            total = total + product.sum()
        assert total < 1e9, "large"
        return total

    x, w, _ = operands(7, 8, 16)
    silent = layer.tunable(x, w)({})
    assert silent() == pytest.approx(layer.interpret(x, w))
    assert capsys.readouterr().out.count("product") == 32
    silent()
    assert capsys.readouterr().out == ""
    with pytest.raises(ExecutionError, match="large"):
        layer.tunable(x + 1e9, np.abs(w))({})()


def test_only_functions_of_relay():
    with pytest.raises(TypeMismatch, match="takes a function decorated with @relay"):
        rl.tune(len, [1.0])
