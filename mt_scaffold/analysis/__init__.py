"""What a vocabulary does: statistics, comparisons, the way of one word, and the plain Python reference."""
