"""What an expression becomes."""
