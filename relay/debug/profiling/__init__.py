"""Profiles of compiled programs: the time of each kernel and of each line, memory, and how long compiling took."""
