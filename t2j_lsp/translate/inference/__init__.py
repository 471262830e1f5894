"""What every expression of a file is, found by one forward pass over its statements."""
