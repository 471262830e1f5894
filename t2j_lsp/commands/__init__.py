"""The subcommands of ``t2j``: each module adds its parser and runs it."""
