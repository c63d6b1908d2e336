// The codes file: merges in order of rank, with their scaffold marks; with PickyBPE, the splits between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codes/codes_header.hpp"

namespace mt_scaffold {

// Symbols in memory: bytes are bytes here, whatever notation the file uses.
struct Merge {
  std::string left, right;
  bool scaffold;  // the token is not in the vocabulary: scaffold or, with PickyBPE, removed
};

// The removal of a token with PickyBPE: each occurrence in a word becomes the pieces.
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

// Parses a codes file, or its first `limit` merges with the splits after them unless `limit` is negative. Throws
// InputError with `name` and the line number if the file is malformed.
Codes parse_codes(std::string_view text, const std::string& name, int64_t limit);

// Parses the first line only.
CodesHeader parse_codes_header(std::string_view text, const std::string& name);

std::string format_codes(const Codes& codes);

// A token as Python and messages show it: text unchanged, bytes in GPT-2's notation.
std::string shown_token(std::string_view token, bool bytes);

}  // namespace mt_scaffold
