"""Only the package for ``--user-dir``, because fairseq puts this folder on ``sys.path``."""
