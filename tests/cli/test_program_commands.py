"""The commands that work on programs as text: `opt` and `run`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.cli import main

TEXT = """
entry fn f(%x: Tensor[float64, (2, 2)], %pair: (Tensor[float64, ()], Tensor[int32, ()])) -> Tensor[float64, (2, 2)] {
  let %scale: Tensor[float64, ()] = %pair.0;
  let %a: Tensor[float64, (2, 2)] = @g(%x);
  let %b: Tensor[float64, (2, 2)] = @g(%x);
  let %sum: Tensor[float64, (2, 2)] = add(%a, %b);
  let %y: Tensor[float64, (2, 2)] = multiply(%sum, %scale);
  %y
}

fn g(%x: Tensor[float64, (2, 2)]) -> Tensor[float64, (2, 2)] {
  let %product: Tensor[float64, (2, 2)] = matmul(%x, %x);
  %product
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.relay"
    path.write_text(TEXT)
    return str(path)


# ---- opt


def test_opt_prints_what_the_passes_make(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", program, "--passes", "inline, cse, dce"]) == 0
    made = capsys.readouterr().out
    relay.parse(made)
    assert made.count("matmul") == 1 and "fn g" not in made
    assert main(["opt", program, "--level", "3"]) == 0
    assert capsys.readouterr().out.count("matmul") == 1


def test_opt_prints_after_passes_and_times(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", program, "--passes", "inline, cse", "--print-after", "all", "--time", "--check"]) == 0
    out = capsys.readouterr().out
    assert re.findall("# after (.*)", out) == ["inline", "eliminate_common_subexpressions"]
    assert re.search(r"eliminate_common_subexpressions +\d+\.\d\d ms +7 -> 6 bindings", out)
    assert main(["opt", program, "--passes", "inline, cse", "--print-after", "cse"]) == 0
    assert re.findall("# after (.*)", capsys.readouterr().out) == ["eliminate_common_subexpressions"]
    written = Path(program).with_name("written.relay")
    assert main(["opt", program, "--passes", "inline, cse", "--diff", "-o", str(written)]) == 0
    assert main(["check", str(written)]) == 0
    assert "FLOPs: 40 -> 24" in capsys.readouterr().out
    assert main(["opt", "--list"]) == 0
    assert "fold_constants {max_size=8192}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--passes", "inlin"], "there is no pass 'inlin'; did you mean 'inline'?"),
        (["--passes", "improve-accuracy{low=2.0, high=1.0}"], "the range of other variables is empty: 2.0 to 1.0"),
        (["--passes", "convert-layout{layout=NCWH}"], "the option 'layout' of 'convert-layout' is NCW or NWC or NCHW"),
        (["--passes", "cse{deep}"], "the pass 'cse' has no option 'deep'; it has none"),
        (["--passes", "cse", "--print-after", "inlin"], "there is no pass 'inlin'"),
        (["--passes", "cse", "--print-after", "dce"], "eliminate_dead_code is not among the passes"),
        (["--level", "4"], "the optimization level must be 0 to 3, found 4"),
        (["--passes", "cse", "--constants", "a.npz"], "--constants needs -o"),
        (["--passes", "cse", "-o", "/no/such/folder/a"], "cannot write /no/such/folder/a"),
    ],
)
def test_opt_refuses_in_one_line(
    program: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["opt", program, *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("relay opt: ") and message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["opt", "{p}", "--levl", "2"], "relay opt: there is no argument '--levl', did you mean --level?"),
        (["opt", "{p}", "--passes"], "relay opt: argument --passes: expected one argument"),
        (["opt", "{p}", "--level", "x"], "relay opt: argument --level: invalid int value: 'x'"),
        (["opt", "{p}", "more"], "relay opt: there is no argument 'more'"),
        (["opt"], "relay opt: give a PROGRAM.relay"),
        (["opt", "{binary}"], "binary.relay: it is not text in UTF-8, from byte 3 on"),
        (["opt", "{folder}"], "Is a directory"),
        (["run", "{p}", "--args", "{binary}"], "binary.relay is not an .npz file"),
        (["run", "{p}", "--args", "{cut}"], "cut.npz is not an .npz file, or is incomplete"),
        (["run", "{p}", "--args", "{folder}/x.npy"], "x.npy holds one array without a name"),
        (["check", "{folder}/none.py"], "none.py: No such file or directory"),
        (["show", "{folder}/raising.py:f"], "raising.py:2 cannot be imported: ZeroDivisionError: division by zero"),
        (["show", "{folder}/leaving.py:f"], "leaving.py:1 cannot be imported: SystemExit: 3"),
        (["show", "{folder}/wrong.py:f"], "wrong.py cannot be imported: SyntaxError: "),
        (["show", "{binary}:f"], "binary.relay cannot be imported: "),
        (["show", "{folder}/model.py:laier"], "has no decorated function 'laier'; did you mean 'layer'?"),
        (["show", "{folder}/model.py:f", "--stage", "cor"], "argument --stage: invalid choice: 'cor'"),
        (["shwo"], "relay: argument COMMAND: invalid choice: 'shwo'"),
        ([], "relay: the following arguments are required: COMMAND"),
    ],
)
def test_wrong_calls_get_one_line(
    tmp_path: Path, program: str, python: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "binary.relay").write_bytes(b"ab \xb1\x00\xff")
    np.savez(tmp_path / "cut.npz", x=np.eye(2))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:-9])
    np.save(tmp_path / "x.npy", np.eye(2))
    (tmp_path / "raising.py").write_text("x = 0\n1 / x\n")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "wrong.py").write_text("def f(:\n")
    names = {"p": program, "folder": tmp_path, "binary": tmp_path / "binary.relay", "cut": tmp_path / "cut.npz"}
    try:
        code = main([a.format(**names) for a in arguments])
    except SystemExit as leaving:  # as argparse does
        code = leaving.code  # type: ignore[assignment]
    error = capsys.readouterr().err
    assert code == 2 and message in error and error.count("\n") == 1


def test_damaged_programs_are_errors_at_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random, path = np.random.default_rng(0), tmp_path / "damaged.relay"
    pieces = ["", "(", ")", "{", "%", "@", '"', "\n", "1", "%x", "let ", "é", "\0", "#", "f64", "; ", "->", "$a", "|"]
    for _ in range(150):
        text = list(TEXT)
        for _ in range(random.integers(1, 4)):
            start = int(random.integers(len(text)))
            text[start : start + int(random.integers(3))] = str(random.choice(pieces))
        path.write_text("".join(text), encoding="utf-8")
        code = main(["check", str(path)])
        out, error = capsys.readouterr()
        assert error == "" and code == (0 if out.startswith("no errors") else 1)
        assert code == 0 or re.match(rf"{re.escape(str(path))}:\d+:\d+: error: ", out), out


def test_opt_knows_the_order_of_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "typed.relay"
    path.write_text("fn f(%x: ()) -> () { let %g: fn(()) -> () = fn g(%y: ()) -> () { %y }; let %z: () = %g(%x); %z }")
    assert main(["opt", str(path), "--passes", "cse"]) == 2
    assert "works on programs that are structured: put specialize, structure before it" in capsys.readouterr().err
    assert main(["opt", str(path), "--passes", "specialize, structure, inline"]) == 0


def test_programs_that_are_none(tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", str(tmp_path / "missing.relay")]) == 2
    assert "cannot read" in capsys.readouterr().err
    for folder in (".", "..", str(tmp_path)):
        assert main(["opt", folder]) == 2
        assert capsys.readouterr().err == f"relay opt: cannot read {folder}: Is a directory\n"
    wrong = tmp_path / "wrong.relay"
    wrong.write_text("fn f(%x: ()) -> () { %y }")
    for command in ("opt", "run", "check"):
        assert main([command, str(wrong)]) == 1
        assert f"{wrong}:1:22: error: " in capsys.readouterr().out
    assert main(["check", program]) == 0


def test_untyped_programs_are_shown_and_checked(
    python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", f"{python}:f", "--stage", "surface"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("surface;\n\nentry fn f(%x: Tensor[float64, (3, 4)]") and "apply @layer(%x, %w)" in text
    path = tmp_path / "f.relay"
    path.write_text(text)
    assert main(["check", str(path)]) == 0
    capsys.readouterr()
    for command in ("opt", "run"):
        assert main([command, str(path)]) == 2
        assert f"relay {command}: {path} is untyped" in capsys.readouterr().err
    path.write_text(text.replace("%y, %y", "%y, %z"))
    assert main(["check", str(path)]) == 1
    assert "there is no variable `%z`" in capsys.readouterr().out


def test_large_constants_go_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    array = np.arange(100, dtype=np.float64).reshape(10, 10)

    @relay
    def f(x):  # type: ignore[no-untyped-def]
        return x @ array

    module = f.core(array)
    aside: dict[str, np.ndarray] = {}
    text = relay.to_text(module, constants=aside)
    assert list(aside) == ["constant0"] and len(text) < 700
    assert relay.parse(text, constants=aside).alpha_hash() == module.alpha_hash()
    (tmp_path / "a.relay").write_text(relay.to_text(module))
    out = tmp_path / "b.relay"
    assert main(["opt", str(tmp_path / "a.relay"), "-o", str(out), "--constants", str(tmp_path / "b.npz")]) == 0
    assert "file" in out.read_text()
    np.savez(tmp_path / "args.npz", x=array)
    assert main(["run", str(out), "--args", str(tmp_path / "args.npz"), "--output", str(tmp_path / "r.npz")]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "r.npz")["result"], array @ array)
    (tmp_path / "b.npz").unlink()
    assert main(["opt", str(out)]) == 1
    assert "there is no array 'constant0' beside the text" in capsys.readouterr().out
    with pytest.raises(relay.FrontendError, match="expected float64"):
        relay.parse(text, constants={"constant0": array.astype(np.float32)})


# ---- run


def test_run_compiles_and_interprets(tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {"x": np.eye(2), "pair.0": np.float64(3), "pair.1": np.int32(1)}
    np.savez(tmp_path / "a.npz", **arguments)  # type: ignore[arg-type]
    for extra in ([], ["--interpret"], ["--level", "0"]):
        assert main(["run", program, "--args", str(tmp_path / "a.npz"), *extra]) == 0
        assert capsys.readouterr().out == "result: float64 (2, 2)\n[[6. 0.]\n [0. 6.]]\n"
    np.savez(tmp_path / "b.npz", x=np.eye(2))
    assert main(["run", program, "--entry", "g", "--args", str(tmp_path / "b.npz")]) == 0
    assert "[[1. 0.]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arrays", "extra", "message"),
    [
        ({"x": np.eye(2)}, [], "has no array 'pair.0' for the parameter of type Tensor[float64, ()]"),
        ({"x": np.eye(3)}, ["--entry", "g"], "x is Tensor[float64, (2, 2)], found float64 (3, 3)"),
        ({"x": np.eye(2), "y": np.eye(2)}, ["--entry", "g"], "the program has no parameter 'y'; it has x"),
        ({"x": np.eye(2)}, ["--entry", "h"], "the program has no function 'h'; there are f, g"),
        (None, [], "cannot read"),
    ],
)
def test_run_refuses_in_one_line(
    tmp_path: Path,
    program: str,
    arrays: dict[str, np.ndarray] | None,
    extra: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if arrays is not None:
        np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    assert main(["run", program, "--args", str(tmp_path / "a.npz"), *extra]) == 2
    error = capsys.readouterr().err
    assert error.startswith("relay run: ") and message in error and error.count("\n") == 1


LIST = """
data List { Nil, Cons(head: Tensor[float32, ()], tail: List) }
entry fn f(%n: Tensor[int32, ()], %x: Tensor[float32, (2,)]) -> (List, Tensor[float32, (2,)]) {
  let %nil: List = List.Nil();
  let %list: List = loop 'l for %i: Tensor[int32, ()] < %n (%l: List = %nil) {
    let %v: Tensor[float32, ()] = cast(%i, dtype=float32);
    let %longer: List = List.Cons(%v, %l);
    next 'l(%longer)
  };
  let %r: (List, Tensor[float32, (2,)]) = (%list, %x);
  %r
}
fn g(%x: Tensor[bfloat16, (2,)]) -> (Tensor[bfloat16, (2,)],) {
  let %y: Tensor[bfloat16, (2,)] = add(%x, %x);
  let %r: (Tensor[bfloat16, (2,)],) = (%y,);
  %r
}
fn h(%x: Tensor[float32, ()]) -> Ref[Tensor[float32, ()]] {
  let %r: Ref[Tensor[float32, ()]] = ref %x;
  %r
}
"""


def test_run_prints_data_and_reads_bfloat16(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, arguments, out = (str(tmp_path / name) for name in ("list.relay", "a.npz", "out.npz"))
    Path(program).write_text(LIST)
    for extra in ([], ["--interpret"]):
        np.savez(arguments, n=np.int32(2), x=np.zeros(2, np.float32))
        assert main(["run", program, "--args", arguments, *extra]) == 0
        shown = "result.0: List\nCons(head=1., tail=Cons(head=0., tail=Nil))\nresult.1: float32 (2,)\n[0. 0.]\n"
        assert capsys.readouterr().out == shown
        np.savez(arguments, n=np.int32(10_000), x=np.zeros(2, np.float32))
        assert main(["run", program, "--args", arguments, *extra]) == 0
        assert capsys.readouterr().out.count("Cons(") == 10_000
    np.savez(arguments, x=np.ones(2, relay.BFloat16.dtype))
    assert main(["run", program, "--entry", "g", "--args", arguments, "--output", out]) == 0
    assert np.load(out)["result.0"].view(relay.BFloat16.dtype).astype(np.float32).tolist() == [2, 2]
    np.savez(arguments, x=np.float32(1))
    assert main(["run", program, "--entry", "h", "--args", arguments]) == 0
    assert capsys.readouterr().out == "result: float32 ()\n1.0\n"


STRUCTURES = """
data List { Nil, Cons(head: Tensor[float64, ()], tail: List) }
data Table { End, Row(rest: Table, key: Tensor[int32, ()], value: Tensor[float64, (2,)]) }
data Tree { Leaf(value: Tensor[float64, ()]), Node(left: Tree, right: Tree) }
data Nat { Zero, Successor(Nat) }
data Layer { Layer(w: Tensor[float64, (2, 2)], bias: (Tensor[float64, (2,)],)) }

entry fn f(
  %xs: List, %table: Table, %tree: Tree, %n: Nat, %layer: Layer, %cell: Ref[Tensor[float64, ()]],
  %items: list[Layer], %stack: Stack[List]
) -> (Stack[List], list[Layer], Ref[Tensor[float64, ()]], Layer, Nat, Tree, Table, List) {
  let %r: (Stack[List], list[Layer], Ref[Tensor[float64, ()]], Layer, Nat, Tree, Table, List) =
    (%stack, %items, %cell, %layer, %n, %tree, %table, %xs);
  %r
}
fn g(%xs: List, %stack: Stack[List]) -> (List, Stack[List]) {
  let %r: (List, Stack[List]) = (%xs, %stack);
  %r
}
fn h(%f: fn(Tensor[float64, ()]) -> Tensor[float64, ()]) -> () {
  let %r: () = ();
  %r
}
"""
PARTS: dict[str, object] = {
    "xs[0]": 1.0, "xs[1]": 2.0, "xs[2]": 3.0,
    "table[0].key": np.int32(1), "table[0].value": np.ones(2),
    "table[1].key": np.int32(2), "table[1].value": np.zeros(2),
    "tree": "Node", "tree.left": "Leaf", "tree.left.value": 4.0, "tree.right": "Leaf", "tree.right.value": 5.0,
    "n": "Successor", "n.0": "Zero",
    "layer.w": np.eye(2), "layer.bias.0": np.ones(2),
    "cell": 6.0,
    "items[0].w": np.eye(2), "items[0].bias.0": np.zeros(2), "items[1].w": -np.eye(2), "items[1].bias.0": np.zeros(2),
    "stack[0]": "Nil", "stack[1][0]": 7.0,
}  # fmt: skip
NAMES = {"stack": 0, "items": 1, "cell": 2, "layer": 3, "n": 4, "tree": 5, "table": 6, "xs": 7}


def test_data_and_lists_are_read_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, arguments, out = (str(tmp_path / name) for name in ("a.relay", "a.npz", "out.npz"))
    Path(program).write_text(STRUCTURES)
    np.savez(arguments, **PARTS)  # type: ignore[arg-type]
    for extra in ([], ["--interpret"]):
        assert main(["run", program, "--args", arguments, "--output", out, *extra]) == 0
        found = dict(np.load(out))
        renamed = {re.sub(r"^\w+", lambda m: f"result.{NAMES[m[0]]}", name): value for name, value in PARTS.items()}
        assert set(found) == set(renamed)
        for name, value in renamed.items():
            np.testing.assert_array_equal(found[name], value)  # type: ignore[arg-type]
        assert main(["run", program, "--args", arguments, *extra]) == 0
        shown = capsys.readouterr().out
        assert "result.0: a list of 2\n[Nil, Cons(head=7., tail=Nil)]\n" in shown
        assert "result.4: Nat\nSuccessor(Zero)\n" in shown and "result.2: float64 ()\n6.0\n" in shown
        assert "result.5: Tree\nNode(left=Leaf(value=4.), right=Leaf(value=5.))\n" in shown
        # the same list by its constructors, and empty ones
        np.savez(tmp_path / "b.npz", **{"xs": "Cons", "xs.head": 1.5, "xs.tail": "Nil", "stack": np.zeros(0)})  # type: ignore[arg-type]
        assert main(["run", program, "--entry", "g", "--args", str(tmp_path / "b.npz"), "--output", out, *extra]) == 0
        assert {name: value.tolist() for name, value in np.load(out).items()} == {"result.0[0]": 1.5, "result.1": []}


def test_long_lists_are_read_in_a_loop(tmp_path: Path) -> None:
    program, arguments, out = (str(tmp_path / name) for name in ("a.relay", "a.npz", "out.npz"))
    Path(program).write_text(STRUCTURES)
    np.savez(arguments, **{f"xs[{i}]": float(i) for i in range(3000)}, stack=np.zeros(0))  # type: ignore[arg-type]
    assert main(["run", program, "--entry", "g", "--args", arguments, "--output", out, "--interpret"]) == 0
    assert float(np.load(out)["result.0[2999]"]) == 2999


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"xs[0]": None}, "nor its first element, 'xs[0]'"),
        ({"xs[1]": None}, "'xs[2]' is the name of no part of a parameter of type List"),
        (
            {"xs[0]": None, "xs[1]": None, "xs[2]": None},
            "has no array 'xs' that says which List it is, 'Nil' or 'Cons'",
        ),
        ({"xs[2]": np.ones(2)}, "xs[2] is Tensor[float64, ()], found float64 (2,)"),
        ({"table[1].value": None}, "has no array 'table[1].value' for the parameter of type Tensor[float64, (2,)]"),
        ({"table[1].valu": 1.0}, "'table[1].valu' is the name of no part of a parameter of type Table"),
        ({"tree": None}, "has no array 'tree' that says which Tree it is, 'Leaf' or 'Node'"),
        ({"tree": "Nod"}, "tree is a Tree, 'Leaf' or 'Node', found 'Nod'"),
        ({"tree": 1.0}, "tree is a Tree, found float64 ()"),
        ({"tree.right.value": None}, "has no array 'tree.right.value' for the parameter of type Tensor[float64, ()]"),
        ({"layer.b": 1.0}, "'layer.b' is the name of no part of a parameter of type Layer"),
        (
            {"stack[0]": None, "stack[1][0]": None},
            "has no array 'stack[0]' for the parameter of type List, nor an empty array",
        ),
        ({"other": 1.0}, "the program has no parameter 'other'; it has xs, table"),
    ],
)
def test_wrong_parts_are_told_in_one_line(
    tmp_path: Path, changed: dict[str, object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.relay").write_text(STRUCTURES)
    parts = {name: value for name, value in {**PARTS, **changed}.items() if value is not None}
    np.savez(tmp_path / "a.npz", **parts)  # type: ignore[arg-type]
    assert main(["run", str(tmp_path / "a.relay"), "--args", str(tmp_path / "a.npz")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("relay run: ") and message in error and error.count("\n") == 1


def test_functions_are_not_read_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.relay").write_text(STRUCTURES)
    assert main(["run", str(tmp_path / "a.relay"), "--entry", "h"]) == 2
    assert "only tensors, tuples, data, references and lists of them are read" in capsys.readouterr().err


# ---- other entries and derivatives


def test_another_entry_of_a_program_with_symbolic_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "symbolic.relay"
    program.write_text(
        "dims n where n >= 2;\n\n"
        "entry fn main(%x: Tensor[float32, (n,)]) -> Tensor[float32, (n,)] {"
        " let %y: Tensor[float32, (n,)] = @f(%x); %y }\n"
        "fn f(%x: Tensor[float32, (n,)]) -> Tensor[float32, (n,)] { %x }\n"
        "fn g(%k: Tensor[int32, ()]) -> Tensor[int32, ()] { %k }\n"
    )
    for entry, arrays, expected in (("g", {"k": np.int32(3)}, "3"), ("f", {"x": np.float32([1, 2])}, "[1. 2.]")):
        np.savez(tmp_path / "arguments.npz", **arrays)
        arguments = ["run", str(program), "--interpret", "--entry", entry, "--args", str(tmp_path / "arguments.npz")]
        assert main(arguments) == 0
        assert expected in capsys.readouterr().out


DERIVED = """
entry fn f(%x: Tensor[float64, ()]) -> Tensor[float64, ()] {
  let %a: Tensor[float64, ()] = multiply(%x, %x);
  %a
}

derivative g: fn(Tensor[float64, ()]) -> Tensor[float64, ()] = grad{wrt=(0,)} @f

derivative h: fn(Tensor[float64, ()]) -> Tensor[float64, ()] = grad{wrt=(0,)} @g
"""


@pytest.mark.parametrize(("entry", "result"), [("f", 9.0), ("g", 6.0), ("h", 2.0)])
@pytest.mark.parametrize("options", [[], ["--interpret"]])
def test_a_derivative_is_run(tmp_path, capsys, entry, result, options):
    program, arrays = tmp_path / "derived.relay", tmp_path / "arrays.npz"
    program.write_text(DERIVED)
    np.savez(arrays, x=np.float64(3.0))
    assert main(["run", str(program), "--entry", entry, "--args", str(arrays), *options]) == 0
    assert capsys.readouterr().out.split() == ["result:", "float64", "()", str(result)]


@pytest.mark.parametrize("passes", ["differentiate", "simplify, differentiate, simplify, fold-constants"])
def test_derivatives_that_no_entry_calls_stay(tmp_path, capsys, passes):
    program, written, arrays = (tmp_path / name for name in ("derived.relay", "written.relay", "arrays.npz"))
    program.write_text(DERIVED)
    assert main(["opt", str(program), "--passes", passes, "-o", str(written)]) == 0
    assert list(relay.parse(written.read_text()).functions) == ["f", "g", "h"]
    np.savez(arrays, x=np.float64(3.0))
    assert main(["run", str(written), "--entry", "h", "--args", str(arrays), "--interpret"]) == 0
    assert "2.0" in capsys.readouterr().out


def test_opt_keeps_what_another_entry_needs(tmp_path, capsys):
    program = tmp_path / "derived.relay"
    program.write_text(DERIVED)
    assert main(["opt", str(program), "--entry", "g", "--passes", "differentiate, inline"]) == 0
    assert list(relay.parse(capsys.readouterr().out).functions) == ["g__entry"]
    assert main(["opt", str(program), "--entry", "k", "--passes", "inline"]) == 2
    assert "the program has no function 'k'; there are f, g, h" in capsys.readouterr().err
