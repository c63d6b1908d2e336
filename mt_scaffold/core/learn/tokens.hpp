// The tokens of the training text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "memory/interner.hpp"

namespace mt_scaffold {

using Token = int32_t;
constexpr Token kNoToken = -1;

// kWaiting: scaffold, and waiting in the queue to return.
enum class TokenState : uint8_t { kBase, kUnmade, kNormal, kWaiting };

struct TokenInfo {
  std::string_view text;
  uint64_t prefix;  // the first 8 bytes, big-endian: they decide most comparisons
  int64_t frequency = 0;
  Token left = kNoToken, right = kNoToken;  // the pair that first made it
  TokenState state = TokenState::kUnmade;
};

class Tokens {
 public:
  Token intern(std::string_view text) {
    const Token token = texts_.intern(text);
    if (static_cast<size_t>(token) < infos_.size()) return token;
    TokenInfo info;
    info.text = texts_[token];
    info.prefix = big_endian_prefix(text);
    infos_.push_back(info);
    return token;
  }

  TokenInfo& operator[](Token token) { return infos_[static_cast<size_t>(token)]; }
  const TokenInfo& operator[](Token token) const { return infos_[static_cast<size_t>(token)]; }
  size_t size() const { return infos_.size(); }

  // Orders pairs as tuples of byte strings, which sorts UTF-8 by code points.
  int compare_pairs(Token a_left, Token a_right, Token b_left, Token b_right) const {
    const int by_left = compare(a_left, b_left);
    return by_left != 0 ? by_left : compare(a_right, b_right);
  }

 private:
  int compare(Token a, Token b) const { return a == b ? 0 : (*this)[a].text.compare((*this)[b].text); }

  static uint64_t big_endian_prefix(std::string_view text) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; ++i) prefix = prefix << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
    return prefix;
  }

  std::vector<TokenInfo> infos_;
  Interner texts_;
};

}  // namespace mt_scaffold
