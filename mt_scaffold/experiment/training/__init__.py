"""Data folders → checkpoints; averaging and stripping checkpoints."""
