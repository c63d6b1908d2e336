"""How bytes are stored: compressed as ``.zst``, in a store that fsspec reads, or hidden until they are complete."""
