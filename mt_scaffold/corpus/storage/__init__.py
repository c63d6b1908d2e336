"""How bytes are stored: compressed as ``.zst``, in a store that fsspec reads, or beside their final name in the making."""
