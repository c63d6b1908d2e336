// Loads counted words for learning: all in memory, rare ones dropped on request.
#pragma once

#include <cstdint>

#include "count/counted_words.hpp"
#include "count/word_counts.hpp"
#include "io/interruption.hpp"
#include "text/alphabet.hpp"

namespace mt_scaffold {

// The dropped words. At any time of learning, the count of a pair is at most `pair_error` too low: each occurrence of a
// pair in a dropped word has two neighbouring base symbols in its middle, and this is the highest count of any such two
// in dropped words.
struct Dropped {
  uint64_t types = 0, occurrences = 0, pair_error = 0;
};

struct Loading {
  uint64_t min_count = 1;
  uint64_t max_bytes = 0;  // approximate limit for learning; 0: no limit
  Alphabet alphabet;
};

struct Loaded {
  WordCounts words;
  Dropped dropped;
};

// Loads counted words into memory. Throws InputError, with the remedy, if they exceed the limit.
Loaded load(CountedWords& counted, const Loading& loading, const Tick& tick);

}  // namespace mt_scaffold
