"""The model lane: fixed bugs that are run again, prompts, and the loop that asks a model and checks its answers."""
