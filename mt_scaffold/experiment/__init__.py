"""Experiments: everything from raw parallel text to the report, around the segmentation in ``mt_scaffold`` itself."""
