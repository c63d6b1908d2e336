// A text as Python holds it: UTF-8, or code points of 1, 2 or 4 bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "text/instructions.hpp"
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

// Copies the units at `from`, up to 16, to bytes at `to` as far as they are ASCII, and returns their number.
template <typename Unit>
inline size_t copy_ascii(const Unit* from, char* to) {
#if defined(__SSE2__)
  const auto load = [from](size_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(reinterpret_cast<const char*>(from) + 16 * i));
  };
  __m128i bytes;
  unsigned wide;
  if constexpr (sizeof(Unit) == 1) {
    bytes = load(0);
    wide = static_cast<unsigned>(_mm_movemask_epi8(bytes));
  } else if constexpr (sizeof(Unit) == 2) {
    const __m128i a = load(0), b = load(1), high = _mm_set1_epi16(static_cast<int16_t>(0xFF80)),
                  zero = _mm_setzero_si128();
    const __m128i ascii =
        _mm_packs_epi16(_mm_cmpeq_epi16(_mm_and_si128(a, high), zero), _mm_cmpeq_epi16(_mm_and_si128(b, high), zero));
    bytes = _mm_packus_epi16(a, b);
    wide = ~static_cast<unsigned>(_mm_movemask_epi8(ascii)) & 0xFFFF;
  } else {
    const __m128i a = load(0), b = load(1), c = load(2), d = load(3), high = _mm_set1_epi32(~0x7F),
                  zero = _mm_setzero_si128();
    const auto is_ascii = [&](__m128i units) { return _mm_cmpeq_epi32(_mm_and_si128(units, high), zero); };
    const __m128i ascii =
        _mm_packs_epi16(_mm_packs_epi32(is_ascii(a), is_ascii(b)), _mm_packs_epi32(is_ascii(c), is_ascii(d)));
    bytes = _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
    wide = ~static_cast<unsigned>(_mm_movemask_epi8(ascii)) & 0xFFFF;
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  return wide == 0 ? 16 : static_cast<size_t>(std::countr_zero(wide));
#else
  size_t i = 0;
  for (; i < 16 && from[i] < 0x80; ++i) to[i] = static_cast<char>(from[i]);
  return i;
#endif
}

// convert() advances `from` and `to` past as many of the next kUnits units as it can convert; true if all.
struct Ascii {
  static constexpr ptrdiff_t kUnits = 16, kFewest = 16;
  template <typename Unit>
  static bool convert(const Unit*& from, const Unit*, char*& to) {
    const size_t count = copy_ascii(from, to);
    from += count;
    to += count;
    return count == kUnits;
  }
};

#if defined(__SSE2__)
struct Avx512 {
  static constexpr ptrdiff_t kUnits = 32, kFewest = 1;
  // Units below U+0800 become one byte or two.
  template <typename Unit>
  MT_SCAFFOLD_AVX512 static bool convert(const Unit*& from, const Unit* end, char*& to) {
    const auto count = static_cast<unsigned>(std::min(end - from, kUnits));
    const __mmask32 within = _bzhi_u32(~0u, count);
    __m512i units;
    __mmask32 wide = 0;
    if constexpr (sizeof(Unit) == 1) {
      units = _mm512_maskz_cvtepu8_epi16(~0u, _mm256_maskz_loadu_epi8(within, from));
    } else {
      units = _mm512_maskz_loadu_epi16(within, from);
      wide = _mm512_cmpge_epu16_mask(units, _mm512_set1_epi16(0x800));
    }
    const __mmask32 first = wide != 0 ? _bzhi_u32(~0u, static_cast<unsigned>(std::countr_zero(wide))) : within;
    const __mmask32 second = first & _mm512_cmpge_epu16_mask(units, _mm512_set1_epi16(0x80));
    const __m512i low = _mm512_and_si512(units, _mm512_set1_epi16(0x3F));
    const __m512i pairs = _mm512_or_si512(_mm512_or_si512(_mm512_srli_epi16(units, 6), _mm512_slli_epi16(low, 8)),
                                          _mm512_set1_epi16(static_cast<int16_t>(0x80C0)));
    const uint64_t kept = _pdep_u64(first, 0x5555555555555555) | _pdep_u64(second, 0xAAAAAAAAAAAAAAAA);
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(kept, _mm512_mask_mov_epi16(units, second, pairs)));
    to += std::popcount(kept);
    if (first == ~0u) {
      from += kUnits;  // a constant, so that the next block need not wait for this one
      return true;
    }
    from += std::popcount(first);
    return wide == 0;
  }
};
#endif

// Writes UTF-8 and returns its end, or null at a lone surrogate that does not stand for a byte.
template <typename Block, typename Unit>
__attribute__((always_inline)) inline char* to_utf8(const Unit* from, size_t size, char* to) {
  const Unit* const end = from + size;
  while (from < end) {
    if (end - from >= Block::kFewest && Block::convert(from, end, to)) continue;
    do {
      const uint32_t c = *from++;
      if (c < 0x80) {
        *to++ = static_cast<char>(c);
        if (end - from >= Block::kUnits) break;
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

#if defined(__SSE2__)
template <typename Unit>
MT_SCAFFOLD_AVX512 inline char* to_utf8_avx512(const Unit* from, size_t size, char* to) {
  return to_utf8<Avx512>(from, size, to);
}
#endif

}  // namespace transcoding

// Writes a text as UTF-8 to `to`, which has widest() bytes per unit and kPadding more. Returns its end, or null if the
// text contains a lone surrogate that does not stand for a byte.
inline char* to_utf8(const GivenText& text, char* to) {
  const auto as = [&](auto unit) {
    const auto* const from = reinterpret_cast<const decltype(unit)*>(text.data);
#if defined(__SSE2__)
    if constexpr (sizeof unit < 4)
      if (kUseAvx512) return transcoding::to_utf8_avx512(from, text.size, to);
#endif
    return transcoding::to_utf8<transcoding::Ascii>(from, text.size, to);
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
