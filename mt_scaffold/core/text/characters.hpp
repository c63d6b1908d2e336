// The characters of a text by the classes that pre-tokenisers distinguish; the text may be any bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "text/text.hpp"
#include "text/unicode_classes.hpp"

namespace mt_scaffold {

constexpr unsigned bit(CharacterClass c) { return 1u << c; }

constexpr unsigned kWhitespace = bit(kSpace) | bit(kLineEnd);
constexpr unsigned kLetter = bit(kUpper) | bit(kLower) | bit(kCaseless);
constexpr unsigned kSign = bit(kOther) | bit(kMark);  // [^\s\p{L}\p{N}]
// The two halves of a word in o200k.
constexpr unsigned kBig = bit(kUpper) | bit(kCaseless) | bit(kMark);
constexpr unsigned kSmall = bit(kLower) | bit(kCaseless) | bit(kMark);

constexpr auto kAsciiBits = [] {
  std::array<uint8_t, 128> bits{};
  for (uint32_t c = 0; c < 128; ++c) bits[c] = static_cast<uint8_t>(bit(class_of(c)));
  return bits;
}();

struct Character {
  unsigned bits;  // of its class; 0 at the end of the document
  size_t length;

  bool is(unsigned classes) const { return (bits & classes) != 0; }
};

struct WideCharacter {
  CharacterClass character_class;
  size_t length;
};

inline WideCharacter wide_character(const char* p, const char* end) {
  uint32_t code_point;
  const size_t length =
      decode_code_point(reinterpret_cast<const unsigned char*>(p), static_cast<size_t>(end - p), code_point);
  if (length == 0) return {kOther, 1};
  return {class_of(code_point), length};
}

inline Character character(const char* p, const char* end) {
  if (p >= end) return {0, 0};
  const auto lead = static_cast<unsigned char>(*p);
  if (lead < 0x80) return {kAsciiBits[lead], 1};
  const WideCharacter wide = wide_character(p, end);
  return {bit(wide.character_class), wide.length};
}

// The end of the run of characters of these classes that starts at `p`.
template <unsigned kClasses>
inline const char* skip(const char* p, const char* end) {
  for (Character c = character(p, end); c.is(kClasses); c = character(p, end)) p += c.length;
  return p;
}

inline char lower(char c) { return static_cast<char>(c | 0x20); }

// The length of an English contraction at `p`, such as 's, or 0. With `any_case`, U+017F is an s too.
template <bool any_case>
inline size_t contraction(const char* p, const char* end) {
  const auto available = end - p;
  if (available < 2 || *p != '\'') return 0;
  const char first = any_case ? lower(p[1]) : p[1];
  if (first == 's' || first == 'd' || first == 'm' || first == 't') return 2;
  if (available < 3) return 0;
  const char second = any_case ? lower(p[2]) : p[2];
  if ((first == 'l' && second == 'l') || ((first == 'v' || first == 'r') && second == 'e')) return 3;
  if (any_case && p[1] == '\xC5' && p[2] == '\xBF') return 3;
  return 0;
}

}  // namespace mt_scaffold
