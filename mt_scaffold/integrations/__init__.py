"""Codes inside other libraries, each of which is an extra of this package."""
