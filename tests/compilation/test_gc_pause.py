"""Compiling waits with the collection of garbage, and leaves the collector as it was."""

from __future__ import annotations

import gc
import threading

from relay.support.gc_pause import without_collection


def test_the_collector_runs_again_after_the_last_block() -> None:
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with without_collection():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with without_collection():
        thread.start()
        inside.wait()
        assert not gc.isenabled()
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with without_collection(), without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
