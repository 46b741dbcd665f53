"""Files of compiled programs are code: none that others could have written is loaded, and damage is no danger."""

import contextlib
import hashlib
import json
import os
import re
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay as package
from relay import relay
from relay.codegen.lowering.layout import Pool, RowLayout, StackLayout, TensorLayout, TupleLayout
from relay.codegen.runtime import codec, cpu, library
from relay.codegen.tiling import TilingChoice
from relay.compilation import disk_cache, tuning_records
from relay.errors import CompileError
from relay.ir.dims import Kind, TypeId
from relay.ir.types import FLOAT32
from relay.support import private_files

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have owners on POSIX")

X = np.arange(3, dtype=np.float32)
TEXT = "def twice(x):\n    return x * 2.0 + x[0]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    kept = tmp_path / "kept"
    monkeypatch.setenv("RELAY_CACHE_DIR", str(kept))
    monkeypatch.setenv("RELAY_CACHE_SIZE", str(1 << 24))
    monkeypatch.setattr(disk_cache, "_told", set())
    return kept


@pytest.fixture(scope="module")
def _made() -> dict[str, Any]:
    return {}


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch, _made: dict[str, Any]) -> list[str]:
    """How often something was compiled; the program of these tests is in truth compiled once."""
    found: list[str] = []
    original = cpu.compile_native

    def compiled(*arguments: Any) -> Any:
        found.append("compiled")
        if "native" not in _made:
            _made["native"] = original(*arguments)
        return _made["native"]

    monkeypatch.setattr(cpu, "compile_native", compiled)
    return found


def run() -> None:
    np.testing.assert_array_equal(package.from_source(TEXT, {"relay": relay})(X), X * 2)


def signed_anew(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Change the description of an entry, with the digest that fits."""

    def damage(path: Path) -> None:
        content = path.read_bytes()
        tail = library._FOOTER.size + len(library._MAGIC)
        size, length, _ = library._FOOTER.unpack(content[-tail : -len(library._MAGIC)])
        code, description = content[:size], change(content[size : size + length])
        path.unlink()
        path.write_bytes(library.pack_library(code, description, library._MAGIC))

    return damage


def content(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        changed = change(path.read_bytes())
        path.unlink()
        path.write_bytes(changed)

    return damage


def linked(path: Path) -> None:
    os.rename(path, path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def replaced(make: Callable[[str], None]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        make(str(path))

    return damage


def full_folder(path: str) -> None:
    os.makedirs(f"{path}/inside")


HUGE = struct.pack("<q", 2**62)
DAMAGES = {
    "empty": content(lambda b: b""),
    "truncated": content(lambda b: b[: len(b) // 2]),
    "without its end": content(lambda b: b[:-1]),
    "a bit of the code": content(lambda b: b[:100] + bytes([b[100] ^ 1]) + b[101:]),
    "a bit of the length": content(lambda b: b[:-60] + bytes([b[-60] ^ 1]) + b[-59:]),
    "another version": content(lambda b: b.replace(library._MAGIC, b"relay library 1\n")),
    "no description": signed_anew(lambda d: b""),
    "half a description": signed_anew(lambda d: d[: len(d) // 2]),
    "a huge length": signed_anew(lambda d: b"t" + HUGE + d),
    "a huge text": signed_anew(lambda d: b"s" + HUGE),
    "deep": signed_anew(lambda d: (b"t" + struct.pack("<q", 1)) * 100_000 + b"N"),
    "another value": signed_anew(lambda d: codec.encode([1, 2])),
    "a pickle": signed_anew(lambda d: b"cos\nsystem\n(S'touch executed'\ntR."),
    "another name": signed_anew(lambda d: d.replace(b"twice-", b"thrice", 1)),
    "a link": linked,
    "a link to itself": replaced(lambda p: os.symlink(p, p)),
    "a pipe": replaced(os.mkfifo),
    "a folder": replaced(os.mkdir),
    "a folder with something in it": replaced(full_folder),
    "for all to write": lambda p: p.chmod(0o666),
    "for others to write": lambda p: p.chmod(0o602),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_an_entry_of_others_or_a_damaged_one_is_made_anew(
    folder: Path, compilations: list[str], damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    run()
    (entry,) = disk_cache.entries()
    damage(entry.path)
    run()
    assert len(compilations) == 2
    assert str(entry.path) in caplog.text
    status = entry.path.lstat()
    assert stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    run()
    assert len(compilations) == 2  # the new one is found


def test_an_entry_of_another_user_is_not_used(
    folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run()
    (entry,) = disk_cache.entries()
    status = list(entry.path.stat())
    status[stat.ST_UID], status[stat.ST_MODE] = private_files.user() + 1, stat.S_IFREG | 0o644
    monkeypatch.setattr(private_files.os, "fstat", lambda _: os.stat_result(status))
    run()
    assert len(compilations) == 2 and f"{entry.path} belongs to another user" in caplog.text


def test_a_folder_where_others_write_is_not_used(
    folder: Path, compilations: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    for open_one, mode in ((folder, 0o777), (folder.parent, 0o757), (folder, 0o1777)):
        caplog.clear()
        open_one.chmod(mode)
        run()
        compilations.clear()
        run()
        assert compilations == ["compiled"]
        warned = [r.getMessage() for r in caplog.records if "are not used" in r.getMessage()]
        assert len(warned) <= 1 and ("can be written by everybody" in caplog.text or mode == 0o1777)
        open_one.chmod(0o700)
    compilations.clear()
    run()
    assert compilations == []  # what was made meanwhile is this user's


def test_a_folder_around_may_be_for_all_if_they_cannot_replace_what_is_in_it(
    folder: Path, compilations: list[str]
) -> None:
    folder.parent.chmod(0o1777)
    run()
    run()
    assert len(compilations) == 1
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_groups_of_one_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o770)
    monkeypatch.setattr(private_files, "_is_group_of_one", lambda group: True)
    private_files.check_folder(tmp_path)
    monkeypatch.setattr(private_files, "_is_group_of_one", lambda group: False)
    with pytest.raises(private_files.Untrusted, match="by its group"):
        private_files.check_folder(tmp_path)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    aim, link = tmp_path / "aim", tmp_path / "link"
    aim.write_bytes(b"before")
    link.symlink_to(aim)
    private_files.write(link, b"after")
    assert (aim.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"before", b"after", False)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(private_files.UNFINISHED)] == []


@pytest.mark.parametrize("text", ["[" * 100_000, "{", '{"a": 1}', '{"a": {"b": 1}}', "null", "\xff\x00"])
def test_tuned_loops_that_are_damaged(folder: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir(mode=0o700)
    tuning_records.path().write_text(text, encoding="latin-1")
    assert tuning_records.choices(1) == {} and "tuning.json" in caplog.text


def test_tuned_loops_of_others(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir(mode=0o700)
    record = {tuning_records._machine(1): {"kernel": attrs.asdict(TilingChoice())}}
    tuning_records.path().write_text(json.dumps(record))
    assert len(tuning_records.choices(1)) == 1
    tuning_records.path().chmod(0o666)
    assert tuning_records.choices(1) == {} and "can be written by everybody" in caplog.text


def test_nothing_is_pickled() -> None:
    loads = re.compile(r"^\s*(import|from) +(pickle|marshal|shelve|dill|cloudpickle)\b|allow_pickle=True", re.MULTILINE)
    for file in Path(package.__file__).parent.rglob("*.py"):
        assert not loads.search(file.read_text()), file


# ---- the notation

_plain = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()
)
_values = st.recursive(
    _plain,
    lambda v: st.lists(v) | st.tuples(v, v) | st.dictionaries(st.text(), v) | st.frozensets(_plain),
    max_leaves=20,
)


@given(_values)
@settings(max_examples=50, deadline=None)
def test_values_come_back(value: Any) -> None:
    assert codec.decode(codec.encode(value)) == value


@given(_values, st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=9)), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_other_bytes_are_damaged_or_another_value(value: Any, changes: list[tuple[int, bytes]]) -> None:
    written = codec.encode((value, TensorLayout(FLOAT32, (TypeId("n", Kind.Dim), 3)), X))
    for place, change in changes:
        at = place % len(written)
        written = written[:at] + change + written[at + len(change) :]
    with contextlib.suppress(codec.DamagedDataError):
        codec.decode(written)


def test_objects_that_are_one_are_one_again() -> None:
    pool = Pool("rows", slot=3)
    pool.element = TupleLayout((RowLayout(pool), TensorLayout(FLOAT32, ())))
    stack = StackLayout(pool)
    n = TypeId("n", Kind.Dim)
    first, second, dims = codec.decode(codec.encode((stack, StackLayout(pool, stack), {n: (n * 2, X)})))
    row = first.own.element.items[0]
    assert row.pool is first.own is second.own and second.merged is first
    ((size, (double, array)),) = dims.items()
    assert double == size * 2
    np.testing.assert_array_equal(array, X)


@pytest.mark.parametrize(
    "value", [object(), os.system, 2**70, 1j, np.array(["a"]), np.array([object()]), print, Path("a")]
)
def test_what_has_no_form(value: object) -> None:
    with pytest.raises(library.ExportError):
        codec.encode([value])


# ---- libraries that are loaded


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[bytes, str]]:
    path = tmp_path_factory.mktemp("exported") / "twice.so"
    digest = (
        package.from_source("def twice(x):\n    return x * table\n", {"relay": relay, "table": X + 1})
        .compile(X)
        .export(path)
    )
    yield path.read_bytes(), digest


def test_export_returns_the_digest_that_load_checks(exported: tuple[bytes, str], tmp_path: Path) -> None:
    written, digest = exported
    path = tmp_path / "twice.so"
    path.write_bytes(written)
    path.chmod(0o644)
    assert digest == hashlib.sha256(written).hexdigest()
    for given_digest in (None, digest, digest.upper()):
        np.testing.assert_array_equal(package.load(path, sha256=given_digest)(X), X * (X + 1))
    for trusted in (False, True):
        with pytest.raises(CompileError, match="nothing of it was loaded"):
            package.load(path, sha256=digest[:-1] + "x", trusted=trusted)


@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_library_that_others_could_have_written(exported: tuple[bytes, str], tmp_path: Path, place: str) -> None:
    written, digest = exported
    path = tmp_path / "twice.so"
    path.write_bytes(written)
    path.chmod(0o666 if place == "file" else 0o644)
    tmp_path.chmod(0o700 if place == "file" else 0o777)
    with pytest.raises(
        CompileError, match=f"{'twice.so' if place == 'file' else tmp_path.name} can be written"
    ) as caught:
        package.load(path)
    assert "sha256=" in str(caught.value.help)
    with pytest.raises(CompileError, match="nothing of it was loaded"):
        package.load(path, sha256="0" * 64)
    for options in ({"sha256": digest}, {"trusted": True}):
        np.testing.assert_array_equal(package.load(path, **options)(X), X * (X + 1))


def test_a_library_with_a_description_of_another_kind(exported: tuple[bytes, str], tmp_path: Path) -> None:
    path = tmp_path / "twice.so"
    for description in (b"", b"N", codec.encode(("a",)), b"cos\nsystem\n(S'touch executed'\ntR."):
        path.write_bytes(library.pack_library(exported[0][:4096], description, library._EXPORTED))
        path.chmod(0o644)
        with pytest.raises(CompileError, match="damaged"):
            package.load(path)
