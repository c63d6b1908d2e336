// The codes file: merges in order of rank, with their scaffold marks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mt_scaffold {

struct Merge {
  std::string left, right;
  bool scaffold;
};

// Whether a token is a single code point, possibly word-final: it has no children to demolish into.
// A merge can make one too, in a word that spells out "</w>".
bool is_base_symbol(std::string_view token);

// Parses a codes file, at most `limit` merges of it unless `limit` is negative. Throws InputError with `name` and the
// line number where the file is malformed.
std::vector<Merge> parse_codes(std::string_view text, const std::string& name, int64_t limit);

std::string format_codes(const std::vector<Merge>& merges);

}  // namespace mt_scaffold
