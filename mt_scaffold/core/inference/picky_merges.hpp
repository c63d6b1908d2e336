// Segmenting with PickyBPE codes: applies the merges and splits to a word in the order in which they were learned.
#pragma once

#include <cstdint>
#include <vector>

#include "codes/codes.hpp"
#include "inference/dropout.hpp"
#include "inference/inference.hpp"
#include "memory/interner.hpp"
#include "memory/pair_table.hpp"

namespace mt_scaffold {

class PickyMerges final : public Inference {
 public:
  // `texts` has the tokens of all lines.
  PickyMerges(const Codes& codes, const Interner& texts);

  // `decisions` decides on each merge at each place, the places of an event from the left.
  uint32_t apply(Symbols& symbols, LongWord& buffers, Decisions* decisions) const override;

 private:
  // A merge or a split; its time is its index in their order.
  static constexpr int32_t kNever = PairTable::kNone;
  struct Event {
    int32_t token;           // the token made by a merge, or split
    int32_t next_of_pair;    // when a merge's pair is merged again
    int32_t split;           // when the token made by a merge is split
    uint32_t pieces, count;  // the pieces of a split, in pieces_; 0 for a merge
  };
  struct Part {
    int32_t token;
    uint32_t bytes;
    int32_t split;  // when it is split in turn
  };

  // The time at which a pair that is adjacent from `now` on is merged.
  int32_t merge_time(int32_t left, int32_t right, int32_t now) const {
    int32_t time = first_merge_.find(left, right);
    while (time <= now) time = events_[static_cast<size_t>(time)].next_of_pair;
    return time;
  }
  size_t apply_short(int32_t* token, uint32_t* end, size_t n, Decisions* decisions, uint32_t& merges) const;
  void apply_long(Symbols& symbols, LongWord& buffers, Decisions* decisions, uint32_t& merges) const;

  PairTable first_merge_;
  std::vector<Event> events_;
  std::vector<Part> pieces_;
};

}  // namespace mt_scaffold
