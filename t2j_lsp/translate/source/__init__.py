"""The text that is translated, its names and spans, the findings about it, and the texts of helpers."""
