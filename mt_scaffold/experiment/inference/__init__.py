"""Checkpoints → translations, and exports for other engines."""
