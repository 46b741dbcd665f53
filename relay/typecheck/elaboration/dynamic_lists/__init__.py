"""Dynamic-length lists: construction, items, methods, positions, reductions."""
