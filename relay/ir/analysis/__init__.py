"""Questions about modules: liveness, work, equality, difference."""
