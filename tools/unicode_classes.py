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
# By their letters in the table, in the order of their numbers from 1; 0 is every other character, with the letter O.
CLASSES = {
    "S": ("kSpace", r"[^\S\r\n]"),
    "E": ("kLineEnd", r"[\r\n]"),
    "N": ("kNumber", r"\p{N}"),
    "M": ("kMark", r"\p{M}"),
    "U": ("kUpper", r"[\p{Lu}\p{Lt}]"),
    "L": ("kLower", r"\p{Ll}"),
    "C": ("kCaseless", r"[\p{Lm}\p{Lo}]"),
}

TEMPLATE = """\
// The classes of characters that pre-tokenisers distinguish, by Unicode {unicode} as in regex {version}.
// Written by tools/unicode_classes.py; do not edit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mt_scaffold {{

enum CharacterClass : uint8_t {{
  kOther = 0,
{names}
}};

namespace unicode {{

// A letter for each class, in the order of their numbers.
inline constexpr std::string_view kLetters = "O{letters}";

// The classes of the code points in order, each with how many in a row have it unless that is 1; the rest are kOther.
inline constexpr std::string_view kRuns =
{runs};

inline constexpr size_t kBlockSize = 128;

// The class of each code point in a block, and the block by code point. The first blocks have one class each. With more
// blocks than these, whose numbers would not fit a byte, this does not compile.
struct Table {{
  std::array<std::array<CharacterClass, kBlockSize>, 255> blocks{{}};
  std::array<uint8_t, 0x110000 / kBlockSize> index{{}};
}};

inline constexpr auto kTable = [] {{
  Table table;
  uint8_t used = 0;
  for (; used < kLetters.size(); ++used) table.blocks[used].fill(static_cast<CharacterClass>(used));
  for (size_t i = 0, at = 0; i < kRuns.size();) {{
    const auto run_class = static_cast<CharacterClass>(kLetters.find(kRuns[i++]));
    size_t count = 0;
    for (; i < kRuns.size() && kRuns[i] <= '9'; ++i) count = 10 * count + static_cast<size_t>(kRuns[i] - '0');
    for (const size_t end = at + std::max<size_t>(count, 1); at < end;) {{
      const size_t offset = at % kBlockSize, inside = std::min(end - at, kBlockSize - offset);
      uint8_t& block = table.index[at / kBlockSize];
      at += inside;
      if (inside == kBlockSize) {{
        block = run_class;
        continue;
      }}
      if (offset == 0) block = used++;
      std::fill_n(table.blocks[block].begin() + offset, inside, run_class);
    }}
  }}
  return table;
}}();

}}  // namespace unicode

inline constexpr CharacterClass class_of(uint32_t code_point) {{
  const uint8_t block = unicode::kTable.index[code_point / unicode::kBlockSize];
  return unicode::kTable.blocks[block][code_point % unicode::kBlockSize];
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
    """Return the class of every code point, as one letter each."""
    text = "".join(map(chr, range(0x110000)))
    found = bytearray(b"O" * len(text))
    for letter, (_, pattern) in CLASSES.items():
        for match in regex.finditer(f"{pattern}+", text):
            if found.count(b"O", *match.span()) != len(match.group()):
                raise SystemExit(f"{pattern}: also matches characters of another class")
            found[match.start() : match.end()] = letter.encode() * len(match.group())
    return found.decode()


def table() -> str:
    """Return the text of unicode_classes.hpp."""
    counts = ((letter, len(list(same))) for letter, same in itertools.groupby(classes().rstrip("O")))
    runs = "".join(letter + str(count) * (count > 1) for letter, count in counts)
    return TEMPLATE.format(
        unicode=unicode_version(),
        version=regex.__version__,
        names="\n".join(
            f"  // {pattern}\n  {name} = {number}," for number, (name, pattern) in enumerate(CLASSES.values(), 1)
        ),
        letters="".join(CLASSES),
        runs="\n".join(f'    "{row}"' for row in re.findall(r".{1,114}(?![0-9])", runs)),
    )


if __name__ == "__main__":
    HEADER.write_text(table(), encoding="utf-8")
