"""Write the classes of all code points in the installed ``regex`` package, for the core's pre-tokenisers.

``python tools/unicode_classes.py`` rewrites mt_scaffold/core/text/unicode_classes.hpp. Run it when the version of
regex in constraints.txt changes, because its Unicode version may as well.
"""

import itertools
import re
from importlib.metadata import metadata
from pathlib import Path

import regex

HEADER = Path(__file__).resolve().parent.parent / "mt_scaffold" / "core" / "text" / "unicode_classes.hpp"
# In the order of their numbers in the table, from 1; 0 is every other character.
CLASSES = {
    "kSpace": r"[^\S\r\n]",
    "kLineEnd": r"[\r\n]",
    "kNumber": r"\p{N}",
    "kMark": r"\p{M}",
    "kUpper": r"[\p{Lu}\p{Lt}]",
    "kLower": r"\p{Ll}",
    "kCaseless": r"[\p{Lm}\p{Lo}]",
}
BLOCK = 128

TEMPLATE = """\
// The classes of characters that pre-tokenisers distinguish, by Unicode {unicode} as in regex {version}.
// Written by tools/unicode_classes.py; do not edit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mt_scaffold {{

enum CharacterClass : uint8_t {{
  kOther = 0,
{names}
}};

namespace unicode {{

// clang-format off

// One digit per code point: its class. All blocks of {block} code points that differ.
inline constexpr char kBlocks[] =
{blocks};

// The blocks by code point, as (how many in a row, which); further code points are kOther.
inline constexpr uint8_t kRuns[][2] = {{
{runs}
}};

// clang-format on

inline constexpr size_t kBlockSize = {block};
inline constexpr uint32_t kEnd = {end:#x};  // code points from here on are kOther

inline constexpr auto kIndex = [] {{
  std::array<uint8_t, kEnd / kBlockSize> index{{}};
  size_t at = 0;
  for (const auto& [count, block] : kRuns)
    for (size_t i = 0; i < count; ++i) index[at++] = block;
  return index;
}}();

}}  // namespace unicode

inline constexpr CharacterClass class_of(uint32_t code_point) {{
  if (code_point >= unicode::kEnd) return kOther;
  const size_t block = unicode::kIndex[code_point / unicode::kBlockSize];
  return static_cast<CharacterClass>(unicode::kBlocks[block * unicode::kBlockSize + code_point % unicode::kBlockSize] -
                                     '0');
}}

}}  // namespace mt_scaffold
"""


def unicode_version() -> str:
    """Return the Unicode version of the installed regex package, which is stated only in its README."""
    found = re.search(r"supports Unicode (\d+\.\d+)", str(metadata("regex").json["description"]))
    if found is None:
        raise SystemExit("regex: its description no longer states a Unicode version; look it up and adapt this script")
    return found.group(1)


def classes() -> str:
    """Return the class of every code point, as one digit each."""
    text = "".join(map(chr, range(0x110000)))
    found = bytearray(b"0" * len(text))
    for number, pattern in enumerate(CLASSES.values(), 1):
        for match in regex.finditer(f"{pattern}+", text):
            if found.count(b"0", *match.span()) != len(match.group()):
                raise SystemExit(f"{pattern}: also matches characters of another class")
            found[match.start() : match.end()] = str(number).encode() * len(match.group())
    return found.decode()


def table() -> str:
    """Return the text of unicode_classes.hpp."""
    digits = classes()
    end = -(-len(digits.rstrip("0")) // BLOCK) * BLOCK
    blocks: dict[str, int] = {}
    index = [blocks.setdefault(digits[at : at + BLOCK], len(blocks)) for at in range(0, end, BLOCK)]
    if len(blocks) > 256:
        raise SystemExit("more than 256 distinct blocks: their numbers no longer fit a byte")
    runs = []
    for block, same in itertools.groupby(index):
        count = len(list(same))
        runs += [(min(255, count - at), block) for at in range(0, count, 255)]
    rows = [runs[at : at + 12] for at in range(0, len(runs), 12)]
    return TEMPLATE.format(
        unicode=unicode_version(),
        version=regex.__version__,
        names="\n".join(
            f"  // {pattern}\n  {name} = {number}," for number, (name, pattern) in enumerate(CLASSES.items(), 1)
        ),
        block=BLOCK,
        blocks="\n".join(f'    "{block}"' for block in blocks),
        runs="\n".join("    " + " ".join(f"{{{count}, {block}}}," for count, block in row) for row in rows),
        end=end,
    )


if __name__ == "__main__":
    HEADER.write_text(table(), encoding="utf-8")
