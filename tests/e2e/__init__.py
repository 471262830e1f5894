"""A real server process and real editors, from opening a file to the quick fix of a planted mistake."""
