"""subword-nmt's module ``subword_nmt``: its command, and the names that it imports from the others."""

from __future__ import annotations

from mt_scaffold.subword_nmt.apply_bpe import BPE as BPE
from mt_scaffold.subword_nmt.apply_bpe import read_vocabulary as read_vocabulary
from mt_scaffold.subword_nmt.command import main as main
from mt_scaffold.subword_nmt.get_vocab import get_vocab as get_vocab
from mt_scaffold.subword_nmt.learn_bpe import learn_bpe as learn_bpe
from mt_scaffold.subword_nmt.learn_joint_bpe_and_vocab import learn_joint_bpe_and_vocab as learn_joint_bpe_and_vocab

if __name__ == "__main__":
    main()
