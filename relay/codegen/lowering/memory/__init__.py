"""The memory plan of a program: aliasing, ownership, pools, the arena and the workspace of functions."""
