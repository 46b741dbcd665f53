"""From the core to native functions: control flow, memory, aliasing, lists."""
