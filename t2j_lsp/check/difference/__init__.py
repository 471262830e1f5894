"""Where two sides part, and why."""
