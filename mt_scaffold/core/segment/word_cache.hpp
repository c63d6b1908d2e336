// The words that a thread met last, with their ids: few enough for its processor's own cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "memory/huge_pages.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

// Words of up to kLongest bytes and kMostIds ids, in sets of two that are a cache line each. It grows with the number
// of words up to its limit, 8 MiB; then a new word takes another's place.
class WordCache {
 public:
  static constexpr size_t kLongest = 15;
  static constexpr size_t kMostIds = 4;

  // The bytes of a word, padded with zeros; the last byte holds the length.
  struct Key {
    uint64_t low, high;
  };
  struct Entry {
    Key key;  // above the length: the number of ids, less one
    int32_t ids[kMostIds];

    size_t count() const { return (key.high >> kCountShift) + 1; }
    bool holds(const Key& wanted) const { return ((key.low ^ wanted.low) | (key.high ^ wanted.high) << 3) == 0; }
    bool empty() const { return key.high == 0; }
  };

 private:
  static constexpr int kCountShift = 61;
  static constexpr int kFirstBits = 11, kMostBits = 17;  // of the number of sets
  struct alignas(64) Set {
    Entry entries[2];
  };
  static_assert(sizeof(Set) == 64);

 public:
  WordCache() : sets_(size_t{1} << kFirstBits) {}

  // `text` must be readable for kPadding bytes past its end. All longer words have the same key, which is in no cache.
  static Key key(const char* text, size_t length) {
    const size_t row = std::min(length, kLongest + 1);
    Key key;
    std::memcpy(&key, text, sizeof key);
    return {key.low & kMasks[row].low, (key.high & kMasks[row].high) | static_cast<uint64_t>(row) << 56};
  }

  // Where a word is if it is there.
  class Place {
   public:
    // Null for a word that is not there.
    const Entry* find() const {
      const bool first = set_->entries[0].holds(key_), second = set_->entries[1].holds(key_);
      return first | second ? &set_->entries[second] : nullptr;
    }

   private:
    friend WordCache;
    Key key_;
    const Set* set_;
  };

  // The cache until the next add().
  class View {
   public:
    // Fetches the memory of a word ahead of find().
    Place place(const Key& key) const {
      Place place;
      place.key_ = key;
      place.set_ = sets_ + (hash(key) >> shift_);
      __builtin_prefetch(place.set_);
      return place;
    }

   private:
    friend WordCache;
    View(const Set* sets, int shift) : sets_(sets), shift_(shift) {}

    const Set* sets_;
    int shift_;
  };
  View view() const { return {sets_.data(), shift_}; }

  void add(Key key, const int32_t* ids, size_t count) {
    if (words_ >= sets_.size() / 2 && shift_ > 64 - kMostBits) grow();
    Entry& entry = entry_for(key);
    key.high |= static_cast<uint64_t>(count - 1) << kCountShift;
    entry.key = key;
    std::memcpy(entry.ids, ids, count * sizeof *ids);
  }

 private:
  // The bytes of a word of each length; none of a longer word.
  static constexpr auto kMasks = [] {
    std::array<Key, kLongest + 2> masks{};
    for (size_t length = 1; length <= kLongest; ++length)
      for (size_t i = 0; i < length; ++i)
        (i < 8 ? masks[length].low : masks[length].high) |= uint64_t{0xFF} << i % 8 * 8;
    return masks;
  }();

  static uint64_t hash(const Key& key) { return (key.low ^ key.high * 0xE7037ED1A0B428DBULL) * 0xA0761D6478BD642FULL; }

  // Where to put a word, in place of another if there is no room.
  Entry& entry_for(const Key& key) {
    Set& set = sets_[hash(key) >> shift_];
    for (Entry& entry : set.entries) {
      if (!entry.empty()) continue;
      ++words_;
      return entry;
    }
    // The first entry stays longer, so that frequent words outlive rare ones.
    return set.entries[(++replaced_ & 7) != 0];
  }

  void grow() {
    HugeVector<Set> old(sets_.size() * 4);
    old.swap(sets_);
    shift_ -= 2;
    words_ = 0;
    for (const Set& set : old)
      for (const Entry& entry : set.entries)
        if (!entry.empty()) entry_for({entry.key.low, entry.key.high << 3 >> 3}) = entry;
  }

  HugeVector<Set> sets_;
  int shift_ = 64 - kFirstBits;
  size_t words_ = 0, replaced_ = 0;
};

}  // namespace mt_scaffold
