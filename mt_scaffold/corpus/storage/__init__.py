"""Storage of bytes: compressed as ``.zst``, or hidden until they are complete."""
