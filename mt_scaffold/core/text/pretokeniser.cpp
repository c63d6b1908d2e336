#include "text/pretokeniser.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

#include "text/characters.hpp"
#include "text/instructions.hpp"
#include "text/word_starts.hpp"

namespace mt_scaffold {

namespace {

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
  static constexpr auto kPattern = PublishedPattern::kGpt2;
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
  static constexpr auto kPattern = PublishedPattern::kCl100k;
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
  static constexpr auto kPattern = PublishedPattern::kO200k;
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
    // The first half is matched greedily; if no lower-case letter follows, it is given back up to its last character
    // that can also be in the second half. Only if there is none does the second alternative match.
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

// One or two words: with `split_digits`, the space before a number is a word by itself.
template <typename Pattern, bool split_digits>
inline size_t cut_word(const char*& p, const char* end, const char** ends) {
  size_t count = 0;
  if constexpr (split_digits) {
    const bool space = *p == ' ';
    const Character c = character(p + space, end);
    if (c.is(bit(kNumber))) {
      if (space) ends[count++] = p + 1;
      p += space + c.length;
      ends[count++] = p;
      return count;
    }
  }
  p = Pattern::match(p, end);
  ends[count++] = p;
  return count;
}

#if defined(__SSE2__)
template <typename Pattern, bool split_digits, size_t kBatch, typename Bytes>
__attribute__((always_inline)) inline size_t cut_chunks(const char* p, const char* end, const char** ends) {
  size_t count = 0;
  while (p < end && count + kChunk < kBatch) {
    const WordStarts found = word_starts<Pattern::kPattern, split_digits, Bytes>(p, end);
    count += Bytes::write_ends(p, found.starts, ends + count);
    if (found.complete) {
      ends[count++] = end;
      break;
    }
    if (found.starts != 0) {
      p += std::bit_width(found.starts) - 1;  // not ends[count - 1], which is known later
      continue;
    }
    if (found.letters) {
      for (p += kChunk - 1; (*p & 0xC0) == 0x80;) --p;
      continue;
    }
    // In some texts, chunks that tell nothing are frequent, so the next kChunk bytes are cut word by word.
    const char* const resume = p + kChunk;
    while (p < end && p < resume && count + 1 < kBatch) count += cut_word<Pattern, split_digits>(p, end, ends + count);
  }
  return count;
}

template <typename Pattern, bool split_digits, size_t kBatch>
MT_SCAFFOLD_AVX512 size_t cut_avx512(const char* p, const char* end, const char** ends) {
  return cut_chunks<Pattern, split_digits, kBatch, chunk::Avx512>(p, end, ends);
}

template <typename Pattern, bool split_digits, size_t kBatch>
MT_SCAFFOLD_AVX2 size_t cut_avx2(const char* p, const char* end, const char** ends) {
  return cut_chunks<Pattern, split_digits, kBatch, chunk::Avx2>(p, end, ends);
}
#endif

template <typename Pattern, bool split_digits, size_t kBatch>
size_t cut(const char* p, const char* end, const char** ends) {
  size_t count = 0;
  while (p < end && count + 1 < kBatch) count += cut_word<Pattern, split_digits>(p, end, ends + count);
  return count;
}

using Cut = size_t (*)(const char* begin, const char* end, const char** ends);

// The fastest on this processor.
template <typename Pattern, bool split_digits, size_t kBatch>
Cut fastest_cut() {
#if defined(__SSE2__)
  if (kUseAvx512) return cut_avx512<Pattern, split_digits, kBatch>;
  if (kUseAvx2) return cut_avx2<Pattern, split_digits, kBatch>;
#endif
  return cut<Pattern, split_digits, kBatch>;
}

template <typename Pattern, size_t kBatch>
Cut fastest_cut(bool split_digits) {
  return split_digits ? fastest_cut<Pattern, true, kBatch>() : fastest_cut<Pattern, false, kBatch>();
}

// metaspace,  ?[^ ]+| : a word begins with each space, as in tokenizers; metaspace-runs,  *[^ ]+| +: with each run of
// spaces, as in SentencePiece, which only merges what is in a piece and so needs no words.
template <bool runs, size_t kBatch>
size_t cut_at_spaces(const char* p, const char* end, const char** ends) {
  size_t count = 0;
  while (p < end && count < kBatch) {
    if (runs) {
      while (p < end && *p == ' ') ++p;
    } else if (*p == ' ') {
      ++p;
    }
    const void* space = p < end ? std::memchr(p, ' ', static_cast<size_t>(end - p)) : nullptr;
    p = space ? static_cast<const char*>(space) : end;
    ends[count++] = p;
  }
  return count;
}

}  // namespace

Pretokeniser::Pretokeniser(std::string_view name, bool split_digits) : split_digits_(split_digits) {
  if (name == "gpt2") {
    cut_ = fastest_cut<Gpt2, kBatch>(split_digits);
  } else if (name == "cl100k") {
    cut_ = fastest_cut<Cl100k, kBatch>(split_digits);
  } else if (name == "o200k") {
    cut_ = fastest_cut<O200k, kBatch>(split_digits);
  } else if (name == "metaspace" || name == "metaspace-runs") {
    at_spaces_ = true;
    cut_ = name == "metaspace" ? cut_at_spaces<false, kBatch> : cut_at_spaces<true, kBatch>;
    if (split_digits)
      split_ = [cut = cut_](std::string_view document) {
        std::vector<size_t> found;
        const char* ends[kBatch];
        const char *p = document.data(), *const end = p + document.size();
        while (p < end) {
          const size_t count = cut(p, end, ends);
          for (size_t i = 0; i < count; ++i) found.push_back(static_cast<size_t>(ends[i] - document.data()));
          p = ends[count - 1];
        }
        return found;
      };
  } else {
    throw std::invalid_argument("the core has no pre-tokeniser '" + std::string(name) + "'");
  }
}

// A match with a letter or number at its end continues with letters, marks, numbers or an apostrophe only, in all three
// patterns, and none looks back. So a word begins wherever another character follows a letter or number.
size_t Pretokeniser::last_certain_cut(std::string_view text, size_t searched) const {
  constexpr size_t kLongest = 4;
  if (split_ || text.size() <= kLongest) return 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (at_spaces_) {
    // Not after U+2581, which becomes a space in text encoded like SentencePiece's.
    for (const char* p = end - 1; p > begin && p >= begin + searched; --p)
      if (*p == ' ' && p[-1] != ' ' && p[-1] != '\x81') return static_cast<size_t>(p - begin);
    return 0;
  }
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
