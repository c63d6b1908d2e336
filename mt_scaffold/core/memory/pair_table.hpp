// Pairs of tokens, each with a number.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "memory/huge_pages.hpp"
#include "text/hashing.hpp"
#include "text/instructions.hpp"

namespace mt_scaffold {

// A hash table that is small enough for a processor's own cache: a slot of four bytes holds a number and some bits of
// the pair's hash, and the pair itself lies where its number says, which is near where other frequent ones lie. A pair
// is looked for in the line of its hash, and in the lines after it if that is full.
class PairTable {
 public:
  static constexpr int32_t kNone = INT32_MAX;

  // Has room for this many pairs, whose numbers are below `pairs`.
  explicit PairTable(size_t pairs)
      : lines_(pairs / kUsed + 1),
        number_bits_(std::bit_width(pairs)),
        slots_((lines_ + 1) * kLine),
        pairs_(pairs + 1, ~Pair{0}) {}

  // Gives a pair of tokens a number that no other pair has, in place of its own.
  void set(int32_t left, int32_t right, int32_t number) {
    const Pair pair = pair_of(left, right);
    const Wanted wanted = look_for(pair);
    uint32_t* const slot = const_cast<uint32_t*>(slot_of(wanted, pair));
    *slot = wanted.mark | static_cast<uint32_t>(number + 1);
    pairs_[static_cast<size_t>(number) + 1] = pair;
  }

  // The number of a pair of tokens, negative ones of which are in none; kNone if it has none.
  int32_t find(int32_t left, int32_t right) const {
    if ((left | right) < 0) return kNone;
    const Pair pair = pair_of(left, right);
    const uint32_t number = number_in(*slot_of(look_for(pair), pair));
    return number == 0 ? kNone : static_cast<int32_t>(number) - 1;
  }

  // What find() returns plus one, or 0 for none.
  uint32_t number(int32_t left, int32_t right) const {
    const int32_t found = find(left, right);
    return found == kNone ? 0 : static_cast<uint32_t>(found) + 1;
  }

#if defined(__SSE2__)
  // The same, where no branch depends on whether the pair has a number.
  MT_SCAFFOLD_AVX2 __attribute__((always_inline)) uint32_t number_with_avx2(int32_t left, int32_t right) const {
    const Pair pair = pair_of(left, right);
    const Wanted wanted = look_for(pair);
    const auto same = [&](const uint32_t* eight) __attribute__((always_inline)) MT_SCAFFOLD_AVX2 {
      const __m256i slots = _mm256_load_si256(reinterpret_cast<const __m256i*>(eight));
      const __m256i marks = _mm256_andnot_si256(_mm256_set1_epi32(static_cast<int>(number_mask())), slots);
      const __m256i equal = _mm256_cmpeq_epi32(marks, _mm256_set1_epi32(static_cast<int>(wanted.mark)));
      return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
    };
    const uint32_t found = same(wanted.line) | same(wanted.line + 8) << 8;
    const uint32_t slot = wanted.line[_tzcnt_u32(found | uint32_t{1} << kLine)];
    return checked(found == 0 ? 0 : number_in(slot), wanted, pair);
  }
  MT_SCAFFOLD_AVX512 __attribute__((always_inline)) uint32_t number_with_avx512(int32_t left, int32_t right) const {
    const Pair pair = pair_of(left, right);
    const Wanted wanted = look_for(pair);
    const __m512i slots = _mm512_load_si512(wanted.line);
    const __m512i marks = _mm512_andnot_si512(_mm512_set1_epi32(static_cast<int>(number_mask())), slots);
    const __mmask16 found = _mm512_cmpeq_epi32_mask(marks, _mm512_set1_epi32(static_cast<int>(wanted.mark)));
    const __m512i first = _mm512_maskz_compress_epi32(found, slots);
    return checked(number_in(static_cast<uint32_t>(_mm_cvtsi128_si32(_mm512_castsi512_si128(first)))), wanted, pair);
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
  static constexpr size_t kUsed = 10;  // of them, on average: few lines are full

  // In one number, so that two are compared without a branch.
  using Pair = uint64_t;
  static Pair pair_of(int32_t left, int32_t right) {
    return static_cast<Pair>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  static int32_t left_of(Pair pair) { return static_cast<int32_t>(pair >> 32); }
  static int32_t right_of(Pair pair) { return static_cast<int32_t>(pair); }
  struct Wanted {
    const uint32_t* line;
    uint32_t mark;  // above the number, and never 0, which empty slots hold
  };

  uint32_t number_mask() const { return (uint32_t{1} << number_bits_) - 1; }
  uint32_t number_in(uint32_t slot) const { return slot & number_mask(); }

  Wanted look_for(Pair pair) const {
    const uint64_t hash = hash_number(pair);
    return {&slots_[((hash >> 32) * lines_ >> 32) * kLine], (static_cast<uint32_t>(hash) | 1) << number_bits_};
  }

  // The slot of a pair, or the empty one where it would be.
  const uint32_t* slot_of(const Wanted& wanted, Pair pair) const {
    for (const uint32_t* slot = wanted.line;; ++slot) {
      if (slot == slots_.data() + lines_ * kLine) slot = slots_.data();
      const uint32_t number = number_in(*slot);
      if (*slot == 0 || (*slot == (wanted.mark | number) && pairs_[number] == pair)) return slot;
    }
  }

  // The number of a pair, of which `number` is the first in its line that may be: another where the line is full or
  // another pair has the same mark.
  uint32_t checked(uint32_t number, const Wanted& wanted, Pair pair) const {
    const bool none = number == 0, differs = pairs_[number] != pair, full = wanted.line[kLine - 1] != 0;
    if ((none & full) | (!none & differs)) [[unlikely]]
      return this->number(left_of(pair), right_of(pair));
    return number;
  }

  size_t lines_;
  int number_bits_;
  HugeVector<uint32_t> slots_;  // a mark and a number plus one; a line more, which stays empty
  HugeVector<Pair> pairs_;      // by number plus one
};

}  // namespace mt_scaffold
