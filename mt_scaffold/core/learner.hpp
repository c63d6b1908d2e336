// Learning merges: Algorithm 1 of the Scaffold-BPE paper, and original BPE.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codes.hpp"
#include "tick.hpp"
#include "word_counts.hpp"

namespace mt_scaffold {

enum class Algorithm { kBpe, kScaffold };

struct LearnOptions {
  Algorithm algorithm = Algorithm::kScaffold;
  uint64_t symbols = 10000;   // merges (BPE) or normal merged tokens (Scaffold-BPE)
  int64_t min_frequency = 2;  // at least 1
};

struct LearnResult {
  std::vector<Merge> merges;
  size_t scaffold = 0;     // tokens that are scaffold at the end
  uint64_t restored = 0;   // times that a scaffold token became normal again
  bool exhausted = false;  // stopped early: no pair reached min_frequency
};

using OnMerge = std::function<void(uint64_t index, const std::string& left, const std::string& right, int64_t count)>;

// Takes `words` by value to free them as soon as they are laid out as text. `on_merge` may be empty.
LearnResult learn(WordCounts words, const LearnOptions& options, const OnMerge& on_merge, const Tick& tick);

}  // namespace mt_scaffold
