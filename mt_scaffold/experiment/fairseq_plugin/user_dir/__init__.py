"""Holds nothing but the package for ``--user-dir``: fairseq puts this folder on ``sys.path``."""
