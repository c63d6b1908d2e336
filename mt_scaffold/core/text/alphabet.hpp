// The base symbols of words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/text.hpp"

namespace mt_scaffold {

// Code points with an end-of-word marker are subword-nmt's symbols, bytes with one are those of its --byte. Words from
// a pre-tokeniser need no marker: they contain the spaces, and concatenate to the text.
struct Alphabet {
  bool bytes = false;
  bool end_of_word = true;  // whether a word's last symbol carries "</w>"; without it, symbols are bytes

  uint32_t size() const { return bytes ? 256 : kCodePoints; }
};

// The number of symbols in a word.
inline uint64_t symbols_in(std::string_view word, Alphabet alphabet) {
  if (alphabet.bytes) return word.size();
  uint64_t length = 0;
  for (const char c : word) length += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return length;
}

// Calls `on_symbol(uint32_t symbol, bool marked)` for each symbol of a word, which must be valid UTF-8 unless symbols
// are bytes; `marked`: it carries the end-of-word marker.
template <typename OnSymbol>
inline void for_each_symbol(std::string_view word, Alphabet alphabet, OnSymbol&& on_symbol) {
  if (!alphabet.bytes) return for_each_code_point(word, on_symbol);
  for (size_t i = 0; i < word.size(); ++i)
    on_symbol(static_cast<uint32_t>(static_cast<unsigned char>(word[i])), alphabet.end_of_word && i + 1 == word.size());
}

inline void append_symbol(std::string& text, uint32_t symbol, Alphabet alphabet) {
  if (alphabet.bytes) {
    text += static_cast<char>(symbol);
  } else {
    append_code_point(text, symbol);
  }
}

// Sets `symbol` to the first symbol of a token and returns its size in bytes.
inline size_t first_symbol(std::string_view token, Alphabet alphabet, uint32_t& symbol) {
  const auto* p = reinterpret_cast<const unsigned char*>(token.data());
  if (!alphabet.bytes) return decode_code_point(p, token.size(), symbol);
  symbol = p[0];
  return 1;
}

inline bool is_marked(std::string_view token, Alphabet alphabet) {
  return alphabet.end_of_word && token.ends_with(kEndOfWord);
}

// Whether a token is a single symbol, possibly word-final: it has no children to demolish into.
// A merge can also make one, in a word that spells out "</w>".
inline bool is_base_symbol(std::string_view token, Alphabet alphabet) {
  uint32_t ignored;
  const size_t length = first_symbol(token, alphabet, ignored);
  return token.size() == length || (alphabet.end_of_word && token.substr(length) == kEndOfWord);
}

}  // namespace mt_scaffold
