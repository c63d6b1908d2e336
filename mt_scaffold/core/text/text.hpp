// Splitting a line of UTF-8 into words, and a word into code points.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "text/hashing.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace mt_scaffold {

static_assert(std::endian::native == std::endian::little, "words are hashed as little-endian integers");

inline constexpr std::string_view kEndOfWord = "</w>";
inline constexpr uint32_t kCodePoints = 0x110000;

// Buffers are readable this many bytes past their end, so that words can be loaded in fixed-size chunks.
inline constexpr size_t kPadding = 64;

inline bool is_line_margin(char c) { return c == ' ' || c == '\r'; }

// The length of the well-formed UTF-8 sequence at `p`, or 0 if there is none; its value goes into `code_point`.
inline size_t decode_code_point(const unsigned char* p, size_t available, uint32_t& code_point) {
  const uint32_t lead = p[0];
  if (lead < 0x80) {
    code_point = lead;
    return 1;
  }
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || available < length) return 0;
  code_point = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((p[i] & 0xC0) != 0x80) return 0;
    code_point = code_point << 6 | (p[i] & 0x3Fu);
  }
  // Reject overlong forms, surrogates and values past U+10FFFF.
  if (length == 3 && (code_point < 0x800 || (code_point >= 0xD800 && code_point < 0xE000))) return 0;
  if (length == 4 && (code_point < 0x10000 || code_point > 0x10FFFF)) return 0;
  return length;
}

// Writes a code point in UTF-8 and returns its end.
inline char* write_code_point(uint32_t c, char* to) {
  if (c < 0x80) {
    *to++ = static_cast<char>(c);
    return to;
  }
  if (c < 0x800) {
    *to++ = static_cast<char>(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      *to++ = static_cast<char>(0xE0 | c >> 12);
    } else {
      *to++ = static_cast<char>(0xF0 | c >> 18);
      *to++ = static_cast<char>(0x80 | (c >> 12 & 0x3F));
    }
    *to++ = static_cast<char>(0x80 | (c >> 6 & 0x3F));
  }
  *to++ = static_cast<char>(0x80 | (c & 0x3F));
  return to;
}

inline void append_code_point(std::string& text, uint32_t c) {
  char utf8[4];
  text.append(utf8, static_cast<size_t>(write_code_point(c, utf8) - utf8));
}

// The position of the first byte that is not UTF-8, or the length of `word` if it is valid.
inline size_t first_invalid_byte(std::string_view word) {
  const auto* p = reinterpret_cast<const unsigned char*>(word.data());
  uint32_t ignored;
  for (size_t i = 0; i < word.size();) {
    const size_t length = decode_code_point(p + i, word.size() - i, ignored);
    if (length == 0) return i;
    i += length;
  }
  return word.size();
}

// Calls `on_code_point(uint32_t code_point, bool last)` for each code point of a valid word.
template <typename OnCodePoint>
inline void for_each_code_point(std::string_view word, OnCodePoint&& on_code_point) {
  const auto* p = reinterpret_cast<const unsigned char*>(word.data());
  for (size_t i = 0; i < word.size();) {
    uint32_t code_point = 0;
    i += decode_code_point(p + i, word.size() - i, code_point);
    on_code_point(code_point, i == word.size());
  }
}

// The end of the word that starts at `p`: the next space, or `end`. Reads up to 15 bytes past `end`.
inline const char* word_end(const char* p, const char* end) {
#if defined(__SSE2__)
  const __m128i space = _mm_set1_epi8(' ');
  for (; p < end; p += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, space)));
    if (found) {
      const char* at = p + std::countr_zero(found);
      return at < end ? at : end;
    }
  }
  return end;
#else
  while (p < end && *p != ' ') ++p;
  return p;
#endif
}

// The lengths of the leading and trailing CRs and spaces of a line without its LF.
struct Margins {
  size_t leading, trailing;
};

inline Margins line_margins(const char* begin, const char* end) {
  const char* first = begin;
  while (first < end && is_line_margin(*first)) ++first;
  const char* last = end;
  while (last > first && is_line_margin(last[-1])) --last;
  return {static_cast<size_t>(first - begin), static_cast<size_t>(end - last)};
}

// Calls `on_word(std::string_view)` for each word.
template <typename OnWord>
inline void for_each_word(const char* p, const char* end, OnWord&& on_word) {
  while (p < end) {
    const char* stop = word_end(p, end);
    if (stop != p) on_word(std::string_view(p, static_cast<size_t>(stop - p)));
    p = stop + 1;
  }
}

}  // namespace mt_scaffold
