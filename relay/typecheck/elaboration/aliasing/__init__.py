"""Aliases: what is one object in Python and several values here must not be told apart by a change.

Programs are made of values: `y = x` gives y the value of x, and `y[0] = 5` gives y another one. In Python both names
are one object, whose change both see. A program in which that makes a difference is refused, at the line that would
read the old value.

    objects.py   Python's objects, which of them hold which, and what has changed in them
    kinds.py     which values are objects in Python that can change, by the types of the elaboration
    places.py    what is known of the variables
    walk.py      a function's body as Python would run it, on these objects: paths join, and loops have a few rounds
    effects.py   one case for each kind of expression
    containers.py, views.py, intrinsics.py    lists and tuples, views of arrays, and what the front end writes
    calls.py     calls, and what the functions of a program change in their arguments: their summaries.py
    check.py     the mistakes
"""
