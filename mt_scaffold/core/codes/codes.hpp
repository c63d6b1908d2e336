// The codes file: merges in order of rank, with their scaffold marks; with PickyBPE, the splits between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codes/codes_header.hpp"

namespace mt_scaffold {

// Symbols as they are in memory: bytes are bytes here, whatever notation the file has.
struct Merge {
  std::string left, right;
  bool scaffold;  // the token is in no vocabulary: scaffold or, with PickyBPE, removed
};

// The removal of a token with PickyBPE: where it stands in a word, it becomes its pieces.
struct Split {
  size_t after;  // merges before it
  std::string token;
  std::vector<std::string> pieces;
};

struct Codes {
  CodesHeader header;
  std::vector<Merge> merges;
  std::vector<Split> splits = {};  // in order; of PickyBPE only
};

// Parses a codes file, at most `limit` merges of it, with the splits after each, unless `limit` is negative. Throws
// InputError with `name` and the line number where the file is malformed.
Codes parse_codes(std::string_view text, const std::string& name, int64_t limit);

// Parses the first line only.
CodesHeader parse_codes_header(std::string_view text, const std::string& name);

std::string format_codes(const Codes& codes);

// A token as Python and messages show it: as text, which is UTF-8, or bytes in GPT-2's notation.
std::string shown_token(std::string_view token, bool bytes);

}  // namespace mt_scaffold
