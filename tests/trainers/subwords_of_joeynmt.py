"""Print the subwords that JoeyNMT trains on: the file of subword_nmt that it imported, then its training text.

python -m mt_scaffold.as_subword_nmt subwords_of_joeynmt.py joeynmt.yaml {plain,dropout}
"""

import random
import sys
from pathlib import Path

from joeynmt.config import load_config, parse_global_args
from joeynmt.data import load_data
from subword_nmt import apply_bpe


def main() -> None:
    """Print each training sentence of the source, then each of the target."""
    config, mode = sys.argv[1:]
    data = load_data(parse_global_args(load_config(Path(config)), mode="train").data, ["train"])[2]
    print(apply_bpe.__file__)
    random.seed(1)
    for language in (data.src_lang, data.trg_lang):
        for index in range(len(data)):
            print(" ".join(data.get_item(index, language, is_train=mode == "dropout")))


main()
