// Words with their ids: a thread's most recent ones and, before those, the words that are one token.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "memory/huge_pages.hpp"
#include "text/instructions.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

// Words of up to kLongest bytes and kMostIds ids, in sets of two that are a cache line each. It grows with the number
// of words up to its limit, 8 MiB; then a new word replaces another.
class WordCache {
 public:
  static constexpr size_t kLongest = 15;
  static constexpr size_t kMostIds = 4;

  // The bytes of a word, padded with zeros; the last byte holds the length.
  struct Key {
    uint64_t low, high;
  };

 private:
  static constexpr int kCountShift = 61;
  static constexpr int kFirstBits = 11, kMoreBits = 2, kMostBits = 17;  // of the number of sets
  static constexpr int kLineBits = 6;
  struct alignas(64) Set {
    Key keys[2];  // above the length: the number of ids, less one
    int32_t ids[2][kMostIds];

    bool empty(size_t i) const { return keys[i].high == 0; }
  };
  static_assert(sizeof(Set) == 1 << kLineBits);

  // By length: a mask of a word's bytes; zeros for a longer word.
  static constexpr auto kMasks = [] {
    std::array<Key, kLongest + 2> masks{};
    for (size_t length = 1; length <= kLongest; ++length)
      for (size_t i = 0; i < length; ++i)
        (i < 8 ? masks[length].low : masks[length].high) |= uint64_t{0xFF} << i % 8 * 8;
    return masks;
  }();

 public:
  struct Word {
    Key key;
    int32_t id;
  };

  // Starts from some words of one id each, the most frequent ones first.
  explicit WordCache(const std::vector<Word>& words) {
    int bits = kFirstBits;
    while (bits < kMostBits && words.size() >= size_t{1} << (bits - 1)) bits += kMoreBits;
    sets_.resize(size_t{1} << bits);
    for (const Word& word : words)
      if (set_of(word.key).empty(1)) put(word.key, &word.id, 1);
  }

  // The key of a word of at least one byte, readable for kPadding bytes past its end. All words longer than kLongest
  // have the same key, which is never cached.
  static Key key(const char* text, size_t length) {
    const size_t row = std::min(length, kLongest + 1);
    Key key;
    std::memcpy(&key, text, sizeof key);
    return {key.low & kMasks[row].low, (key.high & kMasks[row].high) | static_cast<uint64_t>(row) << 56};
  }

  // hash() is not seeded: however many words share a set, each costs at most a look-up in the table of words. The bits
  // from kLineBits on select the set, as many as the number of sets needs. which() returns which of a set's words has a
  // key: 0, 1, or -1 for neither.
  struct Portable {
    static uint64_t hash(const Key& key) {
      return (key.low ^ key.high * 0xE7037ED1A0B428DBULL) * 0xA0761D6478BD642FULL >> (64 - kMostBits - kLineBits);
    }
    static int which(const Set& set, const Key& key) {
      const auto holds = [&](const Key& there) { return ((there.low ^ key.low) | (there.high ^ key.high) << 3) == 0; };
      const bool first = holds(set.keys[0]), second = holds(set.keys[1]);
      return first | second ? second : -1;
    }
  };
#if defined(__SSE2__)
  struct Avx2 {
    MT_SCAFFOLD_AVX2 static uint64_t hash(const Key& key) { return _mm_crc32_u64(_mm_crc32_u64(0, key.low), key.high); }
    MT_SCAFFOLD_AVX2 static int which(const Set& set, const Key& key) {
      constexpr int64_t kWithoutCount = ~uint64_t{0} >> 3;
      const __m256i wanted = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&key)));
      const __m256i there = _mm256_load_si256(reinterpret_cast<const __m256i*>(set.keys));
      const __m256i same =
          _mm256_and_si256(_mm256_xor_si256(there, wanted), _mm256_set_epi64x(kWithoutCount, -1, kWithoutCount, -1));
      const int equal = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(same, _mm256_setzero_si256())));
      const int both = equal & equal >> 1 & 5;
      return both != 0 ? both >> 2 : -1;
    }
  };
#endif

  // Where a word is, if it is cached.
  struct alignas(32) Place {
    Key key;
    const Set* set;
  };
  struct Found {
    const int32_t* ids;  // kMostIds can be read; null for a word that is not there
    size_t count;
  };
  template <typename Instructions>
  __attribute__((always_inline)) static Found find(const Place& place) {
    const int i = Instructions::which(*place.set, place.key);
    if (i < 0) [[unlikely]]
      return {nullptr, 0};
    return {place.set->ids[i], (place.set->keys[i].high >> kCountShift) + 1};
  }

  // A view of the cache, valid until the next add().
  class View {
   public:
    // Prefetches the memory of a word for find().
    template <typename Instructions>
    __attribute__((always_inline)) Place place(const Key& key) const {
      const Place place{key, reinterpret_cast<const Set*>(sets_ + (Instructions::hash(key) & mask_))};
      __builtin_prefetch(place.set);
      return place;
    }

   private:
    friend WordCache;
    View(const Set* sets, uint64_t mask) : sets_(reinterpret_cast<const char*>(sets)), mask_(mask) {}

    const char* sets_;
    uint64_t mask_;
  };
  View view() const { return {sets_.data(), mask()}; }

  // Whether it no longer grows.
  bool full() const { return sets_.size() == size_t{1} << kMostBits; }

  void add(Key key, const int32_t* ids, size_t count) {
    if (words_ >= sets_.size() / 2 && !full()) grow();
    put(key, ids, count);
  }

 private:
  // Replaces another word if there is no room.
  void put(Key key, const int32_t* ids, size_t count) {
    Set& set = set_of(key);
    size_t i = set.empty(0) ? 0 : 1;
    if (set.empty(i)) {
      ++words_;
    } else {
      // The first word stays longer, so that frequent words outlive rare ones.
      i = (++replaced_ & 7) != 0;
    }
    key.high |= static_cast<uint64_t>(count - 1) << kCountShift;
    set.keys[i] = key;
    std::memcpy(set.ids[i], ids, count * sizeof *ids);
  }

  void grow() {
    HugeVector<Set> old(sets_.size() << kMoreBits);
    old.swap(sets_);
    words_ = 0;
    for (const Set& set : old) {
      for (size_t i = 0; i < 2; ++i) {
        const Key& key = set.keys[i];
        if (!set.empty(i)) put({key.low, key.high << 3 >> 3}, set.ids[i], (key.high >> kCountShift) + 1);
      }
    }
  }

  // By the instructions that look words up.
  static uint64_t hash(const Key& key) {
#if defined(__SSE2__)
    if (kUseAvx2) return Avx2::hash(key);
#endif
    return Portable::hash(key);
  }

  Set& set_of(const Key& key) { return sets_[(hash(key) & mask()) >> kLineBits]; }

  // Selects the position of a set in bytes.
  uint64_t mask() const { return (sets_.size() - 1) << kLineBits; }

  HugeVector<Set> sets_;
  size_t words_ = 0, replaced_ = 0;
};

}  // namespace mt_scaffold
