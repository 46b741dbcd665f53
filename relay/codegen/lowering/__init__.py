"""Lowering from the core to native functions: control flow, memory, aliasing, lists."""
