// Counts of the words of a text, in the order in which they were first seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "huge_pages.hpp"
#include "text.hpp"

namespace mt_scaffold {

// Memory for strings that live as long as their owner; each is readable for kPadding bytes past its end.
class StringArena {
 public:
  std::string_view store(std::string_view text) {
    const size_t needed = text.size() + kPadding;
    if (needed > left_) {
      const size_t size = std::max(kChunk, needed);
      chunks_.emplace_back(new char[size]);
      free_ = chunks_.back().get();
      left_ = size;
    }
    char* place = free_;
    std::memcpy(place, text.data(), text.size());
    std::memset(place + text.size(), 0, kPadding);
    // The next string may begin inside this one's padding: all that matters is that it can be read.
    free_ += text.size();
    left_ -= text.size();
    return {place, text.size()};
  }

 private:
  static constexpr size_t kChunk = size_t{1} << 16;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  size_t left_ = 0;
};

struct WordCount {
  std::string_view word;
  uint64_t count;
  uint64_t first_seen;
};

// An open-addressing table; words of up to 16 bytes lie in their slot.
class WordCounter {
 public:
  // Counts `count` more of `word`, first seen at `position`. Returns false where the word is new and not UTF-8.
  bool add(const HashedWord& word, uint64_t count, uint64_t position) {
    Slot* slot = find(word);
    if (slot->length == 0) {
      if (first_invalid_byte(word.text) != word.text.size()) return false;
      slot = insert(word, slot, position);
    }
    raise(*slot, count);
    return true;
  }

  // Has the memory fetched that add() will look at.
  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & (capacity_ - 1)], 1); }

  // Counts a word that another counter has checked.
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
      // A short word is handed out from its slot, which is followed by the rest of the table or its padding.
      on_entry(WordCount{text_of(slot), slot.count, first_seen_[i]});
    }
  }

  size_t size() const { return used_; }

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
    if (__builtin_add_overflow(slot.count, by, &slot.count))
      throw InputError("the counts of the word '" + std::string(text_of(slot)) + "' are too high: more than 2^64");
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

  Slot* insert(const HashedWord& word, Slot* slot, uint64_t position) {
    if ((used_ + 1) * 2 > capacity_) {
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

  // A short word is read from its slot, with the padding that goes for every text.
  static HugeVector<Slot> make_slots(size_t capacity) {
    return HugeVector<Slot>(capacity + (kPadding + sizeof(Slot) - 1) / sizeof(Slot));
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
  HugeVector<Slot> slots_ = make_slots(capacity_);
  HugeVector<uint64_t> first_seen_ = HugeVector<uint64_t>(capacity_, 0);
  StringArena arena_;
};

// The words of a text, in parts by hash so that several threads can bring theirs together.
class WordCounts {
 public:
  static constexpr size_t kParts = 64;

  static size_t part_of(uint64_t hash) { return hash >> 58; }

  // Lines with at least one word, where a text was counted.
  uint64_t lines = 0;

  WordCounter& part(size_t index) { return parts_[index]; }
  bool add(const HashedWord& word, uint64_t count, uint64_t position) {
    return parts_[part_of(word.hash)].add(word, count, position);
  }
  void merge(const WordCounts& other) {
    lines += other.lines;
    other.for_each([&](const WordCount& entry) {
      const HashedWord word = hash_word(entry.word);
      parts_[part_of(word.hash)].add_counted(word, entry);
    });
  }

  template <typename OnEntry>
  void for_each(OnEntry&& on_entry) const {
    for (const WordCounter& part : parts_) part.for_each(on_entry);
  }

  size_t size() const {
    size_t words = 0;
    for (const WordCounter& part : parts_) words += part.size();
    return words;
  }

  // The entries by first occurrence.
  std::vector<WordCount> in_order() const {
    std::vector<WordCount> entries;
    entries.reserve(size());
    for_each([&](const WordCount& entry) { entries.push_back(entry); });
    std::sort(entries.begin(), entries.end(),
              [](const WordCount& a, const WordCount& b) { return a.first_seen < b.first_seen; });
    return entries;
  }

 private:
  std::vector<WordCounter> parts_ = std::vector<WordCounter>(kParts);
};

// Counts the words of all blocks. Errors name the input, the line and the byte offset.
WordCounts count_words(BlockReader& reader, unsigned workers, const Tick& tick);

// Reads `word count` lines (subword-nmt's --dict-input).
WordCounts read_word_counts(BlockReader& reader, const Tick& tick);

}  // namespace mt_scaffold
