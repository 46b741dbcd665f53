"""The simulator of the accelerator.

- tokens: the order of a stream, and what happens before what; deadlocks, left-over tokens, full queues
- validity: what can be said of instructions by themselves
- state, plans, machine: the memories, the steps of GEMM and ALU in arrays, and what instructions do
- races: accesses that no token orders
- findings: the rules by name, and the error that carries what breaks them
- run: all of that for a program
- cycles, timeline: when instructions run, without running them; and pictures of it
"""
