"""Where the loss of a model is: by the frequency of words and tokens."""
