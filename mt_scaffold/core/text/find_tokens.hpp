// Where tokens are in a text: from the left, without overlap, and of several at one place the longest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mt_scaffold {

// Used by one thread at a time.
class TokenFinder {
 public:
  // Looks for the tokens whose number `wanted(number)` holds for. None of these is empty.
  template <typename Wanted>
  TokenFinder(const std::vector<std::string>& tokens, Wanted&& wanted) {
    for (size_t number = 0; number < tokens.size(); ++number) {
      if (!wanted(number)) continue;
      const auto first = static_cast<unsigned char>(tokens[number][0]);
      if (begin_with_[first].empty()) firsts_.push_back(first);
      begin_with_[first].emplace_back(tokens[number], number);
    }
    for (auto& tokens_of_first : begin_with_)
      std::stable_sort(tokens_of_first.begin(), tokens_of_first.end(),
                       [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  }

  // Calls `found(place, number)` for each.
  template <typename Found>
  void find(std::string_view text, Found&& found) {
    if (firsts_.empty()) return;
    next_.assign(firsts_.size() <= kFew ? firsts_.size() : 0, 0);
    for (size_t from = 0;;) {
      const size_t place = seek(text, from);
      if (place >= text.size()) return;
      from = place + 1;
      for (const auto& [token, number] : begin_with_[static_cast<unsigned char>(text[place])]) {
        if (text.compare(place, token.size(), token) != 0) continue;
        found(place, number);
        from = place + token.size();
        break;
      }
    }
  }

 private:
  // Up to this many searches for one byte beat one pass over a table.
  static constexpr size_t kFew = 4;

  // The first place from `from` on where a token may begin, or the end.
  size_t seek(std::string_view text, size_t from) {
    size_t nearest = text.size();
    if (next_.empty()) {
      while (from < nearest && begin_with_[static_cast<unsigned char>(text[from])].empty()) ++from;
      return from;
    }
    for (size_t i = 0; i < next_.size(); ++i) {
      if (from == 0 || next_[i] < from) {
        const void* const at =
            from < text.size() ? std::memchr(text.data() + from, firsts_[i], text.size() - from) : nullptr;
        next_[i] = at ? static_cast<size_t>(static_cast<const char*>(at) - text.data()) : text.size();
      }
      nearest = std::min(nearest, next_[i]);
    }
    return nearest;
  }

  std::vector<unsigned char> firsts_;                            // the bytes that tokens begin with
  std::vector<std::pair<std::string, size_t>> begin_with_[256];  // the longest first, with their numbers
  std::vector<size_t> next_;                                     // where each of a few first bytes comes next
};

}  // namespace mt_scaffold
