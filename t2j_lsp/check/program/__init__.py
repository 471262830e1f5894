"""The program under check: its objects, what a slice of it needs, the calls and names in it."""
