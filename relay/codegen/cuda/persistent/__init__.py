"""Persistent kernels: loops, and runs of small kernels, as one kernel of one block of threads."""
