"""Texts of a file put otherwise, where gaps are left: the same program in forms that planners read."""
