"""The distribution: a wheel holds the whole package, installs elsewhere, and imports without loading TVM."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import relay

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str, cwd: Path) -> str:
    """Run a Python command line and return its output; fail with both streams if it fails."""
    done = subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def package_files(root: Path) -> set[str]:
    """Every file of the package, relative to `root`, without compiled leftovers."""
    return {
        path.relative_to(root).as_posix()
        for path in (root / "relay").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, with the build tools of this environment."""
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "relay", source / "relay", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    run("-c", "from setuptools import build_meta; build_meta.build_wheel('dist')", cwd=source)
    (built,) = (source / "dist").glob("relay_lang-*-py3-none-any.whl")
    return built


def test_wheel_holds_every_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == package_files(ROOT)
    assert "relay/py.typed" in names


def test_source_distribution_holds_what_its_tests_need() -> None:
    grafted = re.findall(r"^graft (\S+)$", (ROOT / "MANIFEST.in").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"benchmarks", "docs", "examples", "requirements", "tests"} <= set(grafted)
    assert all((ROOT / name).is_dir() for name in grafted)


def test_wheel_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
        assert any(n.endswith("/licenses/LICENSE") for n in archive.namelist())
    assert "Name: relay-lang\n" in metadata
    assert f"Version: {relay.__version__}\n" in metadata
    assert "Requires-Python: >=3.11\n" in metadata
    required = {
        line.removeprefix("Requires-Dist: ")
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    }
    tvm = {"apache-tvm==0.27.*", "apache-tvm-ffi<0.1.15,>=0.1.14.post1"}
    assert required == {"numpy", "attrs", "ml_dtypes", "rich", *tvm}


def test_installed_wheel_imports_from_elsewhere(wheel: Path, tmp_path: Path) -> None:
    target, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    show = (
        "import sys; sys.path.insert(0, sys.argv[1]); import relay; print(relay.__file__); print('tvm' in sys.modules)"
    )
    file, loaded_tvm = run("-c", show, str(target), cwd=elsewhere).splitlines()
    assert Path(file).is_relative_to(target)
    assert loaded_tvm == "False", "import relay must not load TVM"


@pytest.mark.skipif((ROOT / "PKG-INFO").exists(), reason="a source distribution has no links")
def test_operator_library_stands_at_the_root() -> None:
    assert (ROOT / "ops").is_symlink()
    assert (ROOT / "ops").resolve() == ROOT / "relay" / "ops"


def test_requirements_are_exact() -> None:
    exact = re.compile(r"#.*|[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*")
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert exact.fullmatch(line), f"{path.name}: {line}"
