"""The tasks of lm-evaluation-harness: the answers of a model as a result, and several models compared on them."""
