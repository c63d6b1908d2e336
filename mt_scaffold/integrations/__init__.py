"""Codes inside other libraries. Each module needs its library, an extra of this package, and nothing imports it."""
