// Segmenting with PickyBPE codes: a word goes through the merges and splits in the order in which they were learned.
#pragma once

#include <cstdint>
#include <vector>

#include "segment/codes.hpp"
#include "segment/dropout.hpp"
#include "memory/interner.hpp"
#include "memory/pair_table.hpp"

namespace mt_scaffold {

class EventOrder {
 public:
  EventOrder(const Codes& codes, Interner& texts);

  // The buffers of one thread.
  struct Candidate {
    int32_t time;
    uint32_t position;
    int32_t left, right;  // stale if the position now holds other symbols
  };
  struct Scratch {
    std::vector<int32_t> token;
    std::vector<uint32_t> end, previous;
    std::vector<Candidate> heap, group;
  };

  // Replaces the base symbols of a word, each with the byte at which it ends, by its tokens. Returns the number of
  // merges. `decisions`, if given, decides on each merge at each place, the places of an event from the left.
  uint32_t apply(std::vector<int32_t>& token, std::vector<uint32_t>& end, Scratch& scratch, Decisions* decisions) const;

 private:
  // An event's time is its place in the order.
  static constexpr int32_t kNever = PairTable::kNone;
  struct Event {
    int32_t token;           // that a merge makes; of a split, that it takes apart
    int32_t next_of_pair;    // when a merge's pair is merged again
    int32_t split;           // when the token that a merge makes is split
    uint32_t pieces, count;  // of a split, in pieces_; a merge has none
  };
  struct Part {
    int32_t token;
    uint32_t bytes;
    int32_t split;  // when it is split in turn
  };

  // When a pair that is adjacent from `now` on is merged.
  int32_t merge_time(int32_t left, int32_t right, int32_t now) const {
    int32_t time = first_merge_.find(left, right);
    while (time <= now) time = events_[static_cast<size_t>(time)].next_of_pair;
    return time;
  }
  size_t apply_short(int32_t* token, uint32_t* end, size_t n, Decisions* decisions, uint32_t& merges) const;
  void apply_long(std::vector<int32_t>& token, std::vector<uint32_t>& end, Scratch& scratch, Decisions* decisions,
                  uint32_t& merges) const;

  PairTable first_merge_;
  std::vector<Event> events_;
  std::vector<Part> pieces_;
};

}  // namespace mt_scaffold
