// The queue of Algorithm 1: pairs, and scaffold tokens that wait to become normal again.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "learn/pairs.hpp"
#include "learn/tokens.hpp"
#include "memory/huge_pages.hpp"

namespace mt_scaffold {

class MergeQueue {
 public:
  // The bytes of the longest token that a pair may make, with its end-of-word marker. Without a limit, a long text that
  // occurs twice makes tokens whose sizes sum to the square of its length.
  static constexpr size_t kLongestToken = 2048;

  // Holds pairs from `min_frequency` up.
  MergeQueue(const Tokens& tokens, const Pairs& pairs, int64_t min_frequency)
      : tokens_(tokens), pairs_(pairs), min_frequency_(min_frequency) {}

  void push_pair(uint32_t pair) {
    if (pairs_.count(pair) >= heap_minimum_) add_to_heap(pair);
  }
  void push_waiting(Token token);

  struct PairEntry {
    int64_t count;
    uint64_t prefix;
    uint32_t pair;
  };
  struct WaitingEntry {
    int64_t count;
    Token token;
  };

  // Brings the entries with the highest counts to the heads. Call it after counts changed, before any of the following.
  void settle();
  // Whether the head of the queue is a waiting token, not a pair.
  bool waiting_is_head() const;
  bool has_pair() const { return !pair_heap_.empty(); }
  // Only with settled heads.
  PairEntry pop_pair();
  Token pop_waiting();
  // The frequency of the head, even if it is below the minimum; 0 if the queue is empty. Settles the heads.
  int64_t head_frequency();
  // Whether a pair at the head was passed over because its token would be too long.
  bool reached_longest_token() const { return reached_longest_token_; }

 private:
  bool is_too_long(uint32_t pair) const {
    return tokens_[pairs_[pair].left].text.size() + tokens_[pairs_[pair].right].text.size() > kLongestToken;
  }
  bool before(const PairEntry& a, const PairEntry& b) const;
  bool before(const WaitingEntry& a, const WaitingEntry& b) const;
  void add_to_heap(uint32_t pair);
  void lower_heap_minimum();

  const Tokens& tokens_;
  const Pairs& pairs_;
  const int64_t min_frequency_;
  HugeVector<PairEntry> pair_heap_;
  std::vector<WaitingEntry> waiting_heap_;
  bool reached_longest_token_ = false;
  int64_t heap_minimum_ = std::numeric_limits<int64_t>::max();  // pairs with lower counts are not in the heap
};

}  // namespace mt_scaffold
