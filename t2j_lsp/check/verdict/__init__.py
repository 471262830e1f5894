"""From what both sides observed to a verdict, stage by stage."""
