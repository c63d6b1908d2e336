"""How bytes are stored: compressed as ``.zst``, or in a store that fsspec reads."""
