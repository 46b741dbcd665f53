"""The IR validator: well-formedness of modules."""
