"""Experiments, from raw text to the report; the segmentation itself is in ``mt_scaffold``."""
