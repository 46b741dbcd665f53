"""Data-dependent and symbolic sizes: slices, masks, recursion at other sizes."""
