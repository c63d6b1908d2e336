// Words that are a single token, with their ids: they need no merging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "memory/huge_pages.hpp"
#include "segment/word_cache.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

// Most new words of a text are such if the codes are large: English is encoded 1.5 times as fast with this table at
// 200,000 tokens, 1.2 times at 32,000. Words of up to WordCache::kLongest bytes, in cache lines of three. A Bloom
// filter, which stays in the processor's cache, spares most other words the access to a line.
class WholeWords {
 public:
  struct Word {
    WordCache::Key key;
    uint64_t hash;
    int32_t id;

    Word(const HashedWord& word, int32_t id) : key(key_of(word)), hash(word.hash), id(id) {}
  };

  explicit WholeWords(const std::vector<Word>& words)
      : filter_(words.size() / 4 + 1), lines_(words.size() / kUsed + 1) {
    for (const Word& word : words) {
      filter_[place(word.hash, filter_.size())] |= bits(word.hash);
      Line* line = &lines_[place(word.hash, lines_.size())];
      while (line->keys[kWords - 1].high != 0) line = const_cast<Line*>(next(line));
      size_t i = 0;
      while (line->keys[i].high != 0) ++i;
      line->keys[i] = word.key;
      line->ids[i] = word.id;
    }
  }

  // To be called ahead of find().
  void prefetch(uint64_t hash) const {
    if (may_hold(hash)) __builtin_prefetch(&lines_[place(hash, lines_.size())]);
  }

  // The id of a word, or `none` if it is not here.
  int32_t find(const HashedWord& word, int32_t none) const {
    if (!may_hold(word.hash)) return none;
    const WordCache::Key wanted = key_of(word);
    for (const Line* line = &lines_[place(word.hash, lines_.size())];; line = next(line)) {
      for (size_t i = 0; i < kWords; ++i)
        if (line->keys[i].low == wanted.low && line->keys[i].high == wanted.high) return line->ids[i];
      if (line->keys[kWords - 1].high == 0) return none;
    }
  }

 private:
  // False for most words that are not here.
  bool may_hold(uint64_t hash) const { return (~filter_[place(hash, filter_.size())] & bits(hash)) == 0; }

  static constexpr size_t kWords = 3;
  static constexpr size_t kUsed = 2;  // words per line, on average: few lines are full
  struct alignas(64) Line {
    WordCache::Key keys[kWords];  // zeros if empty
    int32_t ids[kWords];
  };

  static WordCache::Key key_of(const HashedWord& word) { return WordCache::key(word.text.data(), word.text.size()); }
  static size_t place(uint64_t hash, size_t places) { return static_cast<size_t>((hash >> 32) * places >> 32); }
  static uint64_t bits(uint64_t hash) {
    return uint64_t{1} << (hash & 63) | uint64_t{1} << (hash >> 6 & 63) | uint64_t{1} << (hash >> 12 & 63);
  }
  const Line* next(const Line* line) const { return line == &lines_.back() ? lines_.data() : line + 1; }

  HugeVector<uint64_t> filter_;
  HugeVector<Line> lines_;
};

}  // namespace mt_scaffold
