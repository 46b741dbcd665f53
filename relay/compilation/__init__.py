"""Compiling one signature: the stages of a program, the disk cache, records of tuning, the self-check."""
