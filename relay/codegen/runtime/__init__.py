"""Compiled programs: loading them, calling them, exporting them."""
