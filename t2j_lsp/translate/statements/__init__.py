"""What statements, functions and classes become."""
