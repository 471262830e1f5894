"""Helpers cut to what a file uses of them: what its calls leave open stays, what they never ask for goes."""
