"""Shared by all steps: locks, results, checked values, fairseq's programs."""
