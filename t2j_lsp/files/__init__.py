"""Files and folders that t2j reads and writes: sources, notebooks, what it wrote before, and merging."""
