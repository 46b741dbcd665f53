"""Analyses of Python syntax: names, liveness, unused results, unsupported constructs."""
