"""The output as a whole: imports and copied helpers, long lines, what is left of torch, and the last reading of it."""
