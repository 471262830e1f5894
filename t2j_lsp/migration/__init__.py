"""How far a code base is converted: state, kept verdicts, coverage and its page."""
