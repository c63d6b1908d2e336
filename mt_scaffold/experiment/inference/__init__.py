"""Checkpoints → translations and samples; models to carry away."""
