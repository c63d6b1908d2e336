"""The segmentation methods: what each learns from counted words, and how it segments."""
