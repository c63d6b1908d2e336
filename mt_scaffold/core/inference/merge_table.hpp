// The numbered tokens of a codes file and the merges between them, which inference starts from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codes/codes.hpp"
#include "memory/interner.hpp"
#include "memory/pair_table.hpp"
#include "text/alphabet.hpp"

namespace mt_scaffold {

struct MergeTable {
  // A symbol that is in no merge. Bytes without an end-of-word marker all have tokens, so that none needs a detour.
  static constexpr int32_t kUnknown = -1;
  static constexpr int32_t kNoRank = PairTable::kNone;

  explicit MergeTable(const Codes& codes);

  // Replaces `token` and `end` by the base symbols of a word, each with the byte at which it ends.
  void base_symbols(std::string_view word, std::vector<int32_t>& token, std::vector<uint32_t>& end) const;

  // The strings of the normal merged tokens, in order of the first merge that makes each.
  std::vector<std::string> normal_tokens() const;

  struct Pair {
    int32_t left, right;
  };

  Alphabet alphabet;
  Interner texts;
  PairTable ranks;                                 // by pair: the first line with it
  std::vector<Pair> pair_of_rank;                  // by line of the codes file
  std::vector<int32_t> merged_of_rank;             // by line of the codes file
  std::vector<bool> scaffold;                      // by token: whether it is not in the vocabulary
  std::vector<int32_t> internal_base, final_base;  // by symbol
};

}  // namespace mt_scaffold
