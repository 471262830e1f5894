"""The last reading of what was written: its names, what is assigned before it is read, how its calls bind."""
