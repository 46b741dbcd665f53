"""A first call enters few files: what few programs have is imported with the first of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MOST = 208
"""The most files that the first call of a function of one line may enter."""


def test_files_that_calls_enter() -> None:
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("entered_files.py"))],
        env={**os.environ, "RELAY_CACHE_SIZE": "0", "RELAY_VERIFY": "0"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    counts = {text[:12].strip(): int(text[12:].split()[0]) for text in run.stdout.splitlines()}
    assert 100 < counts["first"] <= MOST
    assert counts["second"] <= 3
    assert counts["other size"] < counts["first"]
