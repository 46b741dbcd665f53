"""Analyses that passes share; none changes a program."""
