"""Measures speed, coverage and the truth of verdicts. Never part of the test run's pass or fail by time."""
