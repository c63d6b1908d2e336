// Where tokens are in a text of code points of 1, 2 or 4 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace mt_scaffold {

template <typename Unit>
class TokenFinder {
 public:
  // Tokens without characters, and those with one that no unit holds, are in no text.
  explicit TokenFinder(const std::vector<std::u32string>& tokens) {
    for (size_t number = 0; number < tokens.size(); ++number) {
      const std::u32string& token = tokens[number];
      const auto fits = [](char32_t c) { return c <= std::numeric_limits<Unit>::max(); };
      if (token.empty() || !std::all_of(token.begin(), token.end(), fits)) continue;
      std::vector<Unit> units(token.begin(), token.end());
      const auto same = [&](const First& first) { return first.unit == units.front(); };
      auto first = std::find_if(firsts_.begin(), firsts_.end(), same);
      if (first == firsts_.end()) first = firsts_.insert(first, First{units.front(), {}});
      first->tokens.emplace_back(std::move(units), number);
    }
    for (First& first : firsts_)
      std::stable_sort(first.tokens.begin(), first.tokens.end(),
                       [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  }

  // Calls `found(place, number of the token)` from the left, without overlap; of several at one place for the longest.
  template <typename Found>
  void find(const Unit* text, size_t size, Found&& found) const {
    each(text, 0, size, size, [&](size_t place, size_t number) {
      found(place, number);
      return true;
    });
  }

  // Whether a token begins between `begin` and `end` in a text of `size` units.
  bool any(const Unit* text, size_t begin, size_t end, size_t size) const {
    return !each(text, begin, end, size, [](size_t, size_t) { return false; });
  }

 private:
  // Calls `found` as find() does for the tokens that begin between `begin` and `end`, until it returns false. Returns
  // whether it never did.
  template <typename Found>
  bool each(const Unit* text, size_t begin, size_t end, size_t size, Found&& found) const {
    std::vector<size_t> next;  // where each first character comes next
    for (const First& first : firsts_) next.push_back(seek(text, begin, end, first.unit));
    while (!next.empty()) {
      const auto nearest = std::min_element(next.begin(), next.end());
      const size_t place = *nearest;
      if (place >= end) break;
      size_t after = place + 1;
      for (const auto& [units, number] : firsts_[static_cast<size_t>(nearest - next.begin())].tokens) {
        if (units.size() > size - place || !std::equal(units.begin(), units.end(), text + place)) continue;
        if (!found(place, number)) return false;
        after = place + units.size();
        break;
      }
      for (size_t i = 0; i < next.size(); ++i)
        if (next[i] < after) next[i] = seek(text, std::min(after, end), end, firsts_[i].unit);
    }
    return true;
  }

  // Tokens with one first character, the longest first.
  struct First {
    Unit unit;
    std::vector<std::pair<std::vector<Unit>, size_t>> tokens;
  };

  // The first place of a unit from `begin` on and before `size`, or `size`.
  static size_t seek(const Unit* text, size_t begin, size_t size, Unit unit) {
    if constexpr (sizeof(Unit) == 1) {
      const void* const at = begin < size ? std::memchr(text + begin, unit, size - begin) : nullptr;
      return at ? static_cast<size_t>(static_cast<const Unit*>(at) - text) : size;
    } else {
      // Compilers vectorise loops whose end they know.
      constexpr size_t kBlock = 32;
      for (; size - begin >= kBlock; begin += kBlock) {
        Unit any = 0;
        for (size_t i = 0; i < kBlock; ++i) any |= static_cast<Unit>(text[begin + i] == unit);
        if (any) break;
      }
      return static_cast<size_t>(std::find(text + begin, text + size, unit) - text);
    }
  }

  std::vector<First> firsts_;
};

}  // namespace mt_scaffold
