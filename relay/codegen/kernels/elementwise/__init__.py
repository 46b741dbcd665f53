"""Kernels without reductions, and transposed access."""
