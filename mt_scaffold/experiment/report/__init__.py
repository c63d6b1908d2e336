"""Scores → statistics, figures and pages."""
