"""Checks in the background: ``process`` runs them beside the server, ``service`` decides which and when."""
