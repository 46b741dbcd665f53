"""Simplification, folding, elimination of common and dead code, inlining."""
