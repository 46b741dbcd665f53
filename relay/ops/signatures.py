"""The signatures of operators, for type checkers and editors alone: `signatures.pyi` has them. Programs have the
operators themselves."""
