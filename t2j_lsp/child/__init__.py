"""Child processes: a request is a frame, one is answered after the other, and a child ends with its parent."""
