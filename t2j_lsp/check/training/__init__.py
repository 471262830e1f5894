"""A file's own optimizer, schedule and loss, cut out of both programs and compared."""
