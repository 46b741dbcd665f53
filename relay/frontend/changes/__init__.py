"""Changes of objects, as Python makes them: the names under which they are seen, and what callers see of them."""
