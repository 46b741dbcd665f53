"""Sizes of programs: facts about dims, bounds, data-dependent dims, and where arguments show sizes."""
