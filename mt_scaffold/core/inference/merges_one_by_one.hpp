// Merging words of ordinary length without dropout, one pair at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "inference/early_characters.hpp"
#include "inference/inference.hpp"
#include "inference/merge_table.hpp"

namespace mt_scaffold {

class MergesOneByOne {
 public:
  static constexpr size_t kLongest = 126;  // symbols

  // `table` must outlive this; its ranks must not change.
  explicit MergesOneByOne(const MergeTable& table);

  // Merges the leftmost pair of the lowest rank until there is none. Returns false and changes nothing if the result
  // might differ from merging all pairs of one rank at each step (a merge makes a pair of a lower rank than its own),
  // or if the word or the codes are too long.
  bool apply(Symbols& symbols) const;

  // As Inference::tokens_of(): none if apply() would return false for a part of the word that no merge crosses the ends
  // of, for a word of one byte, and if symbols are not bytes.
  std::optional<size_t> tokens_of(std::string_view word, int32_t* tokens) const;

 private:
  template <typename Keys, typename Bits>
  class Word;
  // Without a look-up for most codes: its time would add to that of each step.
  int32_t merged_by(uint32_t number) const {
    if (in_order_) [[likely]]
      return before_merged_ + static_cast<int32_t>(number);
    return merged_of_rank_[number - 1];
  }
  // Merges the `n` symbols `from` and writes them `to`; none as for apply().
  template <typename Keys, typename Bits, typename From, typename To>
  std::optional<size_t> merge(const From* from, size_t n, To&& to) const;
  // The same with the processor's fastest instructions for finding the lowest rank and looking up pairs.
  template <typename From, typename To>
  std::optional<size_t> merge_with_fastest(const From* from, size_t n, To&& to) const;
  template <typename From, typename To>
  std::optional<size_t> merge_portably(const From* from, size_t n, To&& to) const;
  template <typename From, typename To>
  std::optional<size_t> merge_with_avx2(const From* from, size_t n, To&& to) const;
  std::optional<size_t> tokens_of_part(std::string_view part, int32_t* tokens) const;

  // Numbers are ranks plus one, and 0 for none.
  const PairTable& ranks_;
  const std::vector<int32_t>& merged_of_rank_;
  const bool fits_;              // whether a rank and a place fit into a key
  const int32_t before_merged_;  // the token before that of rank 0
  const bool in_order_;          // whether each rank has the token after that of the rank before
  // By the left and the right byte, and by byte; empty if symbols are not bytes.
  std::vector<uint32_t> number_of_bytes_;
  std::vector<int32_t> token_of_byte_;
  // By two bytes, the first one lowest: whether the left half of some merge ends, and its right half begins with them.
  std::vector<uint8_t> joined_;
  std::optional<EarlyCharacters> characters_;
};

}  // namespace mt_scaffold
