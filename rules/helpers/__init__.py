"""JAX functions and Flax NNX modules that converted code carries where JAX has no equivalent of a PyTorch call.

The translator reads these files as text and copies a definition, with the imports and the other helpers that it uses,
into the output. So every helper is a top-level definition that uses only what its file imports, and names are unique
over the folder.
"""
