"""Fixed bugs that are like what an editor shows: ``process`` finds them, ``service`` keeps what it found."""
