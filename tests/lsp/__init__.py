"""The language server: its parts, and a real server process spoken to by a client of our own."""
