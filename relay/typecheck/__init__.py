"""The type checker: inference, shapes, and elaboration to the typed IR."""
