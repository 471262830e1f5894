"""Measures the model lane on a folder of programs: what each kind of prompt brings, and what metrics say of it."""
