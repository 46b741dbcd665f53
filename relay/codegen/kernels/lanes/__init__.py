"""Kernels of loops whose rounds run in the lanes of vector registers: see `relay.transform.analysis.lanes`."""
