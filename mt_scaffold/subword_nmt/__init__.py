"""The modules, names and signatures of subword-nmt 0.3.8, on mt_scaffold: change the import, and a program runs on it.

After ``import mt_scaffold.as_subword_nmt``, even ``import subword_nmt`` means this package. It learns original BPE, and
applies codes of either kind. docs/subword-nmt.md lists what is the same, what is refused, and what is left out.
"""
