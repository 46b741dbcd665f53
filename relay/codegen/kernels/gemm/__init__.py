"""Sums of products: matrix products, convolutions, GEMV, Winograd."""
