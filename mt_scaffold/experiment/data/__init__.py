"""Configuration → raw text → words."""
