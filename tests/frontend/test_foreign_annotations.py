"""Annotations of other libraries are accepted, and say nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pytest
from agreement import assert_modes_agree

from relay import FrontendError, relay


def test_annotations_of_arrays_functions_and_structures() -> None:
    @relay
    def f(
        x: npt.NDArray[np.float64],
        d: dict[str, Any],
        items: list[np.ndarray],
        g: Callable[[np.ndarray], np.ndarray],
        y: Optional[np.ndarray] = None,  # noqa: UP045
        z: np.ndarray | None = None,
    ) -> "np.ndarray":  # noqa: UP037
        total: np.ndarray = x * d["a"] + items[0]
        assert y is None and z is None
        return g(total)

    found = assert_modes_agree(f, np.ones(2), {"a": 2.0}, [np.ones(2)], np.sin, rtol=1e-12)
    np.testing.assert_allclose(found, np.sin([3.0, 3.0]))


def test_what_means_nothing_stays_an_error() -> None:
    with pytest.raises(FrontendError, match="is not a type that Relay has"):

        @relay
        def f(x: npt):
            return x
