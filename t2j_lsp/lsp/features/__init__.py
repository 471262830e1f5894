"""The features, one module each: ``register(server)`` adds what the module answers."""
