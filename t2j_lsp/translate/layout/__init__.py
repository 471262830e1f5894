"""Which values of a file are held channels-last."""
