// The codes file: the merges in order, with the scaffold marks. Read and written here and nowhere else.
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

// Whether a token is a code point, or one at the end of a word: it has no children to be demolished into.
// A merge makes such a token where a word spells out "</w>".
bool is_base_symbol(std::string_view token);

// Reads a codes file of which `name` is said in errors; with `limit` >= 0 only its first `limit` merges.
// Throws InputError with the line number where something is malformed.
std::vector<Merge> parse_codes(std::string_view text, const std::string& name, int64_t limit);

std::string format_codes(const std::vector<Merge>& merges);

}  // namespace mt_scaffold
