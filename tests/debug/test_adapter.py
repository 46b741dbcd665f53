"""The debug adapter, driven by a scripted client: over standard input and output, and over a socket."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients.debug_adapter import Client

from relay.cli import debug, main
from relay.debug.adapter.adapter import Adapter
from relay.debug.adapter.framing import Connection

PROGRAM = """import relay


@relay
def square(v):
    w = v * v
    return w + 1.0


@relay
def total(xs, scale, pair):
    found = 0.0
    for x in xs:
        found = found + square(x) * scale["by"]
    print("found", found)
    first, second = pair
    return found / first + second[1]


@relay
def root(x, k):
    y = x * 1.0
    z = relay.sqrt(y)
    return z + y[k]


@relay
def endless(x):
    while x < 1e30:
        x = x + 1.0
    return x
"""

SCRIPT = """import sys
import numpy as np
import relay


@relay
def halved(x):
    y = x * 0.5
    return y


@relay
def marked(x):
    z = x + 1.0
    relay.breakpoint()
    return z * 2.0


print("with", sys.argv[1:])
a = halved(np.float64(3.0))
b = marked(a)
print("result", float(b))
if len(sys.argv) > 2:
    while True:
        pass
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    (tmp_path / "script.py").write_text(SCRIPT)
    parts = {"scale.by": np.float64(2.0), "pair.0": np.float64(2.0), "pair.1": np.arange(3.0)}
    np.savez(tmp_path / "a.npz", xs=np.array([1.0, 2.0, 4.0]), **parts)
    return path


@pytest.fixture
def client() -> Iterator[Client]:
    """A client of an adapter in this process."""
    with connected() as found:
        yield found


@contextlib.contextmanager
def connected() -> Iterator[Client]:
    """A client of an adapter in a thread of this process."""
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rwb") as near, theirs.makefile("rwb") as far:
        thread = threading.Thread(target=Adapter(Connection(far, far), {}, debug.read_call).serve, daemon=True)
        thread.start()
        client = Client(near, near)
        yield client
        ours.shutdown(socket.SHUT_WR)
        thread.join(60.0)
        assert not thread.is_alive()
        theirs.shutdown(socket.SHUT_RDWR)
        client.close()


def launch(client: Client, file: Path, function: str | None = "total", **others: Any) -> None:
    client.request("initialize", adapterID="relay")
    given = {"function": function, "args": str(file.parent / "a.npz")} if function is not None else {}
    client.request("launch", program=str(file), **{**given, **others})
    client.event("initialized")


def started(client: Client, file: Path, **others: Any) -> Any:
    launch(client, file, stopOnEntry=True, **others)
    client.request("configurationDone")
    return client.event("stopped")


def test_a_session(client: Client, file: Path) -> None:
    launch(client, file)
    found = client.request(
        "setBreakpoints",
        source={"path": str(file)},
        breakpoints=[{"line": 6, "condition": "v > 3.0"}, {"line": 14}, {"line": 3}, {"line": 6, "condition": "v >"}],
    )["breakpoints"]
    assert [b["verified"] for b in found] == [True, True, False, False]
    assert "no decorated function" in found[2]["message"] and "not an expression" in found[3]["message"]
    client.request("configurationDone")
    stop = client.event("stopped")
    assert stop["reason"] == "breakpoint" and stop["hitBreakpointIds"] == [found[1]["id"]]
    assert client.place() == ("total", 14)
    client.request("setBreakpoints", source={"path": str(file)}, breakpoints=[{"line": 6, "condition": "v > 3.0"}])
    assert client.move("continue")["reason"] == "breakpoint"
    trace = client.request("stackTrace", threadId=1)
    assert [(f["name"], f["line"]) for f in trace["stackFrames"]] == [("square", 6), ("total", 14)]
    assert trace["stackFrames"][0]["source"]["path"] == str(file) and trace["totalFrames"] == 2
    assert client.request("stackTrace", threadId=1, startFrame=1, levels=1)["stackFrames"][0]["name"] == "total"
    assert client.request("evaluate", expression="v * 2.0", frameId=1)["result"] == "8"
    assert client.request("evaluate", expression="found + x", frameId=2, context="hover")["result"] == "18"
    assert client.move("stepOut")["reason"] == "step" and client.place()[0] == "total"
    assert client.move("stepBack")["reason"] in ("step", "breakpoint")
    assert client.move("reverseContinue")["description"] == "the record begins"
    assert client.place() == ("total", 13)
    messages = [{"line": 14, "logMessage": "{x}: {square(x) * 2.0}"}, {"line": 14, "logMessage": "{x"}]
    found = client.request("setBreakpoints", source={"path": str(file)}, breakpoints=messages)["breakpoints"]
    assert [b["verified"] for b in found] == [True, False] and "braces that do not fit" in found[1]["message"]
    client.request("continue", threadId=1)
    assert client.event("exited") == {"exitCode": 0}
    client.event("terminated")
    said = client.output()
    assert "1.0: 4.0\n2.0: 10.0\n4.0: 34.0\n" in said
    assert "found 48.0\n" in said and "total returned Array(25." in said
    client.request("disconnect")


def test_variables_open(client: Client, file: Path) -> None:
    np.savez(file.parent / "a.npz", **{**np.load(file.parent / "a.npz"), "xs": np.arange(250.0)})
    assert started(client, file)["reason"] == "entry"
    found = client.variables()
    assert found["xs"]["type"] == "Tensor[float64, (250,)]" and found["xs"]["indexedVariables"] == 250
    named = client.parts(found["xs"], filter="named")
    assert named["shape"] == "(250,)" and named["dtype"] == "float64" and "mean 124.5" in named["statistics"]
    assert client.parts(found["xs"], filter="indexed", start=3, count=2) == {"[3]": "3", "[4]": "4"}
    number = found["xs"]["variablesReference"]
    groups = client.request("variables", variablesReference=number, filter="indexed")["variables"]
    assert [g["name"] for g in groups] == ["[0..99]", "[100..199]", "[200..249]"]
    assert client.parts(groups[2])["[249]"] == "249"
    assert client.parts(found["scale"]) == {"['by']": "2"}
    assert list(client.parts(found["pair"])) == ["[0]", "[1]"]
    scopes = client.request("scopes", frameId=1)["scopes"]
    assert [s["expensive"] for s in scopes] == [False, True]
    assert client.request("variables", variablesReference=scopes[1]["variablesReference"])["variables"]
    targets = client.request("completions", text="1.0 + pa", column=9, frameId=1)["targets"]
    assert [t["label"] for t in targets] == ["pair"]
    assert "mean 124.5" in client.request("evaluate", expression=":stats xs", context="repl")["result"]
    assert "no command" in client.refused("evaluate", expression=":step", context="repl")
    assert "not defined" in client.refused("evaluate", expression="nothing", frameId=1)
    client.move("next")
    assert "to an earlier stop" in client.refused("variables", variablesReference=999)


def test_variables_are_changed(client: Client, file: Path) -> None:
    started(client, file)
    scope = client.request("scopes", frameId=1)["scopes"][0]["variablesReference"]
    found = client.variables()
    rows = found["xs"]["variablesReference"]
    client.parts(found["xs"])
    assert client.request("setVariable", variablesReference=rows, name="[2]", value="0.0 * xs[0]")["value"] == "0"
    inside = client.request("variables", variablesReference=found["pair"]["variablesReference"])["variables"]
    second = inside[1]["variablesReference"]
    assert client.request("setVariable", variablesReference=second, name="[1]", value="100.0")["value"] == "100"
    assert "is not defined here" in client.refused("setVariable", variablesReference=scope, name="foo", value="1.0")
    assert client.request("evaluate", expression="xs", frameId=1)["result"] == "[1., 2., 0.]"
    client.request("continue", threadId=1)
    client.event("terminated")
    assert "total returned Array(108." in client.output()


def test_function_breakpoints_steps_and_instructions(client: Client, file: Path) -> None:
    launch(client, file)
    names = [{"name": "square"}, {"name": "op divide"}, {"name": "sqare"}]
    found = client.request("setFunctionBreakpoints", breakpoints=names)["breakpoints"]
    assert [b["verified"] for b in found] == [True, True, False] and "no function" in found[2]["message"]
    client.request("configurationDone")
    client.event("stopped")
    assert client.place() == ("square", 6)
    client.move("next")
    assert client.place() == ("square", 7)
    client.move("stepIn")
    assert client.place() == ("total", 13)
    client.move("stepBack", granularity="instruction")
    client.request("setFunctionBreakpoints", breakpoints=names[1:2])
    assert client.move("continue")["hitBreakpointIds"] and client.place() == ("total", 17)
    lines = client.request("breakpointLocations", source={"path": str(file)}, line=5, endLine=15)["breakpoints"]
    assert [b["line"] for b in lines] == [6, 7, 13, 14, 15]


def test_errors_and_nan(client: Client, file: Path) -> None:
    launch(client, file, function="root", args={"x": [4.0, -1.0], "k": 5})
    client.request("setExceptionBreakpoints", filters=["nan", "errors"])
    client.request("configurationDone")
    stop = client.event("stopped")
    assert stop["reason"] == "exception" and "sqrt makes a NaN" in stop["text"] and client.place() == ("root", 23)
    stop = client.move("continue")
    assert stop["reason"] == "exception" and client.place() == ("root", 24)
    info = client.request("exceptionInfo", threadId=1)
    assert info["exceptionId"] == "IndexError" and "out of" in info["description"]
    client.move("stepBack")
    client.move("next")
    client.request("continue", threadId=1)
    assert client.event("exited") == {"exitCode": 1}
    assert "out of" in client.output()
    assert "no filter 'x'" in client.refused("setExceptionBreakpoints", filters=["x"])
    client.request("restart")
    assert client.event("stopped")["reason"] == "exception" and client.place() == ("root", 23)


def test_pause_and_terminate(client: Client, file: Path) -> None:
    launch(client, file, function="endless", args={"x": 0.0})
    client.request("configurationDone")
    assert "is running" in client.refused("stackTrace", threadId=1)
    assert client.request("threads")["threads"][0]["id"] == 1
    number = client.request("setBreakpoints", source={"path": str(file)}, breakpoints=[{"line": 30}])
    assert number["breakpoints"][0]["verified"]
    client.event("stopped")
    client.request("setBreakpoints", source={"path": str(file)}, breakpoints=[])
    client.request("continue", threadId=1)
    client.request("pause", threadId=1)
    assert client.event("stopped")["reason"] == "pause" and client.place()[0] == "endless"
    client.request("continue", threadId=1)
    client.request("terminate")
    client.event("terminated")
    client.request("disconnect")


def test_mistakes_are_responses(client: Client, file: Path) -> None:
    client.request("initialize")
    assert "nothing is launched" in client.refused("configurationDone")
    assert "no decorated function is being run" in client.refused("stackTrace", threadId=1)
    assert "not supported" in client.refused("teleport") and "attach" in client.refused("attach")
    assert 'needs "program"' in client.refused("launch")
    assert "has no decorated function 'totl'" in client.refused("launch", program=str(file), function="totl")
    assert "no file" in client.refused("launch", program=str(file) + "x")
    assert "stage" in client.refused("launch", program=str(file), function="total", stage="x")
    wrong = {"xs": [1.0], "scale": 1, "other": 2}
    wrong_type = client.refused("launch", program=str(file), function="total", args={"xs": 1.0, "scale.by": 1.0})
    assert wrong_type.startswith(f"{file}:") and "pair" in wrong_type
    assert "no parameter 'other'" in client.refused("launch", program=str(file), function="total", args=wrong)
    client.send([1, 2])
    client.send({"seq": 7, "type": "request", "command": "threads", "arguments": [1]})
    assert client.response(7)["message"] == "the arguments of threads are no object"
    client.send({"seq": 8, "type": "event"})
    assert client.response(8)["message"] == "a message that is not a request"
    client.send_bytes(b"Content-Length: 3\r\n\r\n{x}")
    assert "not JSON" in client.response(0)["message"]
    launch(client, file, stopOnEntry=True)
    assert "launched already" in client.refused("launch", program=str(file))
    client.request("configurationDone")
    client.event("stopped")
    assert "is a number" in client.refused("scopes", frameId="one")
    assert "with a path" in client.refused("setBreakpoints", source={})
    assert "is a number" in client.refused("setBreakpoints", source={"path": "x"}, breakpoints=[{}])
    client.send_bytes(b"Content-Type: text\r\n\r\n")
    assert "without Content-Length" in client.response(0)["message"]


def test_a_client_that_leaves_in_the_middle(file: Path) -> None:
    with connected() as client:
        launch(client, file, function="endless", args={"x": 0.0})
        client.request("configurationDone")
        client.start("pause")


def test_derivatives_show_lines_of_the_program(client: Client, file: Path) -> None:
    launch(client, file, function="square", args={"v": 3.0}, grad=True, stopOnExit=True)
    client.request("setFunctionBreakpoints", breakpoints=[{"name": "op multiply"}])
    client.request("configurationDone")
    client.event("stopped")
    assert client.place() == ("square_gradient", 6)
    client.request("setFunctionBreakpoints", breakpoints=[])
    assert client.move("continue")["description"] == "the call has returned"
    assert client.request("stackTrace", threadId=1)["stackFrames"] == []
    client.move("stepBack")
    assert client.place()[0] == "square_gradient"
    client.move("continue")
    client.request("continue", threadId=1)
    client.event("terminated")
    assert " returned Array(6." in client.output()


# ---- in processes of their own


class Process:
    """`relay debug --dap` in a process, over its standard streams."""

    stdin: Any
    stdout: Any
    stderr: Any

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "relay", "debug", "--dap", *arguments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self.client = Client(self.stdout, self.stdin)

    def end(self) -> tuple[int, str]:
        """The exit code and what standard error has."""
        said = self.stderr.read().decode()
        code = self.process.wait(timeout=120)
        self.client.close()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        return code, said


def test_a_script_over_standard_streams(file: Path) -> None:
    process = Process()
    client = process.client
    launch(client, file.with_name("script.py"), None, args=["one"])
    script = str(file.with_name("script.py"))
    found = client.request("setBreakpoints", source={"path": script}, breakpoints=[{"line": 9}])["breakpoints"]
    assert not found[0]["verified"] and "when a decorated function is called" in found[0]["message"]
    client.request("configurationDone")
    assert client.event("stopped")["reason"] == "breakpoint" and client.place() == ("halved", 9)
    assert client.event("breakpoint")["breakpoint"]["verified"]
    assert client.variables()["y"]["value"] == "1.5"
    assert client.move("continue")["reason"] == "breakpoint" and client.place()[0] == "marked"
    client.request("continue", threadId=1)
    assert client.event("exited") == {"exitCode": 0}
    said = client.output()
    assert "with ['one']\n" in said and "result 5.0\n" in said
    client.request("disconnect")
    assert process.end() == (0, "")


def test_a_script_is_ended(file: Path) -> None:
    """By Ctrl-C, by the client, and by a client that goes away, while Python runs in an endless loop."""
    process = Process()
    client = process.client
    launch(client, file.with_name("script.py"), None, args=["one", "two"])
    client.request("configurationDone")
    for how, code in (("signal", 130), ("terminate", 0), ("closed", None)):
        client.event("stopped")
        client.request("continue", threadId=1)
        while "result" not in client.event("output")["output"]:
            pass
        if how == "signal":
            process.process.send_signal(signal.SIGINT)
        elif how == "terminate":
            client.request("terminate")
        if code is not None:
            assert client.event("exited") == {"exitCode": code}
            client.event("terminated")
            client.request("restart")
    process.stdin.close()
    assert process.end() == (0, "")


def test_over_a_socket(file: Path) -> None:
    process = Process("--port", "0", f"{file}:total", "--args", str(file.parent / "a.npz"))
    port = int(process.stderr.readline().rsplit(b":", 1)[1])
    for _ in range(2):  # one client after another
        with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rwb") as stream:
            client = Client(stream, stream)
            client.request("initialize", linesStartAt1=False)
            client.request("launch", stopOnEntry=True)
            client.event("initialized")
            client.request("configurationDone")
            client.event("stopped")
            assert client.place() == ("total", 12)
            client.move("stepIn")
            client.request("disconnect")
            connection.shutdown(socket.SHUT_RDWR)
            client.close()
    process.process.send_signal(signal.SIGINT)
    assert process.end()[0] == 0


def test_wrong_options(file: Path, monkeypatch, capsys) -> None:
    assert main(["debug"]) == 2 and "FILE.py:FUNCTION" in capsys.readouterr().err
    assert main(["debug", f"{file}:total", "--port", "1"]) == 2 and "--dap" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["debug", "--dap", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot listen" in capsys.readouterr().err
