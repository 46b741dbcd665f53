"""Assertions for tests of programs: all ways to run a function agree, and its gradients are right."""

from relay.api.gradient_check import check_gradient
from relay.testing.agreement import assert_agree, assert_modes_agree
from relay.testing.checking import Disagreement, check

__all__ = ["Disagreement", "assert_agree", "assert_modes_agree", "check", "check_gradient"]
