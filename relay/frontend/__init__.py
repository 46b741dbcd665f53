"""The front end: from Python source to the surface IR."""
