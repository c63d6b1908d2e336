// A text as Python holds it: UTF-8, or code points of 1, 2 or 4 bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "text/text.hpp"

namespace mt_scaffold {

struct GivenText {
  enum class Kind : uint8_t { kUtf8, kLatin1, kUcs2, kUcs4 };

  GivenText(std::string_view utf8) : data(utf8.data()), size(utf8.size()), kind(Kind::kUtf8) {}
  GivenText(const void* data, size_t size, Kind kind) : data(static_cast<const char*>(data)), size(size), kind(kind) {}

  size_t unit() const { return kind == Kind::kUcs4 ? 4 : kind == Kind::kUcs2 ? 2 : 1; }
  // The most bytes of UTF-8 that a unit can become.
  size_t widest() const { return kind == Kind::kUtf8 ? 1 : kind == Kind::kLatin1 ? 2 : kind == Kind::kUcs2 ? 3 : 4; }
  GivenText part(size_t begin, size_t end) const { return {data + begin * unit(), end - begin, kind}; }

  const char* data;
  size_t size;  // in units: bytes or code points
  Kind kind;
};

namespace transcoding {

constexpr ptrdiff_t kAtOnce = 16;

// Copies the units at `from`, up to kAtOnce, to bytes at `to` as far as they are ASCII, and returns their number.
template <typename Unit>
inline size_t copy_ascii(const Unit* from, char* to) {
#if defined(__SSE2__)
  if constexpr (sizeof(Unit) <= 2) {
    const auto load = [from](size_t i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)); };
    __m128i bytes = load(0);
    auto wide = static_cast<unsigned>(_mm_movemask_epi8(bytes));
    if constexpr (sizeof(Unit) == 2) {
      const __m128i next = load(8), zero = _mm_setzero_si128();
      const auto ascii = [&](__m128i units) { return _mm_cmpeq_epi16(_mm_srli_epi16(units, 7), zero); };
      wide = ~static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(ascii(bytes), ascii(next))));
      bytes = _mm_packus_epi16(bytes, next);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    // A branch, so that the next block need not wait for this one.
    return (wide & 0xFFFF) == 0 ? kAtOnce : static_cast<size_t>(std::countr_zero(wide));
  }
#endif
  size_t i = 0;
  for (; i < kAtOnce && from[i] < 0x80; ++i) to[i] = static_cast<char>(from[i]);
  return i;
}

// Writes UTF-8 and returns its end, or null at a lone surrogate that does not stand for a byte.
template <typename Unit>
inline char* to_utf8(const Unit* from, size_t size, char* to) {
  const Unit* const end = from + size;
  while (from < end) {
    if (end - from >= kAtOnce) {
      const size_t count = copy_ascii(from, to);
      from += count;
      to += count;
      if (count == kAtOnce) continue;
    }
    do {
      const uint32_t c = *from++;
      if (c < 0x80) {
        *to++ = static_cast<char>(c);
        if (end - from >= kAtOnce) break;
        continue;
      }
      if (c >= 0xD800 && c < 0xE000) {
        // Bytes that are not UTF-8 may come as surrogates ("surrogateescape").
        if (c < 0xDC80 || c > 0xDCFF) return nullptr;
        *to++ = static_cast<char>(c);
        continue;
      }
      to = write_code_point(c, to);
    } while (from < end);
  }
  return to;
}

}  // namespace transcoding

// Writes a text as UTF-8 to `to`, which has widest() bytes per unit and kPadding more. Returns its end, or null if the
// text contains a lone surrogate that does not stand for a byte.
inline char* to_utf8(const GivenText& text, char* to) {
  const auto as = [&](auto unit) {
    const auto* const from = reinterpret_cast<const decltype(unit)*>(text.data);
    return transcoding::to_utf8(from, text.size, to);
  };
  switch (text.kind) {
    case GivenText::Kind::kUtf8:
      std::memcpy(to, text.data, text.size);
      return to + text.size;
    case GivenText::Kind::kLatin1:
      return as(uint8_t());
    case GivenText::Kind::kUcs2:
      return as(uint16_t());
    default:
      return as(uint32_t());
  }
}

}  // namespace mt_scaffold
