"""Several mistakes in one report: notes, unresolved names, descriptions of operands."""
