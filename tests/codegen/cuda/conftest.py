"""What tests of kernels for GPUs share."""

from __future__ import annotations

import pytest

from relay.codegen.cuda.persistent import costs


@pytest.fixture
def separate_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """No persistent kernels: tensors of tests are so small that all would be in one."""
    monkeypatch.setattr(costs, "LAUNCH", 0.0)
    monkeypatch.setattr(costs, "DECISION", 0.0)
