"""How a worker is shut in: namespaces, Landlock, seccomp, folders, limits."""
