"""The output as a whole: imports and copied helpers, long lines, what is left of torch, what became of each place."""
