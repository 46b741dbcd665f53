"""Multi-error diagnostics: collected errors, unresolved names, descriptions of operands."""
