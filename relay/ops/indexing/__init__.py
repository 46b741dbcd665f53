"""Reading and writing at indices that are known at run time."""
