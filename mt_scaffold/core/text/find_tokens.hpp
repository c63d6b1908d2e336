// Finds tokens in a text: from the left, without overlap, and of several at one place the longest.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mt_scaffold {

// Cheap to construct without tokens.
class TokenFinder {
 public:
  // Looks for the tokens for whose number `wanted(number)` is true. None of these may be empty; `tokens` must outlive
  // this.
  template <typename Wanted>
  TokenFinder(const std::vector<std::string>& tokens, Wanted&& wanted) {
    for (size_t number = 0; number < tokens.size(); ++number) {
      if (!wanted(number)) continue;
      if (first_of_.empty()) first_of_.assign(256, 0);
      uint16_t& place = first_of_[static_cast<unsigned char>(tokens[number][0])];
      if (place == 0) {
        firsts_.push_back({tokens[number][0], {}});
        place = static_cast<uint16_t>(firsts_.size());
      }
      firsts_[place - 1].tokens.emplace_back(&tokens[number], number);
    }
    for (First& first : firsts_)
      std::stable_sort(first.tokens.begin(), first.tokens.end(),
                       [](const auto& a, const auto& b) { return a.first->size() > b.first->size(); });
  }

  // Calls `found(place, number)` for each.
  template <typename Found>
  void find(std::string_view text, Found&& found) const {
    if (firsts_.empty()) return;
    Next next;
    next.fill(std::string_view::npos);
    for (size_t from = 0;;) {
      const size_t place = seek(text, from, next);
      if (place >= text.size()) return;
      from = place + 1;
      for (const auto& [token, number] : firsts_[first_of_[static_cast<unsigned char>(text[place])] - 1].tokens) {
        if (text.compare(place, token->size(), *token) != 0) continue;
        found(place, number);
        from = place + token->size();
        break;
      }
    }
  }

 private:
  // Up to this many searches for one byte beat one pass over a table.
  static constexpr size_t kFew = 4;

  // The tokens that begin with one byte, the longest first, with their numbers.
  struct First {
    char byte;
    std::vector<std::pair<const std::string*, size_t>> tokens;
  };

  // The next position of each of a few bytes; npos: not searched yet.
  using Next = std::array<size_t, kFew>;

  // The first place from `from` on where a token may begin, or the end.
  size_t seek(std::string_view text, size_t from, Next& next) const {
    if (firsts_.size() > kFew) {
      while (from < text.size() && first_of_[static_cast<unsigned char>(text[from])] == 0) ++from;
      return from;
    }
    size_t nearest = text.size();
    for (size_t i = 0; i < firsts_.size(); ++i) {
      if (next[i] == std::string_view::npos || next[i] < from)
        next[i] = std::min(text.find(firsts_[i].byte, from), text.size());
      nearest = std::min(nearest, next[i]);
    }
    return nearest;
  }

  std::vector<First> firsts_;
  std::vector<uint16_t> first_of_;  // by byte: an index + 1 into `firsts_`, or 0; empty without tokens
};

}  // namespace mt_scaffold
