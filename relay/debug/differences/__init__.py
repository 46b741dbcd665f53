"""Differences between what a program means and what its compiled code gives."""

from relay.debug.differences.difference import Difference, diff
from relay.debug.differences.introduction import Cause

__all__ = ["Cause", "Difference", "diff"]
