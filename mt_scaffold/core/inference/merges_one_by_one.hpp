// Merges of words of ordinary length without dropout, one pair after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "inference/inference.hpp"
#include "inference/merge_table.hpp"
#include "memory/huge_pages.hpp"

namespace mt_scaffold {

class MergesOneByOne {
 public:
  static constexpr size_t kLongest = 128;  // symbols

  // `table` must outlive this, and keep its ranks.
  explicit MergesOneByOne(const MergeTable& table);

  // Merges the leftmost pair of the lowest rank until there is none. Returns false and changes nothing where that may
  // not be what merging all pairs of one rank at each step does: where a merge makes a pair of a lower rank than its
  // own; and for longer words and more codes than fit.
  bool apply(std::string_view word, Symbols& symbols) const;

 private:
  // Where the lowest rank is found, which is most of the work, with what the processor has.
  template <typename Keys>
  bool merge(std::string_view word, Symbols& symbols) const;
  bool merge_portably(std::string_view word, Symbols& symbols) const;
  bool merge_with_avx2(std::string_view word, Symbols& symbols) const;
  bool merge_with_avx512(std::string_view word, Symbols& symbols) const;

  // Numbers are ranks plus one, and 0 for none.
  const PairTable& ranks_;
  const bool fits_;  // whether a rank and a place fit into a key
  HugeVector<int32_t> merged_of_number_;
  std::vector<uint32_t> number_of_bytes_;  // by the bytes left and right; empty where symbols are others
};

}  // namespace mt_scaffold
