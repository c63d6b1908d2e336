// Learning merges of parity-aware BPE (Foroutan et al. 2025), from a text in each of several languages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "codes/codes.hpp"
#include "count/word_counts.hpp"
#include "io/tick.hpp"
#include "text/alphabet.hpp"

namespace mt_scaffold {

struct ParityOptions {
  Alphabet alphabet = {};
  uint64_t symbols = 10000;    // merges
  int64_t min_frequency = 2;   // at least 1
  uint64_t global_merges = 0;  // the first merges: of the most frequent pair of all languages together
  // A language chosen more than `most_chosen` times in the last `window` choices is passed over; 0: no window.
  // `most_chosen` must be at least window / languages, so that one is left.
  uint64_t window = 0;
  uint64_t most_chosen = 0;
};

struct ParityResult {
  std::vector<Merge> merges;
  bool exhausted = false;          // stopped early: no pair of the chosen language reached min_frequency
  bool limited = false;            // passed over a pair whose token would be too long
  std::optional<size_t> language;  // the exhausted one; none if all together were
};

// Its strings live until the callback returns.
struct ParityStep {
  std::string_view left, right;
  int64_t frequency = 0;           // of the pair in the chosen language, or in all together
  std::optional<size_t> language;  // the chosen one; none for a global merge
  const std::vector<int64_t>&
      lengths;  // the tokens of each language's text that parity is measured on, before the merge
};

using OnParityStep = std::function<void(const ParityStep&)>;

// `training`: the words of each language. `development`: those of parallel texts, on which parity is measured; empty to
// measure it on the training texts. `on_step` may be empty.
ParityResult learn_parity(std::vector<WordCounts> training, std::vector<WordCounts> development,
                          const ParityOptions& options, const OnParityStep& on_step, const Tick& tick);

}  // namespace mt_scaffold
