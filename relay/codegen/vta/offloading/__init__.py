"""The accelerator as a target: which calls of a program are layers, and how the host's code runs their streams."""
