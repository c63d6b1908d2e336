// Pairs of tokens, each with a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/hashing.hpp"

namespace mt_scaffold {

class PairTable {
 public:
  static constexpr int32_t kNone = INT32_MAX;

  // Has room for this many pairs.
  explicit PairTable(size_t pairs) {
    size_t size = 16;
    while (size < pairs * 3) size *= 2;
    slots_.assign(size, {-1, -1, kNone});
    may_exist_.assign(size / 8, 0);
  }

  // The number of a pair, which is added with kNone; a pair with kNone may be overwritten by the next one.
  int32_t& operator()(int32_t left, int32_t right) {
    const uint64_t hash = hash_pair(left, right);
    const uint64_t bit = bit_of(hash);
    may_exist_[bit / 64] |= uint64_t{1} << bit % 64;
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    while (slots_[i].number != kNone && (slots_[i].left != left || slots_[i].right != right)) i = (i + 1) & mask;
    slots_[i].left = left;
    slots_[i].right = right;
    return slots_[i].number;
  }

  // The number of a pair of tokens, negative ones of which are in none; kNone if it has none.
  int32_t find(int32_t left, int32_t right) const {
    if ((left | right) < 0) return kNone;
    const size_t mask = slots_.size() - 1;
    const uint64_t hash = hash_pair(left, right);
    // Most pairs have no number, and this small table rejects most of those without a cache miss in the large one.
    const uint64_t bit = bit_of(hash);
    if (!(may_exist_[bit / 64] >> (bit % 64) & 1)) return kNone;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.left == left && slot.right == right) return slot.number;
      if (slot.number == kNone) return kNone;
    }
  }

  // Calls `on_pair(int32_t left, int32_t right, int32_t number)` for each pair.
  template <typename OnPair>
  void for_each(OnPair&& on_pair) const {
    for (const Slot& slot : slots_)
      if (slot.number != kNone) on_pair(slot.left, slot.right, slot.number);
  }

 private:
  struct Slot {
    int32_t left, right;
    int32_t number;
  };

  uint64_t bit_of(uint64_t hash) const { return hash >> 40 & (may_exist_.size() * 64 - 1); }

  std::vector<Slot> slots_;
  std::vector<uint64_t> may_exist_;  // a Bloom filter over slots_
};

}  // namespace mt_scaffold
