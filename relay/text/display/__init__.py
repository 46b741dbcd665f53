"""Programs and arrays as notebooks show them, and programs as drawings."""
