// Streams of words with their counts, sorted by bytes, and their merge.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "count/word_counter.hpp"

namespace mt_scaffold {

class SortedWords {
 public:
  virtual ~SortedWords() = default;
  // Moves to the next word; false after the last one.
  virtual bool next() = 0;
  // Valid until the next call of next(); the word is readable for kPadding bytes past its end.
  const WordCount& entry() const { return entry_; }

 protected:
  WordCount entry_{};
};

// The first 8 bytes of a word as a number with the same order; words with equal prefixes must still be compared.
inline uint64_t sort_prefix(std::string_view word) {
  uint64_t prefix;
  std::memcpy(&prefix, word.data(), 8);
  if (word.size() < 8) prefix &= (uint64_t{1} << 8 * word.size()) - 1;
  return __builtin_bswap64(prefix);
}

// Each word of several streams once, with the sum of its counts and its first occurrence.
class MergedWords : public SortedWords {
 public:
  explicit MergedWords(std::vector<std::unique_ptr<SortedWords>> streams);
  bool next() override;

 private:
  struct Head {
    uint64_t prefix;
    SortedWords* stream;

    static bool later(const Head& a, const Head& b) {
      return a.prefix != b.prefix ? a.prefix > b.prefix : a.stream->entry().word > b.stream->entry().word;
    }
  };
  // Moves the stream at the top to its next word.
  void advance();
  // Puts a stream at its next word, if there is one.
  void push(SortedWords* stream);

  std::vector<std::unique_ptr<SortedWords>> streams_;
  std::vector<Head> heap_;  // the stream with the least word on top
  std::string word_;
};

// Words in memory, in any order, which must outlive the stream.
class SortedEntries : public SortedWords {
 public:
  // `words`: a WordCounter or WordCounts.
  template <typename Words>
  explicit SortedEntries(const Words& words) : entries_(entries_of(words)) {
    sort();
  }
  bool next() override;

  // The memory per word.
  static constexpr size_t kBytes = sizeof(WordCount) + 16;

 private:
  struct Place {
    uint64_t prefix;
    const WordCount* entry;
  };
  static_assert(sizeof(Place) == 16);
  void sort();

  const std::vector<WordCount> entries_;
  std::vector<Place> places_;
  size_t at_ = 0;
};

}  // namespace mt_scaffold
