"""The model lane: fixed bugs that are run again, prompts, and (as it grows) the loop that asks a model and checks its answer."""
