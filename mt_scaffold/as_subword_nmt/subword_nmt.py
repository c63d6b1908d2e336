"""What ``import subword_nmt`` finds in a process that ``mt_scaffold.as_subword_nmt`` has put this folder before."""

import mt_scaffold.as_subword_nmt  # noqa: F401  # replaces this module
