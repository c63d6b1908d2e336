"""Trained systems → folders that translate raw text anywhere."""
