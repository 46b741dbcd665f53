"""The documentation: programs that show their output print exactly that, and links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@attrs.frozen
class Example:
    """A fenced Python program that is followed by a fenced text block: what it prints."""

    page: Path
    program: str
    output: str

    def __str__(self) -> str:
        return self.page.name


def examples() -> list[Example]:
    """All such programs in the pages, in order."""
    fences = re.compile(r"^```python\n(.*?)^```\n\s*^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [Example(page, *found) for page in PAGES for found in fences.findall(page.read_text(encoding="utf-8"))]


def test_readme_has_an_example() -> None:
    assert any(example.page.name == "README.md" for example in examples())


@pytest.mark.parametrize("example", examples(), ids=str)
def test_program_prints_what_the_page_says(example: Example, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(example.program, encoding="utf-8")
    command = [sys.executable, "-W", "error", str(program)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == example.output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
