"""The target of ``import subword_nmt``: a package whose modules are those of ``mt_scaffold.subword_nmt``."""

import mt_scaffold.subword_nmt

__path__ = mt_scaffold.subword_nmt.__path__
