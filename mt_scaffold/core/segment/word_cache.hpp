// The words that a thread met last, with their ids: few enough for its processor's own cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "memory/huge_pages.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

// Words of up to kLongest bytes and kMostIds ids. A set of entries is a cache line; a new word takes another's place.
template <size_t kWords, int kBits>
class WordCache {
  static constexpr int kCountShift = 61;
  struct Set;

 public:
  static constexpr size_t kLongest = 8 * kWords - 1;
  static constexpr size_t kMostIds = 2 * kWords;

  // The bytes of a word, padded with zeros; the last byte holds the length.
  struct Key {
    uint64_t words[kWords];
  };
  struct Entry {
    Key key;  // above the length: the number of ids, less one
    int32_t ids[kMostIds];

    size_t count() const { return (key.words[kWords - 1] >> kCountShift) + 1; }
    bool holds(const Key& wanted) const {
      uint64_t difference = (key.words[kWords - 1] ^ wanted.words[kWords - 1]) << 3;
      for (size_t i = 0; i + 1 < kWords; ++i) difference |= key.words[i] ^ wanted.words[i];
      return difference == 0;
    }
  };

 private:
  static constexpr size_t kWays = 64 / sizeof(Entry);
  struct alignas(64) Set {
    Entry entries[kWays];
  };
  static_assert(sizeof(Set) == 64);

 public:
  WordCache() : sets_(size_t{1} << kBits) {}

  // `text` must be readable for kPadding bytes past its end; length: 1 to kLongest.
  static Key key(const char* text, size_t length) {
    Key key, mask;
    std::memcpy(&key, text, sizeof key);
    std::memcpy(&mask, kMask + 32 - length, sizeof mask);
    for (size_t i = 0; i < kWords; ++i) key.words[i] &= mask.words[i];
    key.words[kWords - 1] |= static_cast<uint64_t>(length) << 56;
    return key;
  }

  // Where a word is if it is there.
  class Place {
   public:
    // Null for a word that is not there.
    const Entry* find() const {
      if constexpr (kWays == 1) return set_->entries[0].holds(key_) ? &set_->entries[0] : nullptr;
      const bool first = set_->entries[0].holds(key_), second = set_->entries[kWays - 1].holds(key_);
      return first | second ? &set_->entries[second] : nullptr;
    }

   private:
    friend WordCache;
    Key key_;
    const Set* set_;
  };
  // Fetches its memory ahead of find().
  Place place(const Key& key) const {
    Place place;
    place.key_ = key;
    place.set_ = &sets_[set_of(key)];
    __builtin_prefetch(place.set_);
    return place;
  }

  void add(Key key, const int32_t* ids, size_t count) {
    Set& set = sets_[set_of(key)];
    // The first entry stays longer, so that frequent words outlive rare ones.
    Entry& entry = set.entries[kWays > 1 && set.entries[0].key.words[kWords - 1] != 0 && (++added_ & 7) != 0];
    key.words[kWords - 1] |= static_cast<uint64_t>(count - 1) << kCountShift;
    entry.key = key;
    std::memcpy(entry.ids, ids, count * sizeof *ids);
  }

 private:
  static constexpr auto& kMask =
      "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
      "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

  static size_t set_of(const Key& key) {
    uint64_t hash = key.words[0];
    for (size_t i = 1; i < kWords; ++i) hash = (hash ^ hash >> 32) ^ key.words[i] * 0xE7037ED1A0B428DBULL;
    return (hash * 0xA0761D6478BD642FULL) >> (64 - kBits);
  }

  HugeVector<Set> sets_;
  unsigned added_ = 0;
};

using ShortWordCache = WordCache<2, 16>;
using LongWordCache = WordCache<4, 12>;

}  // namespace mt_scaffold
