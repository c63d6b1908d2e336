"""Vocabularies of other programs, in and out: a module for each format."""
