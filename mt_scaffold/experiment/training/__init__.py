"""Data folders → checkpoints, and what is made of checkpoints."""
