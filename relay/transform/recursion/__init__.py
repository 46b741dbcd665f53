"""Transformations of recursive functions: accumulators, deferred sums, partial evaluation."""
