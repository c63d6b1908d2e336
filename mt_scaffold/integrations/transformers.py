"""Codes as a tokenizer of Hugging Face's transformers: ``MTScaffoldTokenizer`` (needs the extra ``transformers``).

Importing this module makes the tokenizer known to ``AutoTokenizer``.
"""

from __future__ import annotations

import difflib
import inspect
import itertools
import json
import os
import re
import unicodedata
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mt_scaffold import removed
from mt_scaffold.corpus.files import PathLike, open_output, write_text
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS
from mt_scaffold.errors import UsageError, WrongTypeError
from mt_scaffold.integrations.encodings import Encoding, Encodings
from mt_scaffold.integrations.sides import ByteSide, ImportedSide, Side, side_of
from mt_scaffold.options import check_merges
from mt_scaffold.segment.draw import NO_DRAW, Draw
from mt_scaffold.segment.numbering import write_numbered

_NEEDS = "mt_scaffold.integrations.transformers needs transformers 5: pip install '.[transformers]'"
try:
    import numpy
    from transformers import AddedToken, AutoTokenizer, BatchEncoding, PretrainedConfig, PreTrainedTokenizer
    from transformers import __version__ as _version
    from transformers.tokenization_utils_base import TruncationStrategy
    from transformers.utils import PaddingStrategy

    from mt_scaffold.integrations.rows import Encoded, Padding, TextIds, lists, matrices
except ImportError as error:
    raise ImportError(f"{_NEEDS} ({error})") from error
if not _version.startswith("5."):
    # An older version would silently leave out </s>.
    raise ImportError(f"{_NEEDS} (this is {_version})")

_FILES = {
    "codes_file": "codes.txt",
    "vocab_file": "vocabulary.json",
    "target_codes_file": "target_codes.txt",
    "target_vocab_file": "target_vocabulary.json",
    "ids_file": "codes.txt.manifest.json",
}
# The module in a saved folder for AutoTokenizer with trust_remote_code.
_MODULE = "tokenization_mt_scaffold"
_MODULE_TEXT = '''"""Lets AutoTokenizer find the tokenizer of this folder."""

from mt_scaffold.integrations.transformers import MTScaffoldTokenizer

__all__ = ["MTScaffoldTokenizer"]
'''


_CLEANING = "clean_up_tokenization_spaces"
# transformers' name of a pattern → whether a text begins with bos_token, and whether it ends with eos_token.
_SURROUNDING = {"none": (False, False), "eos": (False, True), "bos": (True, False), "bos_eos": (True, True)}


# The arguments of transformers' tokenizers; besides those of files, and of special tokens with names of their own.
_KEYWORDS = {
    *("added_tokens_decoder", "additional_special_tokens", "auto_map", "backend", "chat_control_tokens"),
    *("chat_template", _CLEANING, f"{_CLEANING}_for_bpe_even_though_it_will_corrupt_output", "extra_special_tokens"),
    *(
        "do_lower_case",
        "files_loaded",
        "is_local",
        "local_files_only",
        "max_len",
        "model_input_names",
        "model_max_length",
    ),
    *("model_specific_special_tokens", "name_or_path", "padding_side", "processor_class", "response_schema"),
    *("response_template", "special_tokens_pattern", "split_special_tokens", "token_type_ids_include_special_tokens"),
    *("token_type_ids_pattern", "tokenizer_class", "truncation_side", "trust_remote_code", "use_fast", "verbose"),
}

# Arguments of other tokenizers, and what to do instead.
_OF_OTHERS = {
    "add_prefix_space": "text is encoded as it is; put the space into the text, or give words (is_split_into_words)",
    "add_bos_token": "give prepend_bos",
    "add_eos_token": "give append_eos",
}

# The tokenizer with which this thread decodes or handles target text, its side, and whether it handles target text.
_HELD: ContextVar[tuple[PreTrainedTokenizer, Side, bool] | None] = ContextVar("_HELD", default=None)


class Wanted(NamedTuple):
    """The requests of a call to a tokenizer, from the options that transformers passes on.

    words: texts are lists of words. truncated: the most ids of a row. windows: overflowing ids follow in further rows,
    each of which shares ``stride`` ids with the row before. other: something that only transformers' own code returns.
    """

    special: bool
    words: bool
    strategy: TruncationStrategy
    truncated: int | None
    windows: bool
    stride: int
    max_length: int | None
    padding: PaddingStrategy
    multiple: int
    side: str | None
    tensors: Any
    attention: bool | None
    special_mask: bool
    types: bool | None
    spans: bool
    length: bool
    verbose: bool
    other: bool

    @classmethod
    def of(cls, options: dict[str, Any]) -> Wanted:
        truncation = options.get("truncation_strategy", TruncationStrategy.DO_NOT_TRUNCATE)
        padding = options.get("padding_strategy", PaddingStrategy.DO_NOT_PAD)
        length = options.get("max_length")
        spans, overflowing = (bool(options.get(f"return_{name}")) for name in ("offsets_mapping", "overflowing_tokens"))
        return cls(
            special=options.get("add_special_tokens", True),
            words=bool(options.get("is_split_into_words")),
            strategy=truncation,
            truncated=(length or None) if truncation != TruncationStrategy.DO_NOT_TRUNCATE else None,
            windows=overflowing,
            stride=options.get("stride") or 0,
            max_length=length,
            padding=padding,
            multiple=options.get("pad_to_multiple_of") or 1,
            side=options.get("padding_side"),
            tensors=options.get("return_tensors"),
            attention=options.get("return_attention_mask"),
            special_mask=bool(options.get("return_special_tokens_mask")),
            types=options.get("return_token_type_ids"),
            spans=spans,
            length=bool(options.get("return_length")),
            verbose=options.get("verbose", True),
            other=bool(options.get("sanitize_control_tokens")) or (overflowing and not spans),
        )


class Part(NamedTuple):
    """One sequence of a row: the texts that it consists of, and its remaining ids, a range of the ids of all texts."""

    first: int
    end: int
    ids: range

    def kept(self, begin: int, end: int, left: bool) -> Part:
        """Return the part with only these ids, counted from the end if the left is cut off."""
        size = len(self.ids)
        return self._replace(ids=self.ids[max(0, size - end) : size - begin] if left else self.ids[begin:end])


@dataclass
class _Search:
    """How added tokens are found in text; shallow copies of a tokenizer share it, as they share its added tokens.

    in_core: by the core, as special tokens of the codes. pattern: finds them otherwise; None if there are none.
    """

    in_core: bool
    pattern: re.Pattern[str] | None = None


class MTScaffoldTokenizer(PreTrainedTokenizer):
    """Codes, Scaffold-BPE or BPE, as a tokenizer of transformers; the native core does the segmenting.

    Text consists of words between spaces, tokenised like the codes' training text; codes with a pre-tokeniser take any
    text. Tokens are the subwords of ``apply-bpe`` for codes of code points. Codes with a pre-tokeniser have the ids of
    ``BPE.encode`` and then those of the special tokens; their tokens are in GPT-2's notation. Others are refused.

    codes_file: codes of source and target, a path. vocab_file: with codes of code points, a fairseq dictionary
        (``dict.LANGUAGE.txt``), or a ``.json`` list of tokens by id; None makes the vocabulary from the codes, after
        ``<s>``, ``<pad>``, ``</s>`` and ``<unk>``, fairseq's first ids. Codes of bytes take none.
    target_codes_file, target_vocab_file: those of the target side if they differ.
    ids_file: the ids of imported codes (``mt-scaffold import``); None for the manifest next to the codes, if there is
        one. Ids and special tokens are then those of the original program; special tokens that it finds in text are
        also found here, and others once they are passed, as ``eos_token`` for instance. ``return_offsets_mapping``
        works with codes that take text as it is.
    prepend_bos, append_eos: whether ``bos_token`` begins and ``eos_token`` ends a text; by default, only
        ``eos_token`` with codes of code points, and neither with codes of bytes.
    merges, separator, glossaries: as for ``BPE``. split_unknown: split subwords that are not in the
        vocabulary further, as ``apply-bpe --vocabulary`` does.
    src_lang, tgt_lang: kept for the reader of the configuration. saved_files: which of the files save_pretrained wrote.
        Other arguments, including special tokens, are those of PreTrainedTokenizer. A special token that is in no
        vocabulary gets the next id; if the sides have separate vocabularies, it must have the same id in both.

    ``text_target`` is segmented and numbered by the target side. ``decode`` reads ids of the target side, and of the
    source side with ``use_source_tokenizer=True``.

    Raises MTScaffoldError if a file is malformed, UsageError for options that the codes do not support, for a setting
    that an earlier version saved and this one does not have, and for sides that cannot be combined.
    """

    vocab_files_names = _FILES
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(
        self,
        codes_file: PathLike,
        vocab_file: PathLike | None = None,
        target_codes_file: PathLike | None = None,
        target_vocab_file: PathLike | None = None,
        *,
        ids_file: PathLike | None = None,
        prepend_bos: bool = False,
        append_eos: bool | None = None,
        merges: int = -1,
        separator: str = SEPARATOR,
        glossaries: Sequence[str] | None = None,
        split_unknown: bool = False,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        saved_files: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        try:
            kwargs = removed.without_removed_keys(kwargs, {}, "MTScaffoldTokenizer")
        except KeyError as error:
            (name,) = error.args
            said = removed.instead_of_key("MTScaffoldTokenizer", name)
            raise UsageError(f"MTScaffoldTokenizer: {name}: {said}") from None
        _check_keywords(kwargs)
        given = {
            "codes_file": codes_file,
            "vocab_file": vocab_file,
            "target_codes_file": target_codes_file,
            "target_vocab_file": target_vocab_file,
            "ids_file": ids_file,
        }
        if missing := [_FILES[name] for name in saved_files if given[name] is None]:
            raise UsageError(
                f"MTScaffoldTokenizer: {', '.join(missing)} is missing, but was saved with it; copy the whole folder"
            )
        options: dict[str, Any] = {
            "merges": check_merges(merges),
            "separator": separator,
            "glossaries": None if glossaries is None else list(glossaries),
            "split_unknown": split_unknown,
        }
        if codes_file is None:
            raise UsageError(
                "MTScaffoldTokenizer: no codes; pass codes_file, or load a folder that save_pretrained wrote"
            )
        self._source: Side = side_of(codes_file, vocab_file, SPECIAL_SYMBOLS, ids_file=ids_file, **options)
        self._target: Side = self._source
        if target_codes_file is not None or target_vocab_file is not None:
            files = target_codes_file or codes_file, target_vocab_file or vocab_file
            self._target = side_of(*files, SPECIAL_SYMBOLS, **options)
        self._check_sides()
        if self._bytes:
            self._target = self._source  # the same codes
        self._draws = NO_DRAW, NO_DRAW
        self._search = _Search(in_core=self._bytes)
        self.src_lang, self.tgt_lang = src_lang, tgt_lang
        if not self._bytes:
            for name, token in zip(("bos", "pad", "eos", "unk"), SPECIAL_SYMBOLS, strict=True):
                kwargs.setdefault(f"{name}_token", token)
        append_eos = not self._bytes if append_eos is None else append_eos
        kwargs.setdefault("clean_up_tokenization_spaces", False)
        wanted = bool(prepend_bos), bool(append_eos)
        kwargs["special_tokens_pattern"] = next(name for name, each in _SURROUNDING.items() if each == wanted)
        kwargs["auto_map"] = {"AutoTokenizer": [f"{_MODULE}.{type(self).__name__}", None]}
        kwargs["saved_files"] = [*self._contents()]
        super().__init__(
            prepend_bos=prepend_bos, append_eos=append_eos, src_lang=src_lang, tgt_lang=tgt_lang, **options, **kwargs
        )
        if self._imported is not None:
            found, shown = self._imported.numbering.in_text, self._imported.numbering.shown
            self._add_tokens([AddedToken(token, normalized=False) for token in found if token in shown])
            self._add_tokens([AddedToken(token, normalized=False) for token in found if token not in shown], True)
        self._check_special_tokens(prepend_bos, append_eos)

    @property
    def _imported(self) -> ImportedSide | None:
        return self._source if isinstance(self._source, ImportedSide) else None

    @property
    def _current(self) -> Side:
        """The side with which this thread encodes or decodes."""
        held = _HELD.get()
        return self._source if held is None or held[0] is not self else held[1]

    @property
    def _in_target(self) -> bool:
        held = _HELD.get()
        return held is not None and held[0] is self and held[2]

    def _check_sides(self) -> None:
        source, target = self._source.codes, self._target.codes
        if source.header.bytes != target.header.bytes:
            raise UsageError(f"{source.name} and {target.name}: the symbols of only one are bytes; give the same kind")
        if self._bytes and self._separate:
            raise UsageError(
                f"{source.name} and {target.name}: codes of bytes define their own ids and must be the same on both "
                "sides; make a tokenizer for each"
            )

    def _check_special_tokens(self, bos: bool, eos: bool) -> None:
        for option, name, wanted in (("prepend_bos", "bos_token", bos), ("append_eos", "eos_token", eos)):
            if wanted and getattr(self, name) is None:
                raise UsageError(f"{option} needs {name}; pass one")

    @property
    def _has_spaces(self) -> bool:
        """Whether tokens contain the spaces between words, so that words given one by one need theirs."""
        spaces = None if self._imported is None else self._imported.numbering.spaces
        return not self._source.codes.header.end_of_word and (spaces is None or spaces.prefix == "none")

    @property
    def _bytes(self) -> bool:
        return self._source.codes.header.bytes

    @property
    def _separate(self) -> bool:
        """Whether the sides differ in their tokens."""
        return self._source.tokens != self._target.tokens

    def set_dropout(
        self, dropout: float, target_dropout: float | None = None, *, seed: int | None = None, epoch: int = 0
    ) -> None:
        """Segment with BPE-dropout from now on, as for training; for evaluation, 0 turns it off.

        dropout: the probability in [0, 1] that a merge is skipped at a step; target_dropout: that of ``text_target``
            (None: the same).
        seed, epoch: with a seed, the segmentation of a text depends only on the seed, the epoch and the text, not on
            the batch, the order or the worker; without one, it is random.

        ``save_pretrained`` does not save it. Raises UsageError for values out of range.
        """
        on_target = dropout if target_dropout is None else target_dropout
        source, target = (Draw("dropout", amount, seed, epoch) for amount in (dropout, on_target))
        self._draws = source, target

    @property
    def vocab_size(self) -> int:
        """The number of ids without those of added tokens: of the source, or within ``text_target``, of the target."""
        return len(self._current.tokens)

    @property
    def target_vocab_size(self) -> int:
        """The number of ids of the target side, without those of added tokens."""
        return len(self._target.tokens)

    def get_vocab(self) -> dict[str, int]:
        """Return the id of each token, added ones included, of the side of ``vocab_size``."""
        return {**self._current.ids, **self._added_tokens_encoder}

    def _add_tokens(self, new_tokens: Sequence[Any], special_tokens: bool = False) -> int:
        for token in map(str, new_tokens or ()) if self._separate else ():
            if token and not self._source.ids.get(token, -1) == self._target.ids.get(token, -2):
                raise UsageError(
                    f"'{token}' needs one id in both vocabularies, those for {self._source.codes.name} and "
                    f"{self._target.codes.name}: put it in the same place in both"
                )
        imported = self._imported
        for token in (new_tokens or ()) if imported is not None else ():
            if isinstance(token, AddedToken) and (token.lstrip or token.rstrip or token.single_word):
                raise UsageError(
                    f"'{token}': imported codes find special tokens as they are; omit lstrip, rstrip and single_word"
                )
        return int(super()._add_tokens(new_tokens, special_tokens))

    def _update_total_vocab_size(self) -> None:
        """Prepare the search for added tokens: transformers calls this whenever they have changed."""
        super()._update_total_vocab_size()
        tokens = self._added_tokens_encoder
        # The longest first, as a pattern takes the first alternative that matches.
        listed = sorted(tokens, key=len, reverse=True)
        self._search.pattern = re.compile("|".join(map(re.escape, listed))) if listed else None
        plain = not any(
            token.lstrip or token.rstrip or token.single_word for token in self._added_tokens_decoder.values()
        )
        side = self._source
        self._search.in_core = isinstance(side, ByteSide) and side.find(tokens if plain else {}) and plain

    def _places(self, text: str) -> list[tuple[int, str]]:
        """Return added tokens in a text with their places, from the left; the longest if several match at one."""
        found = self._search.pattern.finditer(text) if self._search.pattern is not None else ()
        return [(match.start(), match[0]) for match in found if self._stands(text, *match.span())]

    def _stands(self, text: str, begin: int, end: int) -> bool:
        """Return whether an added token counts here: not if it is a ``single_word`` within a word, as in tokenizers."""
        token = self._added_tokens_decoder[self._added_tokens_encoder[text[begin:end]]]
        return not token.single_word or not any(map(_in_word, text[max(0, begin - 1) : begin] + text[end : end + 1]))

    def tokenize(self, text: str, **kwargs: Any) -> list[str]:
        """Return the tokens of a text; added tokens in it, including special ones, stay whole."""
        split = bool(kwargs.get("split_special_tokens", self.split_special_tokens))
        places = [] if split or self._search.in_core else self._places(text)
        tokens = list[str]()
        for (_, part), (_, token) in zip(self._between(text, places), [*places, (len(text), "")], strict=True):
            tokens += self._tokenize(part, split_special=split) if part or not places else []
            tokens += [token] if token else []
        return tokens

    def _tokenize(self, text: str, *, split_special: bool = False, **kwargs: Any) -> list[str]:
        return self._current.subwords(text, self._draws[self._in_target], split_special)

    def _convert_token_to_id(self, token: str) -> int | None:
        number = self._current.ids.get(token)
        if number is None and self.unk_token is not None:
            return self._current.ids.get(str(self.unk_token))
        return number

    def _convert_id_to_token(self, index: int) -> str:
        if not 0 <= index < len(self._current.tokens):
            raise UsageError(
                f"id {index} is out of range: this side has ids 0 to {len(self._current.tokens) - 1}; a model's "
                "vocabulary must not be larger than its tokenizer's"
            )
        return self._current.tokens[index]

    def _encode_plus(self, text: Any, text_pair: Any = None, **options: Any) -> Any:
        """Encode texts, pairs and words in one call of the core; leave other input and results to transformers."""
        wanted = Wanted.of(options)
        as_given = text, text_pair
        if wanted.words and self._has_spaces:
            text, text_pair = _spaced(text), _spaced(text_pair)
        # A shortcut: making lists of lists of many texts would take longer than encoding them.
        plain = None if wanted.other or wanted.words or wanted.windows else _plain_texts(text, text_pair)
        given = [] if plain else None if wanted.other else _sequences(text, text_pair, wanted.words)
        if given is None:
            if wanted.spans:
                raise UsageError("return_offsets_mapping: works for texts, pairs and words only, not for ids or chats")
            options.pop("return_offsets_mapping", None)
            return super()._encode_plus(text, text_pair, **options)
        if wanted.spans and self._current.no_spans is not None:
            name = self._current.codes.name
            raise UsageError(f"{name}: return_offsets_mapping is not supported for {self._current.no_spans}")
        split = bool(options.get("split_special_tokens", self.split_special_tokens))
        if plain:
            return self._texts(self._ids_of(plain, split), wanted, isinstance(text, str))
        listed = [word for row in given for sequence in row for word in sequence]
        encoded = self._ids_of(listed, split)
        if wanted.words and self._has_spaces:
            rows = _sequences(*as_given, True) or []
            words = (word for row in rows for sequence in row for word in sequence)
            added = [len(one) - len(other) for one, other in zip(listed, words, strict=True)]
            located = encoded.spans
            encoded = encoded._replace(spans=lambda number: numpy.maximum(located(number) - added[number], 0))
        single = isinstance(text, str) or (wanted.words and not (text and isinstance(text[0], list | tuple)))
        return self._rows(given, encoded, wanted, single)

    def _around(self, count: int, special: bool) -> list[list[int]]:
        """Return the special tokens before, between and after the sequences of a row."""
        marks = [[-1], [-2]][:count]
        laid_out = self.build_inputs_with_special_tokens(*marks) if special else list(itertools.chain(*marks))
        cuts = [-1, *(laid_out.index(mark) for (mark,) in marks), len(laid_out)]
        return [laid_out[begin + 1 : end] for begin, end in itertools.pairwise(cuts)]

    def _texts(self, encoded: Encoded, wanted: Wanted, single: bool) -> BatchEncoding:
        """Return a row for each text, without the detour over Python's lists if arrays were requested."""
        around = self._around(1, wanted.special)
        before, after = around
        begins, ends = encoded.offsets[:-1], encoded.offsets[1:]
        kept, offsets = slice(None), encoded.offsets
        if wanted.truncated is not None and wanted.strategy != TruncationStrategy.ONLY_SECOND:
            sizes = numpy.minimum(ends - begins, max(0, wanted.truncated - len(before) - len(after)))
            begins, ends = (ends - sizes, ends) if self.truncation_side == "left" else (begins, begins + sizes)
            offsets = numpy.concatenate([[0], numpy.cumsum(sizes)])
            kept = numpy.arange(offsets[-1]) + numpy.repeat(begins - offsets[:-1], sizes)
        spans = None
        if wanted.spans:
            spans = numpy.concatenate([encoded.spans(number) for number in range(len(begins))])[kept]
        texts = TextIds(encoded.ids[kept], offsets, spans)
        sizes = numpy.diff(offsets) + len(before) + len(after)
        padding = self._padding(int(sizes.max()), wanted)
        widths = sizes if padding is None else numpy.maximum(sizes, padding.width)
        alike = bool((widths == widths[0]).all())
        found: dict[str, Any]
        if padding is not None or (wanted.tensors is not None and alike):
            found = matrices(texts, before, after, padding, self._attention(wanted), wanted.special_mask)
            if wanted.tensors is None or not alike:
                found = {name: array.tolist() for name, array in found.items()}
                if "offset_mapping" in found:
                    found["offset_mapping"] = [[tuple(span) for span in row] for row in found["offset_mapping"]]
            if padding is not None and not alike:
                # Texts longer than max_length must not lengthen the others.
                cut = [slice(-width, None) if padding.left else slice(width) for width in widths.tolist()]
                found = {name: [row[each] for row, each in zip(rows, cut, strict=True)] for name, rows in found.items()}
        else:
            found = dict(lists(texts, before, after, self._attention(wanted), wanted.special_mask))
        if self._typed(wanted):
            found["token_type_ids"] = [[0] * len(row) for row in found["input_ids"]]
        side = self._current

        def encoding(number: int) -> Encoding:
            part = Part(number, number + 1, range(begins[number], ends[number]))
            return self._encoding(side, encoded, around, [part], wanted, int(widths[number]), padding)

        return self._returned(found, Encodings(len(begins), encoding), 1, wanted, single)

    def _rows(self, given: list[list[list[str]]], encoded: Encoded, wanted: Wanted, single: bool) -> BatchEncoding:
        """Return rows of pairs and words, or with windows, several rows for a text that is too long."""
        around = [self._around(count, wanted.special) for count in (1, 2)]
        rows, samples, text = list[list[Part]](), list[int](), 0
        for sample, sequences in enumerate(given):
            parts = []
            for sequence in sequences:
                first, text = text, text + len(sequence)
                parts.append(Part(first, text, range(encoded.offsets[first], encoded.offsets[text])))
            rows += self._cut(parts, sum(map(len, around[len(parts) - 1])), wanted)
            samples += [sample] * (len(rows) - len(samples))
        sizes = [sum(len(part.ids) for part in row) + sum(map(len, around[len(row) - 1])) for row in rows]
        padding = self._padding(max(sizes), wanted)
        width = 0 if padding is None else padding.width
        encodings = [
            self._encoding(self._current, encoded, around[len(row) - 1], row, wanted, max(size, width), padding)
            for row, size in zip(rows, sizes, strict=True)
        ]
        found: dict[str, Any] = {"input_ids": [each.ids for each in encodings]}
        if self._typed(wanted):
            found["token_type_ids"] = [each.type_ids for each in encodings]
        if self._attention(wanted):
            found["attention_mask"] = [each.attention_mask for each in encodings]
        if wanted.special_mask:
            found["special_tokens_mask"] = [each.special_tokens_mask for each in encodings]
        if wanted.spans:
            found["offset_mapping"] = [each.offsets for each in encodings]
        if wanted.windows:
            found["overflow_to_sample_mapping"] = samples
        return self._returned(found, encodings, len(rows[0]), wanted, single and not wanted.windows)

    def _cut(self, parts: list[Part], special: int, wanted: Wanted) -> list[list[Part]]:
        """Return the rows of a text or a pair: just one without truncation, or without windows."""
        surplus = sum(len(part.ids) for part in parts) + special - (wanted.truncated or 0)
        left = self.truncation_side == "left"
        if wanted.truncated is None or surplus <= 0:
            return [parts]
        if not wanted.windows:
            cut = self.truncate_sequences(
                *(list(part.ids) for part in parts),
                num_tokens_to_remove=surplus,
                truncation_strategy=wanted.strategy,
            )
            return [[part.kept(0, len(each or []), left) for part, each in zip(parts, cut, strict=False)]]
        if len(parts) == 2 and wanted.strategy == TruncationStrategy.LONGEST_FIRST:
            raise UsageError("return_overflowing_tokens: pairs need truncation='only_first' or 'only_second'")
        number = int(wanted.strategy == TruncationStrategy.ONLY_SECOND)
        if number >= len(parts):
            return [parts]
        length = len(parts[number].ids)
        size = length - surplus
        if size <= wanted.stride:
            raise UsageError(
                f"max_length leaves {max(size, 0)} tokens for a text; give one that leaves more than the stride, "
                f"{wanted.stride}"
            )
        begins = range(0, length - wanted.stride, size - wanted.stride)
        windows = [parts[number].kept(begin, begin + size, left) for begin in begins]
        return [[*parts[:number], window, *parts[number + 1 :]] for window in windows]

    def _padding(self, longest: int, wanted: Wanted) -> Padding | None:
        """Return the padding of rows, given the length of the longest; None for none."""
        self._eventual_warn_about_too_long_sequence(range(longest), wanted.max_length, wanted.verbose)
        if wanted.padding == PaddingStrategy.DO_NOT_PAD:
            return None
        width = longest if wanted.padding == PaddingStrategy.LONGEST else wanted.max_length or 0
        left = (wanted.side or self.padding_side) == "left"
        return Padding(self.pad_token_id, -(-width // wanted.multiple) * wanted.multiple, left)

    def _attention(self, wanted: Wanted) -> bool:
        return "attention_mask" in self.model_input_names if wanted.attention is None else wanted.attention

    def _typed(self, wanted: Wanted) -> bool:
        return "token_type_ids" in self.model_input_names if wanted.types is None else wanted.types

    def _encoding(
        self,
        side: Side,
        encoded: Encoded,
        around: list[list[int]],
        parts: list[Part],
        wanted: Wanted,
        width: int,
        padding: Padding | None,
    ) -> Encoding:
        """Return the encoding of a row, padded to ``width``."""
        added = self._added_tokens_decoder
        ids, sequences = list(around[0]), list[int | None]([None] * len(around[0]))
        for number, part in enumerate(parts):
            ids += encoded.ids[part.ids.start : part.ids.stop].tolist() + around[number + 1]
            sequences += [number] * len(part.ids) + [None] * len(around[number + 1])
        first, *second = (list(part.ids) for part in parts)
        if wanted.special:
            types = self.create_token_type_ids_from_sequences(first, *second)
        else:
            types = [int(number == 1 and self.token_type_ids_pattern == "bert_style") for number in sequences]
        missing = width - len(ids)
        left = missing if padding is not None and padding.left else 0

        def padded(values: list[Any], fill: Any) -> list[Any]:
            return [fill] * left + values + [fill] * (missing - left)

        ids, sequences = padded(ids, 0 if padding is None else padding.id), padded(sequences, None)

        def locate() -> tuple[list[tuple[int, int]], list[int | None]]:
            offsets, words = [(0, 0)] * width, list[int | None]([None] * width)
            for number, part in enumerate(parts):
                begin = sequences.index(number) if part.ids else 0
                inside = slice(begin, begin + len(part.ids))
                offsets[inside], words[inside] = _located(encoded, part, wanted.words)
            return offsets, words

        return Encoding(
            ids,
            [str(added[number]) if number in added else side.tokens[number] for number in ids],
            len(parts),
            sequences,
            padded(types, self.pad_token_type_id),
            [int(number is None) for number in sequences],
            padded([1] * (width - missing), 0),
            locate,
        )

    def _returned(
        self, found: dict[str, Any], encodings: Sequence[Encoding], count: int, wanted: Wanted, single: bool
    ) -> BatchEncoding:
        """Return the results of all rows in transformers' form; count: the number of sequences in the first."""
        if wanted.length:
            found["length"] = [len(row) for row in found["input_ids"]]
        if single and wanted.tensors is None:
            found = {name: value[0] for name, value in found.items()}
        known = None if self._current.no_spans else encodings
        return BatchEncoding(found, known, tensor_type=wanted.tensors, n_sequences=count)

    def _ids_of(self, texts: list[str], split_special: bool) -> Encoded:
        """Return the ids of texts; added tokens in them, including special ones, stay whole."""
        side, draw = self._current, self._draws[self._in_target]
        if isinstance(side, ByteSide) and self._search.in_core:
            return side.encode(texts, draw, -1, split_special=split_special)
        unknown = -1 if self.unk_token is None else side.ids.get(str(self.unk_token), -1)
        places = (
            []
            if split_special
            else [(number, *each) for number, text in enumerate(texts) for each in self._places(text)]
        )
        if not places:
            return side.encode(texts, draw, unknown)
        # A text with n added tokens has n + 1 parts, empty ones among them.
        numbers = [number for number, _, _ in places]
        begins, parts = list[int](), list[str]()
        for number, text in enumerate(texts):
            here = places[bisect_left(numbers, number) : bisect_right(numbers, number)]
            for begin, part in self._between(text, [(place, token) for _, place, token in here]):
                begins.append(begin)
                parts.append(part)
        encoded = side.encode(parts, draw, unknown)
        # The number of added tokens before each text, and of ids of parts before each added token.
        every = numpy.arange(len(texts) + 1)
        earlier = numpy.searchsorted(numbers, every)
        before = encoded.offsets[numpy.arange(len(places)) + numpy.array(numbers) + 1]
        own = [self._added_tokens_encoder[token] for _, _, token in places]
        ids = numpy.insert(encoded.ids.astype(numpy.int64), before, own)

        def parts_of(number: int) -> range:
            return range(number + earlier[number], number + earlier[number + 1] + 1)

        def spans(number: int) -> Any:
            here = parts_of(number)
            found = [encoded.spans(part) + begins[part] for part in here]
            # The span of an added token includes the spaces that it strips.
            tokens = [[(begins[part] + len(parts[part]), begins[part + 1])] for part in here[:-1]]
            return numpy.concatenate([*itertools.chain(*zip(found, tokens, strict=False)), found[-1]])

        def words(number: int) -> Any:
            found, first = list[Any](), 0
            for part in parts_of(number):
                within = encoded.words(part)
                found += [within + first, [first + int(within.max(initial=-1)) + 1]]
                first = found[-1][0] + 1
            return numpy.concatenate(found[:-1])

        return Encoded(ids, encoded.offsets[every + earlier] + earlier, spans, words)

    def _between(self, text: str, tokens: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Yield the parts of a text around added tokens, with their places, without the spaces that these strip."""
        begin, strips = 0, False
        for place, token in [*tokens, (len(text), "")]:
            added = self._added_tokens_decoder[self._added_tokens_encoder[token]] if token else None
            part = text[begin:place].lstrip() if strips else text[begin:place]
            begin = place - len(part)
            yield begin, part.rstrip() if added is not None and added.lstrip else part
            begin, strips = place + len(token), added is not None and added.rstrip

    def _switch_to_input_mode(self) -> None:
        _HELD.set(None)

    def _switch_to_target_mode(self) -> None:
        _HELD.set((self, self._target, True))

    def _decode(self, *args: Any, use_source_tokenizer: bool = False, **kwargs: Any) -> str:
        before = _HELD.set((self, self._source if use_source_tokenizer else self._target, self._in_target))
        try:
            return str(super()._decode(*args, **kwargs))
        finally:
            _HELD.reset(before)

    def add_special_tokens(self, *args: Any, **kwargs: Any) -> int:
        """Add special tokens as transformers does; those of imported codes stay special even if others are replaced."""
        added = int(super().add_special_tokens(*args, **kwargs))
        if self._imported is not None:
            numbering = self._imported.numbering
            special = [token for token in numbering.in_text if token not in numbering.shown]
            self._extra_special_tokens += [
                self._added_tokens_decoder[numbering.special[token]]
                for token in special
                if token not in self.all_special_tokens
            ]
        return added

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Join tokens into text: words for codes of code points, the exact text for codes of bytes.

        Added tokens, including special ones, are separate words with codes of code points, and inserted as they are
        with codes of bytes.
        """
        if self._imported is not None:
            return self._imported.text(tokens)
        parts: list[tuple[bool, list[str]]] = []
        for token in tokens:
            plain = token not in self._added_tokens_encoder and (not self._bytes or token in self._current.ids)
            if not parts or not plain or not parts[-1][0]:
                parts.append((plain, []))
            parts[-1][1].append(token)
        between = "" if self._bytes else " "
        return between.join(self._current.text(part) if plain else part[0] for plain, part in parts)

    def _contents(self) -> dict[str, Callable[[], bytes | None]]:
        """Return argument → the content to save for it; None for the ids, which are written with the codes."""
        found: dict[str, Callable[[], bytes | None]] = {"codes_file": lambda: self._source.codes.text}
        if self._target is not self._source:
            found["target_codes_file"] = lambda: self._target.codes.text
        if not self._bytes:
            found["vocab_file"] = lambda: _as_json(self._source.tokens)
            if self._separate:
                found["target_vocab_file"] = lambda: _as_json(self._target.tokens)
        if self._imported is not None:
            found["ids_file"] = lambda: None
        return found

    def save_vocabulary(self, save_directory: PathLike, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write codes, vocabularies and the module with which AutoTokenizer finds this class; return the paths."""
        folder = Path(save_directory)
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        contents = {_FILES[name]: made for name, made in self._contents().items()}
        for name in _FILES.values():
            if name not in contents:
                (folder / (prefix + name)).unlink(missing_ok=True)  # left by a tokenizer saved here before
        for name, made in contents.items():
            if (content := made()) is not None:
                with open_output(folder / (prefix + name)) as stream:
                    stream.write(content)
        imported = self._imported
        if imported is not None:
            write_numbered(imported.codes, imported.numbering, folder / (prefix + _FILES["codes_file"]))
        write_text(folder / f"{_MODULE}.py", _MODULE_TEXT)
        return (*(os.fspath(folder / (prefix + name)) for name in contents), os.fspath(folder / f"{_MODULE}.py"))

    @classmethod
    def register_for_auto_class(cls, auto_class: str = "AutoTokenizer") -> None:
        """Do nothing: every saved folder already names this class, and a copy of this module would not run there."""


def _plain_texts(text: Any, pair: Any) -> list[str] | None:
    """Return the given text or batch as a list of texts, or None if it is anything else."""
    texts = [text] if isinstance(text, str) else text
    if pair is not None or not isinstance(texts, list | tuple) or not texts:
        return None
    return list(texts) if all(isinstance(each, str) for each in texts) else None


def _check_keywords(given: dict[str, Any]) -> None:
    """Raise WrongTypeError for an argument that nothing would read; False is what those of other classes mean here."""
    own = inspect.signature(MTScaffoldTokenizer.__init__).parameters
    tokens = PreTrainedTokenizer.SPECIAL_TOKENS_ATTRIBUTES
    for name, value in given.items():
        if name == "do_lower_case" and value:
            warnings.warn("MTScaffoldTokenizer: do_lower_case has no effect; lower the text first", stacklevel=3)
        if name in _OF_OTHERS and value:
            raise WrongTypeError(f"MTScaffoldTokenizer: {name}: {_OF_OTHERS[name]}")
        known = name in _KEYWORDS or name in _OF_OTHERS or name in tokens or hasattr(MTScaffoldTokenizer, name)
        of_token = name.endswith("_token") and isinstance(value, str | AddedToken | dict | None)
        if not known and not of_token and not name.startswith("_") and not name.endswith("_file"):
            near = difflib.get_close_matches(name, [*own, *_KEYWORDS, *tokens], n=1)
            hint = f"; did you mean {near[0]}?" if near else "; leave it out"
            raise WrongTypeError(f"MTScaffoldTokenizer: there is no argument {name}{hint}")


def _spaced(given: Any) -> Any:
    """Return a list of words with a space before each but the first, unless it has one; lists of lists likewise."""
    if not isinstance(given, list | tuple):
        return given
    if not all(isinstance(word, str) for word in given):
        return [_spaced(each) for each in given]
    return [word if not number or word[:1] == " " else f" {word}" for number, word in enumerate(given)]


def _sequences(text: Any, pair: Any, words: bool) -> list[list[list[str]]] | None:
    """Return the one or two sequences of each row, each as a list: of its text, or of its words.

    None for input that only transformers' own code accepts, such as ids, or refuses.
    """
    batch = isinstance(text, list | tuple) and (not words or (text and isinstance(text[0], list | tuple)))
    if batch and pair is not None and not (isinstance(pair, list | tuple) and len(pair) == len(text)):
        return None
    found = []
    for first, second in zip(text, pair or itertools.repeat(None), strict=False) if batch else [(text, pair)]:
        row = [first] if second is None else [first, second]
        if batch and second is None and isinstance(first, tuple if words else list | tuple) and len(first) == 2:
            row = list(first)
        if words and not all(isinstance(each, list | tuple) for each in row):
            return None
        found.append([list(each) if words else [each] for each in row])
    texts = itertools.chain.from_iterable(itertools.chain.from_iterable(found))
    return found if found and all(isinstance(each, str) for each in texts) else None


def _located(encoded: Encoded, part: Part, words: bool) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the character span and the word of each id of a part; words: each text is a word."""
    texts = range(part.first, part.end)
    spans = [tuple(span) for number in texts for span in encoded.spans(number).tolist()]
    sizes = numpy.diff(encoded.offsets[part.first : part.end + 1])
    found = numpy.repeat(numpy.arange(len(texts)), sizes) if words else encoded.words(part.first)
    begin = int(encoded.offsets[part.first])
    inside = slice(part.ids.start - begin, part.ids.stop - begin)
    return spans[inside], found.tolist()[inside]


def _in_word(character: str) -> bool:
    """Return whether a character can be part of a word in tokenizers: a letter, mark, digit or connector."""
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or character in "\u200c\u200d"


def _as_json(tokens: list[str]) -> bytes:
    return (json.dumps(tokens, ensure_ascii=False, indent=0) + "\n").encode("utf-8")


class MTScaffoldConfig(PretrainedConfig):
    """The configuration under which AutoTokenizer registers the tokenizer; no model has it."""

    model_type = "mt_scaffold"


AutoTokenizer.register(MTScaffoldConfig, slow_tokenizer_class=MTScaffoldTokenizer, exist_ok=True)
