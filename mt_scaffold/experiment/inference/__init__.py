"""Checkpoints → translations, samples, and exports for other engines."""
