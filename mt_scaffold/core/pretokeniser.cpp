#include "pretokeniser.hpp"

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "text.hpp"
#include "unicode_classes.hpp"

namespace mt_scaffold {

namespace {

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

Character wide_character(const char* p, const char* end) {
  uint32_t code_point;
  const size_t length =
      decode_code_point(reinterpret_cast<const unsigned char*>(p), static_cast<size_t>(end - p), code_point);
  if (length == 0) return {bit(kOther), 1};
  return {bit(class_of(code_point)), length};
}

inline Character character(const char* p, const char* end) {
  if (p >= end) return {0, 0};
  const auto lead = static_cast<unsigned char>(*p);
  if (lead < 0x80) return {kAsciiBits[lead], 1};
  return wide_character(p, end);
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

struct WhitespaceRun {
  const char* end;
  const char* last;             // its last character
  const char* after_line_ends;  // after its last CR or LF; null without one
};

inline WhitespaceRun whitespace_run(const char* p, const char* end) {
  WhitespaceRun run{p, p, nullptr};
  for (Character c = character(p, end); c.is(kWhitespace); c = character(p, end)) {
    run.last = p;
    p += c.length;
    if (c.is(bit(kLineEnd))) run.after_line_ends = p;
  }
  run.end = p;
  return run;
}

// \s+(?!\S)|\s
inline const char* without_last(const WhitespaceRun& run, const char* begin, const char* end) {
  return run.end == end || run.last == begin ? run.end : run.last;
}

inline const char* up_to_three_numbers(const char* p, const char* end) {
  for (int i = 0; i < 3; ++i) {
    const Character c = character(p, end);
    if (!c.is(bit(kNumber))) break;
    p += c.length;
  }
  return p;
}

// Each matcher returns the end of the match at `p`; it is the first alternative of its pattern that matches there.

// '(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s
struct Gpt2 {
  static const char* match(const char* p, const char* end) {
    if (const size_t length = contraction<false>(p, end)) return p + length;
    const char* const start = p + (*p == ' ');
    const Character c = character(start, end);
    if (c.is(kLetter)) return skip<kLetter>(start + c.length, end);
    if (c.is(bit(kNumber))) return skip<bit(kNumber)>(start + c.length, end);
    if (c.is(kSign)) return skip<kSign>(start + c.length, end);
    return without_last(whitespace_run(p, end), p, end);
  }
};

// '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s
struct Cl100k {
  static const char* match(const char* p, const char* end) {
    if (const size_t length = contraction<true>(p, end)) return p + length;
    const Character first = character(p, end);
    if (first.is(kLetter)) return skip<kLetter>(p + first.length, end);
    if (first.is(bit(kNumber))) return up_to_three_numbers(p, end);
    const char* const second = p + first.length;
    const Character next = character(second, end);
    if (!first.is(bit(kLineEnd)) && next.is(kLetter)) return skip<kLetter>(second + next.length, end);
    if (first.is(kSign) || (*p == ' ' && next.is(kSign))) return skip<bit(kLineEnd)>(skip<kSign>(second, end), end);
    const WhitespaceRun run = whitespace_run(p, end);
    if (run.end != end && run.after_line_ends) return run.after_line_ends;
    return without_last(run, p, end);
  }
};

// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
// \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
struct O200k {
  static const char* match(const char* p, const char* end) {
    const Character first = character(p, end);
    if (first.is(kLetter | bit(kMark))) return letters(p, end);
    if (first.is(bit(kNumber))) return up_to_three_numbers(p, end);
    const char* const second = p + first.length;
    const Character next = character(second, end);
    if (!first.is(bit(kLineEnd)) && next.is(kLetter | bit(kMark))) return letters(second, end);
    if (first.is(kSign) || (*p == ' ' && next.is(kSign))) {
      p = skip<kSign>(second, end);
      while (p < end && (*p == '\r' || *p == '\n' || *p == '/')) ++p;
      return p;
    }
    const WhitespaceRun run = whitespace_run(p, end);
    return run.after_line_ends ? run.after_line_ends : without_last(run, p, end);
  }

 private:
  static const char* letters(const char* p, const char* end) {
    // The first half is taken greedily; if no lower-case letter follows, it is given back up to its last character that
    // can stand in the second half as well. Only where there is none does the second alternative match.
    const char* after_caseless = nullptr;
    Character c = character(p, end);
    for (; c.is(kBig); c = character(p, end)) {
      p += c.length;
      if (c.is(kSmall)) after_caseless = p;
    }
    if (c.is(bit(kLower))) {
      p = skip<kSmall>(p + c.length, end);
    } else if (after_caseless) {
      p = after_caseless;
    }
    return p + contraction<true>(p, end);
  }
};

template <typename Pattern, bool split_digits, size_t kBatch>
size_t cut(const char* p, const char* end, const char** ends) {
  size_t count = 0;
  // Room for a space and one number, or the space before the numbers.
  while (p < end && count + 1 < kBatch) {
    if constexpr (split_digits) {
      const bool space = *p == ' ';
      const Character c = character(p + space, end);
      if (c.is(bit(kNumber))) {
        if (space) ends[count++] = p + 1;
        p += space + c.length;
        ends[count++] = p;
        continue;
      }
    }
    p = Pattern::match(p, end);
    ends[count++] = p;
  }
  return count;
}

}  // namespace

Pretokeniser::Pretokeniser(std::string_view name, bool split_digits) : split_digits_(split_digits) {
  if (name == "gpt2") {
    cut_ = split_digits ? cut<Gpt2, true, kBatch> : cut<Gpt2, false, kBatch>;
  } else if (name == "cl100k") {
    cut_ = split_digits ? cut<Cl100k, true, kBatch> : cut<Cl100k, false, kBatch>;
  } else if (name == "o200k") {
    cut_ = split_digits ? cut<O200k, true, kBatch> : cut<O200k, false, kBatch>;
  } else {
    throw std::invalid_argument("no pre-tokeniser of the core has the name '" + std::string(name) + "'");
  }
}

// A match with a letter or number at its end goes on with letters, marks, numbers or an apostrophe only, in all three
// patterns, and none looks back. So a word begins wherever another character follows a letter or number.
size_t Pretokeniser::last_certain_cut(std::string_view text, size_t searched) const {
  constexpr size_t kLongest = 4;
  if (split_ || text.size() <= kLongest) return 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* const first = begin + (searched > kLongest ? searched - kLongest : 1);
  // The characters on both sides must be complete.
  for (const char* p = end - kLongest; p >= first; --p) {
    if ((*p & 0xC0) == 0x80 || *p == '\'' || !character(p, end).is(kWhitespace | bit(kOther))) continue;
    const char* before = p - 1;
    while (before > begin && (*before & 0xC0) == 0x80) --before;
    const Character c = character(before, p);
    if (c.is(kLetter | bit(kNumber)) && before + c.length == p) return static_cast<size_t>(p - begin);
  }
  return 0;
}

std::vector<size_t> Pretokeniser::pattern_lengths(const char* begin, const char* end) const {
  std::vector<size_t> lengths;
  const char* p = begin;
  for (const size_t offset : split_({begin, static_cast<size_t>(end - begin)})) {
    const char* const stop = begin + offset;
    const char* from = p;
    while (split_digits_ && p < stop) {
      const Character c = character(p, stop);
      if (c.is(bit(kNumber))) {
        if (p > from) lengths.push_back(static_cast<size_t>(p - from));
        lengths.push_back(c.length);
        from = p + c.length;
      }
      p += c.length;
    }
    if (from < stop) lengths.push_back(static_cast<size_t>(stop - from));
    p = stop;
  }
  return lengths;
}

}  // namespace mt_scaffold
