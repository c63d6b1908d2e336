"""Storage of bytes: compressed as ``.zst``, in a store that fsspec reads, or hidden until they are complete."""
