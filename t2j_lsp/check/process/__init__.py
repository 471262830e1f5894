"""The worker processes: started, contained, timed, kept warm, and ended."""
