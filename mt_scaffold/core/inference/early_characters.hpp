// Multi-byte characters that merging can start from as one symbol.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "inference/merge_table.hpp"

namespace mt_scaffold {

// A character can be one symbol from the start if the merges inside it have lower ranks than every merge of its first
// or last bytes with what is beside it, and than every merge of the whole character: each step merges the pair of the
// lowest rank, so the merges inside come first whatever surrounds it.
class EarlyCharacters {
 public:
  // Symbols must be bytes, without an end-of-word marker.
  explicit EarlyCharacters(const MergeTable& table);

  // Writes the tokens that merging a word can start from to `tokens`, at most one per byte, and returns their number.
  size_t tokens_of(std::string_view word, int32_t* tokens) const;

 private:
  // A character of two or three bytes, in tables indexed by its code point.
  struct Character {
    int32_t token = MergeTable::kUnknown;
    // The highest rank of the merges inside it; kNoRank if they do not make one token, or a merge of it comes earlier.
    int32_t last_rank = MergeTable::kNoRank;
  };

  void add(const MergeTable& table, std::string_view text, int32_t first_use);

  std::vector<Character> of_two_, of_three_;
  // By the bytes before and after an edge: the lowest rank of a merge across it of a character's last, or first, bytes.
  std::vector<int32_t> lowest_of_last_, lowest_of_first_;
  std::vector<int32_t> token_of_byte_;
};

}  // namespace mt_scaffold
