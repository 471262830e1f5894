"""Unit tests of a source, written for it and run on both programs."""
