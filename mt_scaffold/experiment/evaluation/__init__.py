"""Translations and models → scores and comparisons of systems."""
