"""The subcommands of ``mt-scaffold``: each module parses its options and calls one function of the package."""
