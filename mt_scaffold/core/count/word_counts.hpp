// The words of a text with their counts, in order of first occurrence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "count/word_counter.hpp"
#include "io/interruption.hpp"
#include "text/alphabet.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

class BlockReader;

struct BaseSymbols {
  size_t internal = 0, final = 0;
};

// Partitioned by hash, so that several threads can merge their counts at once.
class WordCounts {
 public:
  static constexpr size_t kParts = 64;

  static size_t part_of(uint64_t hash) { return hash >> 58; }

  // Lines (or whole inputs) with at least one word; 0 unless a text was counted.
  uint64_t lines = 0;

  WordCounter& part(size_t index) { return parts_[index]; }
  bool add(const HashedWord& word, uint64_t count, uint64_t position, bool any_bytes = false) {
    return parts_[part_of(word.hash)].add(word, count, position, any_bytes);
  }
  void merge(const WordCounts& other);

  template <typename OnEntry>
  void for_each(OnEntry&& on_entry) const {
    for (const WordCounter& part : parts_) part.for_each(on_entry);
  }

  // The number of word types.
  size_t size() const;
  // The number of words.
  uint64_t total() const;
  // The UTF-8 bytes of all words.
  uint64_t word_bytes() const;
  // The distinct base symbols, without the end-of-word marker and with it. Without markers, all bytes count.
  BaseSymbols base_symbols(Alphabet alphabet) const;
  // The memory of the tables.
  uint64_t bytes() const;
  // The entries by first occurrence.
  std::vector<WordCount> in_order() const;

 private:
  std::vector<WordCounter> parts_ = std::vector<WordCounter>(kParts);
};

// Reads lines of a word and its count (subword-nmt's --dict-input).
WordCounts read_word_counts(BlockReader& reader, bool any_bytes, const Tick& tick);

// Lines of a word and its count, the most frequent first, ties by first occurrence.
std::string format_vocabulary(const WordCounts& counts);

}  // namespace mt_scaffold
