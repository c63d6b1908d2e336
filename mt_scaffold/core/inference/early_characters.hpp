// Characters of several bytes with which a word may as well begin.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "inference/merge_table.hpp"

namespace mt_scaffold {

// A merge across the edge of a character needs a pair that ends and begins with the bytes there. Where every such pair
// has a higher rank than the merges inside the character, these come first, whatever surrounds it: at each step, the
// pair of the lowest rank is merged. So the character is one symbol from the start.
class EarlyCharacters {
 public:
  // Symbols must be bytes, without an end-of-word marker.
  explicit EarlyCharacters(const MergeTable& table);

  // The symbols of a word: the token and the byte of each that is a byte, and kCharacter for others.
  struct Symbol {
    int32_t token;
    uint32_t byte;
  };
  static constexpr uint32_t kCharacter = 256;

  // Puts what a word begins with into `symbols`, at most one for each byte, and returns how many they are.
  size_t symbols_of(std::string_view word, Symbol* symbols) const;

 private:
  // Of two or three bytes, by the bits that UTF-8 leaves for them.
  struct Character {
    int32_t token = MergeTable::kUnknown;  // unless the merges inside make one token
    int32_t last_rank = 0;                 // the highest of these merges
  };

  void add(const MergeTable& table, std::string_view text);

  std::vector<Character> of_two_, of_three_;
  std::vector<int32_t> lowest_across_;  // by the bytes left and right: the lowest rank of a merge across them
  std::vector<int32_t> token_of_byte_;
};

}  // namespace mt_scaffold
