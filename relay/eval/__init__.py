"""The reference interpreter, which defines what programs mean. It needs NumPy, and nothing that compiles.

Read `interpreter.py` first: the machine, its stack, and one case for each node of the IR. Then, as far as you want to
know more:

    values.py       what variables hold: arrays, closures, references, data, stacks
    frames.py       a function that is being run, and its blocks
    steps.py        what is prepared of a block once, for all of its executions
    operation.py    operators applied to arrays
    sizes.py        the numbers that symbolic sizes mean in a call
    tape.py         `grad`, by a tape that shares no code with the compiler's transformation; pullbacks.py has the
                    gradients of operators for it
    reuse.py        arrays and stacks that nothing else sees are changed in place
    backtrace.py    where a program is, with its variables; variables.py has their names and short forms
    watching.py     the operands and results of operators, for who wants to see them
    named_arrays.py arguments and results as entries of `.npz` files

The meaning of programs is in the files down to tape.py; reuse.py saves time, and the others tell people what happened.
"""
