// Strings numbered in the order in which they are first seen.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "memory/arena.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

class Interner {
 public:
  int32_t intern(std::string_view text) {
    size_t slot = slot_of(text);
    if (slots_[slot] == 0) {
      if ((texts_.size() + 1) * 2 > slots_.size()) {
        grow();
        slot = slot_of(text);
      }
      texts_.push_back(arena_.store(text));
      slots_[slot] = static_cast<int32_t>(texts_.size());
    }
    return slots_[slot] - 1;
  }

  // The number of a string, -1 if it has none.
  int32_t find(std::string_view text) const { return slots_[slot_of(text)] - 1; }

  size_t size() const { return texts_.size(); }
  std::string_view operator[](int32_t number) const { return texts_[static_cast<size_t>(number)]; }

 private:
  size_t slot_of(std::string_view text) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = hash_string(text) & mask;
    while (slots_[slot] != 0 && texts_[static_cast<size_t>(slots_[slot] - 1)] != text) slot = (slot + 1) & mask;
    return slot;
  }

  void grow() {
    slots_.assign(slots_.size() * 4, 0);
    for (size_t i = 0; i < texts_.size(); ++i) slots_[slot_of(texts_[i])] = static_cast<int32_t>(i + 1);
  }

  std::vector<int32_t> slots_ = std::vector<int32_t>(1 << 12, 0);  // a number + 1; 0 if empty
  std::vector<std::string_view> texts_;
  StringArena arena_;
};

}  // namespace mt_scaffold
