"""Types as Python programs write them: annotations, type parameters, and constructors."""
