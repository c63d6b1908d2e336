"""The corpus: files, lines, documents and words, and their counts."""
