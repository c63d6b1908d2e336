"""The tasks of lm-evaluation-harness: the answers of a model, and comparisons of models on them."""
