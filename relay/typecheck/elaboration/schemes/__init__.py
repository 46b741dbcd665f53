"""Type schemes: the types of functions before any call decides them."""
