"""Scaffold-BPE for machine translation: learn and apply codes, run and compare experiments."""

__version__ = "0.1.0"
