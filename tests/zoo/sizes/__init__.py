"""Symbolic and data-dependent sizes, and named axes."""
