// Numbered pairs of tokens.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "memory/huge_pages.hpp"
#include "text/hashing.hpp"
#include "text/instructions.hpp"

namespace mt_scaffold {

// A hash table small enough for a core's private cache: a slot of four bytes holds a number and some bits of the pair's
// hash; the pairs themselves are stored by number, the frequent ones next to each other. A look-up searches the cache
// line of the pair's hash, and the following lines if that one is full.
class PairTable {
 public:
  static constexpr int32_t kNone = INT32_MAX;

  // Reserves room for `pairs` pairs, whose numbers must be below `pairs`.
  explicit PairTable(size_t pairs)
      : lines_(pairs / kUsed + 1),
        number_bits_(std::bit_width(pairs)),
        slots_((lines_ + 1) * kLine),
        pairs_(pairs + 1, ~Pair{0}) {}

  // Sets the number of a pair of tokens, which no other pair may have; replaces an earlier one.
  void set(int32_t left, int32_t right, int32_t number) {
    const Pair pair = pair_of(left, right);
    const Wanted wanted = look_for(pair);
    uint32_t* const slot = const_cast<uint32_t*>(slot_of(wanted, pair));
    *slot = wanted.mark | static_cast<uint32_t>(number + 1);
    pairs_[static_cast<size_t>(number) + 1] = pair;
  }

  // The number of a pair of tokens; kNone if it has none. Negative tokens may be given, but are in no pair.
  int32_t find(int32_t left, int32_t right) const {
    const uint32_t found = number(left, right);
    return found == 0 ? kNone : static_cast<int32_t>(found) - 1;
  }

  // find() plus one, or 0 for none, without a branch on the result.
  uint32_t number(int32_t left, int32_t right) const {
    const Pair pair = pair_of(left, right);
    const Wanted wanted = look_for(pair);
#if defined(__SSE2__)
    const __m128i marks = _mm_set1_epi32(static_cast<int>(~number_mask()));
    const __m128i mark = _mm_set1_epi32(static_cast<int>(wanted.mark));
    const auto same = [&](size_t i) __attribute__((always_inline)) {
      const __m128i four = _mm_load_si128(reinterpret_cast<const __m128i*>(wanted.line + i));
      return _mm_cmpeq_epi32(_mm_and_si128(four, marks), mark);
    };
    const __m128i eight = _mm_packs_epi32(same(0), same(4)), other = _mm_packs_epi32(same(8), same(12));
    const auto found = static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(eight, other)));
    const uint32_t slot = wanted.line[std::countr_zero(found | uint32_t{1} << kLine)];
    return checked(found == 0 ? 0 : number_in(slot), wanted, pair);
#else
    return number_in(*slot_of(wanted, pair));
#endif
  }

#if defined(__SSE2__)
  // The same by a shorter chain of instructions: XORed with the mark, a slot that has it is its number, the least.
  MT_SCAFFOLD_AVX2 uint32_t number_avx2(int32_t left, int32_t right) const {
    const Pair pair = pair_of(left, right);
    const Wanted wanted = look_for(pair);
    const __m128i mark = _mm_set1_epi32(static_cast<int>(wanted.mark));
    const auto unmarked = [&](size_t i) __attribute__((always_inline)) {
      return _mm_xor_si128(_mm_load_si128(reinterpret_cast<const __m128i*>(wanted.line + i)), mark);
    };
    const __m128i eight = _mm_min_epu32(unmarked(0), unmarked(4)), other = _mm_min_epu32(unmarked(8), unmarked(12));
    const uint32_t least = least_of(_mm_min_epu32(eight, other));
    // Not ?:, of which the compiler makes a branch that is often predicted wrongly.
    return checked(least & -static_cast<uint32_t>(least <= number_mask()), wanted, pair);
  }
#endif

  // Calls `on_pair(int32_t left, int32_t right, int32_t number)` for each pair.
  template <typename OnPair>
  void for_each(OnPair&& on_pair) const {
    for (const uint32_t slot : slots_) {
      if (slot == 0) continue;
      const uint32_t number = number_in(slot);
      on_pair(left_of(pairs_[number]), right_of(pairs_[number]), static_cast<int32_t>(number) - 1);
    }
  }

 private:
  static constexpr size_t kLine = 16;  // slots
  static constexpr size_t kUsed = 7;   // slots in use per line, on average: one in 400 is full

  // Both tokens in one number, compared without a branch.
  using Pair = uint64_t;
  static Pair pair_of(int32_t left, int32_t right) {
    return static_cast<Pair>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  static int32_t left_of(Pair pair) { return static_cast<int32_t>(pair >> 32); }
  static int32_t right_of(Pair pair) { return static_cast<int32_t>(pair); }
  struct Wanted {
    const uint32_t* line;
    uint32_t mark;  // the bits above the number; never 0, unlike an empty slot
  };

  uint32_t number_mask() const { return (uint32_t{1} << number_bits_) - 1; }
  uint32_t number_in(uint32_t slot) const { return slot & number_mask(); }

  // The line by the highest bits of a product with a random factor, which all bits of the pair reach.
  Wanted look_for(Pair pair) const {
    const uint64_t hash = pair * kHashSeeds.second;
    const auto line = static_cast<uint64_t>(static_cast<unsigned __int128>(hash) * lines_ >> 64);
    return {&slots_[line * kLine], (static_cast<uint32_t>(hash >> 32) | 1) << number_bits_};
  }

  // The slot of a pair, or the empty one where it belongs.
  const uint32_t* slot_of(const Wanted& wanted, Pair pair) const {
    for (const uint32_t* slot = wanted.line;; ++slot) {
      if (slot == slots_.data() + lines_ * kLine) slot = slots_.data();
      const uint32_t number = number_in(*slot);
      if (*slot == 0 || (*slot == (wanted.mark | number) && pairs_[number] == pair)) return slot;
    }
  }

  // The number of a pair, given one in its line with the same mark (0: none). Searches on if that one belongs to
  // another pair, or if there is none and the line is full.
  uint32_t checked(uint32_t number, const Wanted& wanted, Pair pair) const {
    const bool none = number == 0, differs = pairs_[number] != pair, full = wanted.line[kLine - 1] != 0;
    if ((none & full) | (!none & differs)) [[unlikely]]
      return number_in(*slot_of(wanted, pair));
    return number;
  }

  size_t lines_;
  int number_bits_;
  HugeVector<uint32_t> slots_;  // a mark and a number plus one; one extra line, which stays empty
  HugeVector<Pair> pairs_;      // by number plus one
};

}  // namespace mt_scaffold
