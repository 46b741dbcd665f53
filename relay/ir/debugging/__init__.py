"""Debugging information of programs: names, places and breakpoints."""
