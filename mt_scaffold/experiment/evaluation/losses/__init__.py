"""The loss of a model, split by the frequency of words and tokens."""
