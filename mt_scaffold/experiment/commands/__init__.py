"""The subcommands of ``mt-scaffold`` that run experiments: each parses its options and calls one function."""
