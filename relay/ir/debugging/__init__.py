"""Debugging information of programs: names and places."""
