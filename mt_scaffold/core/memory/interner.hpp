// Strings numbered in order of first appearance.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "memory/arena.hpp"
#include "memory/huge_pages.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

class Interner {
 public:
  // Reserves room for this many strings.
  explicit Interner(size_t strings = size_t{1} << 10) : slots_(std::bit_ceil(strings * 2 + 2)) {
    texts_.reserve(strings);
  }

  int32_t intern(std::string_view text) {
    if ((texts_.size() + 1) * 2 > slots_.size()) grow();
    const uint64_t hash = hash_string(text);
    Slot& slot = slots_[slot_of(text, hash)];
    if (slot.number == 0) {
      texts_.push_back(arena_.store(text));
      slot = {static_cast<uint32_t>(texts_.size()), hash_in_slot(hash)};
    }
    return static_cast<int32_t>(slot.number) - 1;
  }

  // The number of a string, -1 if it has none.
  int32_t find(std::string_view text) const {
    return static_cast<int32_t>(slots_[slot_of(text, hash_string(text))].number) - 1;
  }

  size_t size() const { return texts_.size(); }
  // Readable for kPadding bytes past its end.
  std::string_view operator[](int32_t number) const { return texts_[static_cast<size_t>(number)]; }

 private:
  struct Slot {
    uint32_t number;  // plus one; 0 if empty
    uint32_t hash;    // part of it, which avoids most string comparisons
  };
  static uint32_t hash_in_slot(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

  size_t slot_of(std::string_view text, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    for (; slots_[at].number != 0; at = (at + 1) & mask)
      if (slots_[at].hash == hash_in_slot(hash) && texts_[slots_[at].number - 1] == text) break;
    return at;
  }

  void grow() {
    slots_.assign(slots_.size() * 4, {});
    for (uint32_t i = 0; i < texts_.size(); ++i) {
      const uint64_t hash = hash_string(texts_[i]);
      slots_[slot_of(texts_[i], hash)] = {i + 1, hash_in_slot(hash)};
    }
  }

  HugeVector<Slot> slots_;
  std::vector<std::string_view> texts_;
  StringArena arena_;
};

}  // namespace mt_scaffold
