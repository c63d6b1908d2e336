"""Plain Python for what the native core does, where only the tests need it."""
