"""What compiled code and its callers agree on: the first places of the context table, and the statuses of a call."""

STATUS, DEPTH, STACK_LIMIT, WORKSPACE, RESULT, HEAD, CALLS, BUDGET, FIRST_FREE = range(9)

# Statuses from the last of these are positions in the program's list of failures.
RUNNING_OUT_OF_MEMORY, TOO_DEEP, EXTERNAL, MISFIT, INTERRUPTED, FIRST_FAILURE = range(1, 7)
