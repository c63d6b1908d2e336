// Learning merges: Algorithm 1 of the Scaffold-BPE paper, original BPE, and PickyBPE.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "codes/codes.hpp"
#include "count/word_counts.hpp"
#include "io/interruption.hpp"
#include "text/alphabet.hpp"

namespace mt_scaffold {

enum class Algorithm { kBpe, kScaffold, kPicky };

struct LearnOptions {
  Algorithm algorithm = Algorithm::kScaffold;
  Alphabet alphabet = {};
  uint64_t symbols = 10000;   // merges (BPE), normal merged tokens (Scaffold-BPE) or unremoved ones (PickyBPE)
  int64_t min_frequency = 2;  // at least 1
  double threshold = 0.9;     // of PickyBPE, above 0
  // Merges to begin with, and the splits between them; with BPE they count among `symbols`, otherwise their tokens are
  // neither marked nor removed.
  std::vector<Merge> given = {};
  std::vector<Split> given_splits = {};
};

struct LearnResult {
  std::vector<Merge> merges;
  std::vector<Split> splits;  // of PickyBPE
  uint64_t restored = 0;      // times that a scaffold token became normal again or a removed one was merged again
  bool exhausted = false;     // stopped early: no pair reached min_frequency
  bool limited = false;       // passed over a pair whose token would be too long
};

struct CountedToken {
  std::string_view text;
  int64_t frequency;
};

// One iteration of Algorithm 1 or of PickyBPE. Its strings live as long as the learner.
struct Step {
  std::string_view left, right;        // the merged pair; empty if a scaffold token returned instead
  int64_t frequency = 0;               // of the pair, by which it was chosen
  std::optional<int64_t> head;         // frequency of the queue's head after the merge; only with Scaffold-BPE
  std::optional<int64_t> left_marked;  // frequency of `left` after the merge that made it scaffold, or removed it
  std::optional<int64_t> right_marked;
  std::optional<CountedToken> returned;  // the scaffold or removed token that became normal again
};

using OnStep = std::function<void(const Step&)>;

// Takes `words` by value to free them as soon as they are laid out as text. `on_step` may be empty.
LearnResult learn(WordCounts words, const LearnOptions& options, const OnStep& on_step, const Tick& tick);

}  // namespace mt_scaffold
