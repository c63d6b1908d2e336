// Finds where words start in the next bytes of a text, all at once: bit i of a mask stands for byte i.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "text/characters.hpp"
#include "text/instructions.hpp"

namespace mt_scaffold {

enum class PublishedPattern { kGpt2, kCl100k, kO200k };

#if defined(__SSE2__)

inline constexpr size_t kChunk = 64;

struct WordStarts {
  uint64_t starts;  // without bit 0, where a word is known to start
  bool complete;    // whether these are all starts up to the end of the document
  bool letters;     // whether these bytes are all letters, of a word that may be cut as if it began at any of them
};

namespace chunk {

inline uint64_t up_to(size_t i) { return ~uint64_t{0} >> (63 - i); }  // bits 0 to i
inline uint64_t below(size_t i) { return (uint64_t{1} << i) - 1; }    // bits 0 to i - 1
inline uint64_t after(uint64_t mask) { return mask << 1; }            // the bytes after those of `mask`
inline uint64_t before(uint64_t mask) { return mask >> 1; }
inline size_t first(uint64_t mask) { return static_cast<size_t>(std::countr_zero(mask)); }
// The first byte of the run in `mask` that byte `i` is in.
inline size_t run_start(uint64_t mask, size_t i) {
  return 64 - static_cast<size_t>(std::countl_zero(~mask & below(i)));
}

// Writes pointers to `starts`, where the words before them end, and returns their number. What it writes after them, up
// to kChunk pointers in all, has no meaning.
__attribute__((always_inline)) inline size_t write_each(const char* p, uint64_t starts, const char** ends) {
  constexpr size_t kAtOnce = 8;  // so that few branches depend on their number
  const auto count = static_cast<size_t>(std::popcount(starts));
  for (size_t written = 0; starts != 0; written += kAtOnce) {
    for (size_t i = 0; i < kAtOnce; ++i, starts &= starts - 1) {
      ends[written + i] = p + std::countr_zero(starts);
      asm("" : "+r"(starts));  // keeps compilers from vectorising this, which is slower
    }
  }
  return count;
}

// The bytes of the characters above ASCII by class, and those that are not the first of their character.
struct WideClasses {
  uint64_t of[8], inner;
};

// `wide`: the bytes above ASCII. `caseless`: all letters may get the same class.
template <bool caseless, typename Bytes>
__attribute__((always_inline)) inline void classify_wide(const char* p, const char* end, uint64_t wide,
                                                         WideClasses& classes) {
  if constexpr (caseless) {
    // U+00C0 to U+027F and U+0400 to U+047F: all are letters except the signs of multiplication and division.
    const Bytes bytes(p);
    const uint64_t leads = bytes.in_range('\xC3', '\xC9') | bytes.in_range('\xD0', '\xD1');
    const uint64_t signs = after(bytes.equal('\xC3')) & (bytes.equal('\x97') | bytes.equal('\xB7'));
    const uint64_t seconds = after(leads) & bytes.in_range('\x80', '\xBF') & wide & ~signs;
    classes.of[kLower] = seconds | before(seconds);
    classes.inner = seconds;
    wide &= ~classes.of[kLower];
  }
  {
    // U+4E00 to U+9FBF, which are all letters without case.
    const Bytes bytes(p);
    const uint64_t seconds = (after(bytes.equal('\xE4')) & bytes.in_range('\xB8', '\xBF')) |
                             (after(bytes.in_range('\xE5', '\xE8')) & bytes.in_range('\x80', '\xBF')) |
                             (after(bytes.equal('\xE9')) & bytes.in_range('\x80', '\xBE'));
    const uint64_t thirds = after(seconds) & bytes.in_range('\x80', '\xBF') & wide;
    classes.of[kCaseless] = thirds | before(thirds) | before(before(thirds));
    classes.inner |= thirds | before(thirds);
    wide &= ~classes.of[kCaseless];
  }
  while (wide != 0) {
    const size_t at = first(wide);
    const WideCharacter c = wide_character(p + at, end);
    const uint64_t own = below(c.length) << at;
    classes.of[c.character_class] |= own;
    classes.inner |= own & (own - (uint64_t{1} << at));
    wide &= ~own;
  }
}

// The next 64 bytes. in_range(), equal() and wide() are masks of those in a range, equal to a byte, and above ASCII.
struct Avx2 {
  MT_SCAFFOLD_AVX2 explicit Avx2(const char* p)
      : low(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
        high(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))) {}
  MT_SCAFFOLD_AVX2 uint64_t in_range(char from, char to) const {
    const __m256i first = _mm256_set1_epi8(from), span = _mm256_set1_epi8(static_cast<char>(to - from));
    const __m256i a = _mm256_sub_epi8(low, first), b = _mm256_sub_epi8(high, first);
    return mask(_mm256_cmpeq_epi8(_mm256_min_epu8(a, span), a), _mm256_cmpeq_epi8(_mm256_min_epu8(b, span), b));
  }
  MT_SCAFFOLD_AVX2 uint64_t equal(char c) const {
    const __m256i wanted = _mm256_set1_epi8(c);
    return mask(_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted));
  }
  MT_SCAFFOLD_AVX2 uint64_t wide() const { return mask(low, high); }
  template <bool caseless>
  MT_SCAFFOLD_AVX2 [[gnu::noinline]] static void classify(const char* p, const char* end, uint64_t wide,
                                                          WideClasses& classes) {
    classify_wide<caseless, Avx2>(p, end, wide, classes);
  }
  MT_SCAFFOLD_AVX2 static size_t write_ends(const char* p, uint64_t starts, const char** ends) {
    return write_each(p, starts, ends);
  }

 private:
  MT_SCAFFOLD_AVX2 static uint64_t mask(__m256i a, __m256i b) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(a)) |
           static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(b))) << 32;
  }

  __m256i low, high;
};

alignas(64) inline constexpr auto kPositions = [] {
  std::array<uint8_t, kChunk> positions{};
  for (size_t i = 0; i < kChunk; ++i) positions[i] = static_cast<uint8_t>(i);
  return positions;
}();

struct Avx512 {
  MT_SCAFFOLD_AVX512 explicit Avx512(const char* p) : bytes(_mm512_loadu_si512(p)) {}
  MT_SCAFFOLD_AVX512 uint64_t in_range(char from, char to) const {
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(bytes, _mm512_set1_epi8(from)),
                                  _mm512_set1_epi8(static_cast<char>(to - from)));
  }
  MT_SCAFFOLD_AVX512 uint64_t equal(char c) const { return _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(c)); }
  MT_SCAFFOLD_AVX512 uint64_t wide() const { return _mm512_movepi8_mask(bytes); }
  template <bool caseless>
  MT_SCAFFOLD_AVX512 [[gnu::noinline]] static void classify(const char* p, const char* end, uint64_t wide,
                                                            WideClasses& classes) {
    classify_wide<caseless, Avx512>(p, end, wide, classes);
  }
  MT_SCAFFOLD_AVX512 static size_t write_ends(const char* p, uint64_t starts, const char** ends) {
    const auto count = static_cast<size_t>(std::popcount(starts));
    const __m512i from = _mm512_set1_epi64(static_cast<int64_t>(reinterpret_cast<uintptr_t>(p)));
    __m512i positions = _mm512_maskz_compress_epi8(starts, _mm512_load_si512(kPositions.data()));
    for (size_t written = 0; written < count; written += 16) {
      // The forms with a mask of all ones, because GCC 12 warns of those without.
      const __m128i next = _mm512_maskz_extracti32x4_epi32(0xF, positions, 0);
      const __m128i after_next = _mm_unpackhi_epi64(next, next);
      _mm512_storeu_si512(ends + written, _mm512_add_epi64(from, _mm512_maskz_cvtepu8_epi64(0xFF, next)));
      _mm512_storeu_si512(ends + written + 8, _mm512_add_epi64(from, _mm512_maskz_cvtepu8_epi64(0xFF, after_next)));
      positions = _mm512_maskz_alignr_epi64(0xFF, positions, positions, 2);
    }
    return count;
  }

 private:
  __m512i bytes;
};

}  // namespace chunk

// The starts of words among the next kChunk bytes of a document, as far as these bytes tell; a word starts at `p`.
// Bytes of a character all have its class. The document must be readable for kPadding bytes past its end.
template <PublishedPattern kPattern, bool split_digits, typename Bytes>
__attribute__((always_inline)) inline WordStarts word_starts(const char* p, const char* end) {
  using namespace chunk;
  constexpr bool kIsGpt2 = kPattern == PublishedPattern::kGpt2;
  constexpr bool kIsO200k = kPattern == PublishedPattern::kO200k;

  const size_t size = std::min(kChunk, static_cast<size_t>(end - p));
  const uint64_t within = up_to(size - 1);
  const Bytes bytes(p);
  uint64_t upper = bytes.in_range('A', 'Z');
  uint64_t lower = bytes.in_range('a', 'z');
  uint64_t numbers = bytes.in_range('0', '9');
  const uint64_t space = bytes.equal(' ') & within;
  uint64_t whitespace = bytes.in_range('\t', '\r') | space;
  const uint64_t apostrophes = bytes.equal('\'') & within;

  // Bytes that are not the first of their character.
  uint64_t inner = 0;
  // Starts after these bytes are not known.
  uint64_t known = ~uint64_t{0};
  if (const uint64_t wide = bytes.wide() & within) {
    WideClasses classes{};
    Bytes::template classify<!kIsO200k>(p, end, wide, classes);
    const auto& of = classes.of;
    inner = classes.inner;
    upper |= of[kUpper];
    lower |= of[kLower];
    numbers |= of[kNumber];
    whitespace |= of[kSpace];
    if (of[kSpace]) known &= up_to(run_start(whitespace, first(of[kSpace])));
    if constexpr (kIsO200k) {
      // These belong to both halves of a word.
      if (const uint64_t both = of[kCaseless] | of[kMark]) known &= below(first(both));
    } else {
      lower |= of[kCaseless];
    }
    if (!kIsGpt2 && !split_digits && of[kNumber]) known &= up_to(run_start(numbers, first(of[kNumber])));
  }
  const uint64_t letters = (upper | lower) & within;
  numbers &= within;
  whitespace &= within;
  uint64_t signs = within & ~(letters | numbers | whitespace);
  // What follows a run of whitespace decides where it is cut.
  if (whitespace >> (size - 1) & 1) known &= up_to(run_start(whitespace, size - 1));

  uint64_t starts = 0;
  if constexpr (kIsGpt2) {
    starts = (letters & ~after(letters)) | (numbers & ~after(numbers)) | (signs & ~after(signs));
    starts &= ~after(space);
    starts |= whitespace & ~(after(whitespace) & before(whitespace));
  } else {
    const uint64_t line_ends = (bytes.equal('\n') | bytes.equal('\r')) & within;
    uint64_t taken_by_signs;  // line ends after signs are in their word
    if constexpr (kIsO200k) {
      const uint64_t slashes = bytes.equal('/') & within;
      const uint64_t tail = line_ends | slashes;
      taken_by_signs = tail & ~(tail + (after(signs) & line_ends));
      // The sum is right up to the second line end after a sign within a run.
      if (const uint64_t again = after(line_ends) & slashes) known &= up_to(first(again));
      signs &= ~taken_by_signs;
    } else {
      taken_by_signs = line_ends & ~(line_ends + (after(signs) & line_ends));
    }
    const uint64_t left = whitespace & ~taken_by_signs;
    const uint64_t blanks = whitespace & ~line_ends;
    starts = (left & ~after(left)) | (blanks & ~before(whitespace));
    // Blanks at the end of a run start after its last line end.
    for (uint64_t rest = blanks & after(line_ends); rest != 0; rest &= rest - 1) {
      const uint64_t beyond = ~blanks & ~below(first(rest));
      if ((beyond & -beyond & line_ends) == 0) starts |= rest & -rest;
    }
    const uint64_t sign_starts = signs & ~after(signs) & ~after(space);
    // A single sign belongs to the letters after it, as a blank does.
    uint64_t single = sign_starts;
    for (int i = 0; i < 3; ++i) single |= after(single) & inner;
    starts |= sign_starts | (letters & ~after(letters | blanks | single));
    if constexpr (kIsO200k) starts |= upper & within & after(lower);
    starts |= numbers & ~after(numbers);
    if constexpr (!split_digits) {
      const uint64_t thirds = numbers & after(numbers) & after(after(numbers));
      for (uint64_t next = numbers & ~after(numbers); (next = next << 3 & thirds) != 0;) starts |= next;
    }
  }
  if constexpr (split_digits) starts |= numbers & ~inner;

  // Contractions: separate words, or in o200k the ends of words.
  uint64_t candidates = apostrophes & (kIsO200k ? after(letters) : starts);
  for (size_t previous = 0; candidates != 0; candidates &= candidates - 1) {
    const size_t at = first(candidates);
    const size_t length = contraction<!kIsGpt2>(p + at, end);
    if (length == 0 || (kIsO200k && at == previous)) continue;
    starts &= ~(below(length) << at);
    if constexpr (!kIsO200k) starts |= uint64_t{1} << at;
    previous = at + length;
    if (previous < size) starts |= uint64_t{1} << previous;
  }
  return {starts & known & within & ~uint64_t{1}, known == ~uint64_t{0} && p + size == end,
          !kIsO200k && letters == ~uint64_t{0}};
}

#endif  // __SSE2__

}  // namespace mt_scaffold
