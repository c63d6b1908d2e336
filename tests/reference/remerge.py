"""The plain Python reference of remerge inference: after demolition, parts are merged again without scaffold tokens."""

from __future__ import annotations

from mt_scaffold.analysis.reference import ReferenceBPE, Survives, always, base_symbols


class RemergeBPE(ReferenceBPE):
    """Segments words with all merges, demolishes, and then uses the merges that do not make a scaffold token.

    >>> RemergeBPE([("b", "c"), ("a", "b")], {"bc"}).segment("abcd")
    'ab@@ c@@ d'
    """

    def segment_word(self, word: str, survives: Survives = always) -> list[str]:
        """Return the surface forms of a word's subwords, without separators."""
        symbols = self.scaffolding(base_symbols(word, self.end_of_word))
        if self.scaffold.intersection(symbols):
            symbols = [piece for symbol in symbols for piece in self.demolish(symbol)]
            normal = [pair for pair in self.rank if pair[0] + pair[1] not in self.scaffold]
            symbols = ReferenceBPE(normal, end_of_word=self.end_of_word).scaffolding(symbols)
        return [*symbols[:-1], self._without_mark(symbols[-1])]
