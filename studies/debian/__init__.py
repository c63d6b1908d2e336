"""Parallel and monolingual text from the packages of a Debian mirror (README.md)."""
