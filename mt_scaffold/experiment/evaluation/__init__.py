"""Translations and models → scores, and systems compared."""
