"""The call path: arguments, program selection, the dispatch fast path, results."""
