"""The calling contract of compiled code: the first places of the context table, and the statuses of a call.

COPIED counts the rows of stacks that were copied, since the context was made.
"""

STATUS, DEPTH, STACK_LIMIT, WORKSPACE, RESULT, HEAD, CALLS, BUDGET, COPIED, FIRST_FREE = range(10)

# Statuses from the last of these are positions in the program's list of failures.
RUNNING_OUT_OF_MEMORY, TOO_DEEP, EXTERNAL, GUARD_FAILURE, INTERRUPTED, FIRST_FAILURE = range(1, 7)
