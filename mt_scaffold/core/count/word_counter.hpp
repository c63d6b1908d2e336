// A hash table of words with their counts, for one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "memory/arena.hpp"
#include "memory/huge_pages.hpp"
#include "text/notation.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

struct WordCount {
  std::string_view word;
  uint64_t count;
  uint64_t first_seen;
};

[[gnu::cold]] inline InputError counts_too_high(std::string_view word) {
  // Messages are UTF-8.
  const std::string shown = first_invalid_byte(word) == word.size() ? std::string(word) : notation_of(word);
  return InputError("the counts of the word '" + shown +
                    "' are too high: they sum to 2^64 or more; scale all counts down");
}

// Throws InputError if the sum of a word's counts does not fit.
inline void add_count(uint64_t& to, uint64_t count, std::string_view word) {
  if (__builtin_add_overflow(to, count, &to)) throw counts_too_high(word);
}

// The entries of a WordCounter or WordCounts, in any order.
template <typename Words>
std::vector<WordCount> entries_of(const Words& words) {
  std::vector<WordCount> entries;
  entries.reserve(words.size());
  words.for_each([&](const WordCount& entry) { entries.push_back(entry); });
  return entries;
}

// Open addressing; words of up to 16 bytes are stored in their slot.
class WordCounter {
 public:
  static constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

  // Adds `count` occurrences of `word`, the first at `position`; false if the word is new and not UTF-8, unless
  // `any_bytes` is set.
  bool add(const HashedWord& word, uint64_t count, uint64_t position, bool any_bytes = false) {
    Slot* slot = find(word);
    if (slot->length == 0) {
      if (!any_bytes && first_invalid_byte(word.text) != word.text.size()) return false;
      slot = insert(word, slot, position);
    }
    raise(*slot, count);
    return true;
  }

  // Prefetches the slot that add() will read.
  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & (capacity_ - 1)], 1); }

  // Adds a word that another counter has validated.
  void add_counted(const HashedWord& word, const WordCount& entry) {
    Slot* slot = find(word);
    if (slot->length == 0) slot = insert(word, slot, entry.first_seen);
    raise(*slot, entry.count);
    uint64_t& first = first_seen_[static_cast<size_t>(slot - slots_.data())];
    first = std::min(first, entry.first_seen);
  }

  template <typename OnEntry>
  void for_each(OnEntry&& on_entry) const {
    for (size_t i = 0; i < capacity_; ++i) {
      const Slot& slot = slots_[i];
      if (slot.length == 0) continue;
      // A short word is a view of its slot, readable past its end in the following slots or the padding.
      on_entry(WordCount{text_of(slot), slot.count, first_seen_[i]});
    }
  }

  size_t size() const { return used_; }

  // The memory taken, in bytes.
  size_t bytes() const { return bytes_of(capacity_) + arena_.bytes(); }

  // The memory of words of more than 16 bytes.
  size_t bytes_of_long_words() const { return arena_.bytes(); }

  // Limits the table to about this many bytes, at the price of a higher load.
  void limit_to(size_t bytes) { max_bytes_ = bytes; }

  // Whether the words should be spilled before more are added.
  bool full() const {
    return used_ * 4 >= capacity_ * 3 || (arena_.bytes() > StringArena::kChunk && bytes() > max_bytes_);
  }

 private:
  struct Slot {
    union {
      uint64_t head[2] = {0, 0};
      struct {
        const char* data;
        uint64_t hash;
      } spilled;  // words of more than 16 bytes
    };
    uint64_t count = 0;
    uint64_t length = 0;  // 0: empty
  };

  static std::string_view text_of(const Slot& slot) {
    const char* data = slot.length > 16 ? slot.spilled.data : reinterpret_cast<const char*>(slot.head);
    return {data, slot.length};
  }

  static void raise(Slot& slot, uint64_t by) {
    // Not add_count(), for which the loop would have to keep the word.
    if (__builtin_add_overflow(slot.count, by, &slot.count)) throw counts_too_high(text_of(slot));
  }

  Slot* find(const HashedWord& word) {
    const size_t n = word.text.size();
    for (size_t i = word.hash & (capacity_ - 1);; i = (i + 1) & (capacity_ - 1)) {
      Slot& slot = slots_[i];
      if (slot.length == 0) return &slot;
      if (slot.length != n) continue;
      if (n <= 16 ? slot.head[0] == word.head[0] && slot.head[1] == word.head[1]
                  : slot.spilled.hash == word.hash && std::memcmp(slot.spilled.data, word.text.data(), n) == 0)
        return &slot;
    }
  }

  [[gnu::noinline]] Slot* insert(const HashedWord& word, Slot* slot, uint64_t position) {
    if ((used_ + 1) * 2 > capacity_ && may_grow()) {
      grow();
      slot = find(word);
    }
    ++used_;
    slot->length = word.text.size();
    if (word.text.size() > 16) {
      slot->spilled = {arena_.store(word.text).data(), word.hash};
    } else {
      slot->head[0] = word.head[0];
      slot->head[1] = word.head[1];
    }
    slot->count = 0;
    first_seen_[static_cast<size_t>(slot - slots_.data())] = position;
    return slot;
  }

  // Short words in the last slots need their kPadding too.
  static HugeVector<Slot> make_slots(size_t capacity) {
    return HugeVector<Slot>(capacity + (kPadding + sizeof(Slot) - 1) / sizeof(Slot));
  }

  static size_t bytes_of(size_t capacity) {
    return size_in_huge_pages(capacity * sizeof(Slot) + kPadding) + size_in_huge_pages(capacity * sizeof(uint64_t));
  }

  // Beyond a load that makes every look-up slow, the table grows whatever the limit.
  bool may_grow() const {
    return bytes_of(2 * capacity_) + arena_.bytes() <= max_bytes_ || (used_ + 1) * 8 > capacity_ * 7;
  }

  void grow() {
    const size_t old_capacity = capacity_;
    auto old_slots = std::move(slots_);
    auto old_first = std::move(first_seen_);
    capacity_ *= 2;
    slots_ = make_slots(capacity_);
    first_seen_.assign(capacity_, 0);
    for (size_t i = 0; i < old_capacity; ++i) {
      if (old_slots[i].length == 0) continue;
      Slot* slot = find(hash_word(text_of(old_slots[i])));
      *slot = old_slots[i];
      first_seen_[static_cast<size_t>(slot - slots_.data())] = old_first[i];
    }
  }

  size_t capacity_ = size_t{1} << 8;
  size_t used_ = 0;
  size_t max_bytes_ = kUnlimited;
  HugeVector<Slot> slots_ = make_slots(capacity_);
  HugeVector<uint64_t> first_seen_ = HugeVector<uint64_t>(capacity_, 0);
  StringArena arena_;
};

}  // namespace mt_scaffold
