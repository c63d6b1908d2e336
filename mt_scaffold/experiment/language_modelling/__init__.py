"""Language models: documents as ids, bits per byte, samples, and models compared.

Vocabularies of bytes differ in how many tokens a text has, so no figure per token compares two of them. All models are
scored in bits per byte: the sum of -log2 p over all tokens, the end of each document included, divided by the bytes of
the raw documents.
"""
