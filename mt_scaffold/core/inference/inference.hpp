// How a word becomes subwords: with the codes' merges or, for PickyBPE, with their merges and splits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "codes/codes.hpp"
#include "inference/dropout.hpp"
#include "inference/merge_table.hpp"

namespace mt_scaffold {

// The symbols of a word: the token of each, or kUnknown, and its end in the word, in bytes.
struct Symbols {
  std::vector<int32_t> token;
  std::vector<uint32_t> end;
};

// The buffers of one thread for words too long to scan at each step: a linked list of symbols, and the merges to try.
struct LongWord {
  struct Candidate {
    int32_t when;  // the rank or the time of the merge
    uint32_t position;
    int32_t left, right;  // stale if the position now holds other symbols

    // Orders a heap: the lowest first, then from the left.
    static bool later(const Candidate& a, const Candidate& b) {
      return a.when != b.when ? a.when > b.when : a.position > b.position;
    }
  };
  std::vector<int32_t> token;
  std::vector<uint32_t> previous, next;
  std::vector<Candidate> heap, group, dropped, dropped_now;
};

// Tokens that are always written for a word, so that no branch depends on their number if it is small.
inline constexpr size_t kTokensAtOnce = 4;

class Inference {
 public:
  virtual ~Inference() = default;

  // Replaces the base symbols of a word by its symbols, and returns the number of merges. Tokens other than kUnknown
  // are demolished and filtered afterwards. `decisions`, if given, decides on each merge; their order is a function of
  // the earlier answers alone. If all survive, there are as many decisions as merges.
  virtual uint32_t apply(Symbols& symbols, LongWord& buffers, Decisions* decisions) const = 0;

  // The same, without decisions, for a word whose symbols are its bytes and that is readable for kPadding bytes past
  // its end. Writes its tokens to `tokens`, which has room for one per byte and for kTokensAtOnce, and returns their
  // number; none if only apply() can tell.
  virtual std::optional<size_t> tokens_of(std::string_view /* word */, int32_t* /* tokens */) const { return {}; }
};

// The inference of these codes; `table` must outlive it.
std::unique_ptr<const Inference> make_inference(const MergeTable& table, const Codes& codes);

}  // namespace mt_scaffold
