"""Plain Python references of the native core that only the tests need."""
