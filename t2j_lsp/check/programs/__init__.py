"""Whole programs: source and conversion run side by side, and what comes out compared."""
