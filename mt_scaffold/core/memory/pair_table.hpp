// Pairs of tokens, each with a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/hashing.hpp"

namespace mt_scaffold {

// A hash table whose slots hold left, right and number, of kBits each: so small that a pair which is not there costs
// one cache line.
template <typename Slot, int kBits>
class PackedPairs {
 public:
  static constexpr int32_t kNone = INT32_MAX;
  static constexpr uint64_t kMost = (uint64_t{1} << kBits) - 2;  // a token or a number

  void reserve(size_t pairs) {
    size_t size = 16;
    while (size < pairs * 2) size *= 2;
    slots_.assign(size, 0);
  }

  void set(int32_t left, int32_t right, int32_t number) {
    const Slot pair = pair_of(left, right);
    size_t i = hash_pair(left, right) & mask();
    while (slots_[i] != 0 && slots_[i] >> kBits != pair) i = (i + 1) & mask();
    slots_[i] = pair << kBits | static_cast<Slot>(number + 1);
  }

  int32_t find(int32_t left, int32_t right) const {
    const Slot pair = pair_of(left, right);
    for (size_t i = hash_pair(left, right) & mask();; i = (i + 1) & mask()) {
      if (slots_[i] >> kBits == pair && slots_[i] != 0) return number_of(slots_[i]);
      if (slots_[i] == 0) return kNone;
    }
  }

  template <typename OnPair>
  void for_each(OnPair&& on_pair) const {
    for (const Slot slot : slots_) {
      if (slot == 0) continue;
      constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
      on_pair(static_cast<int32_t>(slot >> 2 * kBits & kMask), static_cast<int32_t>(slot >> kBits & kMask),
              number_of(slot));
    }
  }

 private:
  static Slot pair_of(int32_t left, int32_t right) {
    return static_cast<Slot>(static_cast<uint32_t>(left)) << kBits | static_cast<uint32_t>(right);
  }
  static int32_t number_of(Slot slot) {
    constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
    return static_cast<int32_t>(static_cast<uint64_t>(slot) & kMask) - 1;
  }
  size_t mask() const { return slots_.size() - 1; }

  std::vector<Slot> slots_;  // 0: empty
};

class PairTable {
 public:
  static constexpr int32_t kNone = INT32_MAX;

  // Has room for this many pairs, of as many numbers and three times as many tokens.
  explicit PairTable(size_t pairs) : wide_(pairs * 3 > Narrow::kMost) {
    wide_ ? many_.reserve(pairs) : few_.reserve(pairs);
  }

  // Gives a pair of tokens a number, in place of that which it has.
  void set(int32_t left, int32_t right, int32_t number) {
    wide_ ? many_.set(left, right, number) : few_.set(left, right, number);
  }

  // The number of a pair of tokens, negative ones of which are in none; kNone if it has none.
  int32_t find(int32_t left, int32_t right) const {
    if ((left | right) < 0) return kNone;
    if (wide_) [[unlikely]]
      return many_.find(left, right);
    return few_.find(left, right);
  }

  // Calls `on_pair(int32_t left, int32_t right, int32_t number)` for each pair.
  template <typename OnPair>
  void for_each(OnPair&& on_pair) const {
    wide_ ? many_.for_each(on_pair) : few_.for_each(on_pair);
  }

 private:
  using Narrow = PackedPairs<uint64_t, 21>;

  bool wide_;
  Narrow few_;
  PackedPairs<unsigned __int128, 32> many_;
};

}  // namespace mt_scaffold
