// Multi-byte characters that merging can start from as one symbol.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "inference/merge_table.hpp"

namespace mt_scaffold {

// A merge across the edge of a character needs a pair with the bytes on either side of the edge. If every such pair has
// a higher rank than the merges inside the character, those come first whatever surrounds it, because each step merges
// the pair of the lowest rank. So the character can be one symbol from the start.
class EarlyCharacters {
 public:
  // Symbols must be bytes, without an end-of-word marker.
  explicit EarlyCharacters(const MergeTable& table);

  // Writes the tokens that merging a word can start from to `tokens`, at most one per byte, and returns their number.
  size_t tokens_of(std::string_view word, int32_t* tokens) const;

 private:
  // A character of two or three bytes, in tables indexed by its code point.
  struct Character {
    int32_t token = MergeTable::kUnknown;  // kUnknown unless the merges inside it make one token
    int32_t last_rank = 0;                 // the highest rank of these merges
  };

  void add(const MergeTable& table, std::string_view text);

  std::vector<Character> of_two_, of_three_;
  std::vector<int32_t> lowest_across_;  // by the bytes before and after an edge: the lowest rank of a merge across it
  std::vector<int32_t> token_of_byte_;
};

}  // namespace mt_scaffold
