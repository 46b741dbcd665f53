"""Scalar replacement of aggregates: records, tuples, parameters, sums."""
