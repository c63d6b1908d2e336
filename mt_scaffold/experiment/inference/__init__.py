"""Checkpoints → translations and samples; exports for another engine."""
