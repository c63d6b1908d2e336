"""The subcommands of ``mt-scaffold`` that segment text: each parses its options and calls one function."""
