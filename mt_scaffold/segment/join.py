"""Subwords → words: joining segmented text."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING, Annotated

from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.files import (
    Output,
    check_plain,
    input_or_standard,
    output_or_standard,
    refuse_overwriting,
    writing_to,
)
from mt_scaffold.corpus.input_checks import looks_segmented
from mt_scaffold.corpus.inputs import TextFile, source_name, whole_lines
from mt_scaffold.corpus.text import SEPARATOR, joining
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.options_from_signature import SUBWORD_END, Option
from mt_scaffold.segment.apply import join_line

if TYPE_CHECKING:
    from mt_scaffold.segment.numbering import Spaces

# What is examined, a space in GPT-2's notation, and the share of the words, or parts of one, that must begin with it:
# with codes that have a pre-tokeniser, more do; of Maltese words, few begin with this letter.
_LOOKED_AT = 1 << 16
_SPACE, _SPACED = "\u0120".encode(), 0.1


def join_text(
    infile: Annotated[TextFile | None, Option("PATH", "-i", name="input", convert=input_or_standard)],
    outfile: Annotated[Output | None, Option("PATH", "-o", name="output", convert=output_or_standard)],
    separator: Annotated[str, SUBWORD_END] = SEPARATOR,
    codes: Annotated[CodesSource | None, Option("PATH", "-c")] = None,
) -> None:
    """Join the subwords of a text line by line: the command ``join``, the inverse of ``apply_bpe``.

    infile: input text, .gz, .zst too (default: standard input)
    outfile: output text (default: standard output)
    codes: codes file; needed only for codes with a pre-tokeniser (--pretokenise)

    Texts may also be open files, the output one for bytes or text. A line may break off within a word. The subwords of
    codes with a pre-tokeniser are in GPT-2's notation.

    Spaces between words, CRs and everything else stay as they are, bytes that are not UTF-8 included. A word that is
    the separator itself is lost, as it is with subword-nmt, and a warning on stderr counts such words.

    Raises MTScaffoldError if the input cannot be read, and, with file and line, for a character outside GPT-2's
    notation; UsageError for an empty separator, and an output that is the input.
    """
    if not separator:
        raise UsageError("an empty separator marks nothing, so that subwords cannot be joined; give the separator")
    read = None if codes is None else Codes.of(codes)
    header, spaces = (None, None) if read is None else (read.header, _spaces_of(read))
    infile = input_or_standard(None) if infile is None else infile
    outfile = output_or_standard(None) if outfile is None else outfile
    refuse_overwriting([outfile], [infile, codes])
    check_plain(infile)
    name, number = source_name(infile), 0
    alone, first, lines = 0, 0, 0
    end = separator.encode("utf-8")
    mark = re.compile(joining(separator).pattern.encode("utf-8"))
    # A CR is outside words only at the ends of a line.
    alone_in = re.compile(rb"(?m)(?:(?<= )|^[ \r]*)" + re.escape(end) + rb"(?= |\r*(?:\n|\Z))")
    may_be_alone = [b" " + end, b"\n" + end, b"\r" + end]
    marks_words = header is None or header.end_of_word
    with writing_to(outfile, durable=False) as output:
        for index, block in enumerate(whole_lines(infile)):
            if not index and (reason := _made_otherwise(block[:_LOOKED_AT], marks_words)):
                print(f"warning: {name}: {reason}", file=sys.stderr)
            if marks_words:
                output.write(mark.sub(b"", block))
                if block.startswith(end) or any(each in block for each in may_be_alone):
                    found = [match.start() for match in alone_in.finditer(block)]
                    if found and not alone:
                        first = lines + block.count(b"\n", 0, found[0]) + 1
                    alone += len(found)
                lines += block.count(b"\n")
                continue
            assert header is not None
            for line in io.BytesIO(block):
                number += 1
                try:
                    output.write(join_line(line, header, spaces=spaces))
                except MTScaffoldError as error:
                    raise MTScaffoldError(f"{name}: line {number}: {error}") from None
    if alone:
        print(
            f"warning: {name}: line {first}: '{separator}' alone, {alone:,} times (this is the first), a word that is "
            "lost; give apply-bpe and join a --separator that ends no word",
            file=sys.stderr,
        )


def _made_otherwise(text: bytes, marks_words: bool) -> str | None:
    """Return why a text seems to be segmented with the other kind of codes than those with which it is joined.

    marks_words: whether these mark the ends of words; those with a pre-tokeniser write a space as GPT-2's U+0120.
    """
    if not marks_words:
        subword = looks_segmented(text)
        return subword and f"looks segmented with codes without a pre-tokeniser (such as '{subword}'); omit --codes"
    words = text.split()
    spaced = [word for word in words if word.startswith(_SPACE)]
    if len(spaced) <= _SPACED * len(words):
        return None
    subword = spaced[0].decode("utf-8", "replace")
    return f"looks segmented with codes with a pre-tokeniser (such as '{subword}'); give them with --codes"


def _spaces_of(codes: Codes) -> Spaces | None:
    if codes.manifest is None:
        return None
    from mt_scaffold.segment.words import spaces_of  # takes longer than joining a short text

    return spaces_of(codes)
