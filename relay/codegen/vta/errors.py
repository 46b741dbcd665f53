"""Errors of a configuration, an instruction or a stream of them."""

from __future__ import annotations

from relay.errors import CompileError


class ConfigurationError(CompileError):
    """A configuration of the accelerator that does not exist or that its instructions cannot encode."""


class EncodingError(CompileError):
    """A value that does not fit its field, or bits that are not an instruction."""


class ProgramError(CompileError):
    """Buffers that overlap, are not aligned or do not fit DRAM, and arrays that do not fit their buffers."""
