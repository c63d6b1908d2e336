"""Analysis of vocabularies: statistics, comparisons, how one word is segmented, and the plain Python reference."""
