"""The bar while something is compiled: on a terminal, if it takes long, and nowhere else."""

import os
import pty
import subprocess
import sys
import textwrap

import pytest

from relay.support import progress

PROGRAM = """
    import numpy as np, relay

    @relay.relay
    def f(x, w):
        return relay.softmax(relay.tanh(x @ w)).sum()

    print(relay.grad(f, wrt=0)(np.ones((3, 5), np.float32), np.ones((5, 4), np.float32)).shape)
"""


def errors_on_a_terminal(tmp_path, delay):
    """What a program writes to standard error, which is a terminal."""
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "RELAY_PROGRESS": delay, "RELAY_CACHE_SIZE": "0", "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            written += read
        assert process.stdout is not None and process.stdout.read() == b"(3, 5)\n", written.decode()
    os.close(ours)
    assert process.returncode == 0
    return written.decode()


def test_it_is_shown_with_what_is_being_done(tmp_path):
    shown = errors_on_a_terminal(tmp_path, "0")
    assert "compiling" in shown and "machine code" in shown


def test_nothing_is_shown_for_what_is_quick(tmp_path):
    assert errors_on_a_terminal(tmp_path, "1000") == ""


def test_it_can_be_turned_off(tmp_path):
    assert errors_on_a_terminal(tmp_path, "never") == ""


@pytest.mark.parametrize("delay", ["0", "1"])
def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch, capsys, delay):
    monkeypatch.setenv("RELAY_PROGRESS", delay)
    with progress.progress_bar("work"):
        progress.show_progress("a part", 1, 2)
    assert capsys.readouterr() == ("", "")
