// The queue of Algorithm 1: pairs, and scaffold tokens that wait to become normal again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

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

  // A pair, or a waiting token, which is ordered by the pair that first made it.
  struct Entry {
    int64_t count;
    uint64_t prefix;  // of the left token
    uint32_t number;
    bool waiting;
  };

  void push_pair(uint32_t pair) {
    if (const int64_t count = pairs_.count(pair); count >= heap_minimum_)
      heap_.push({count, tokens_[pairs_[pair].left].prefix, pair, false});
  }
  void push_waiting(Token token) {
    const TokenInfo& info = tokens_[token];
    heap_.push({info.frequency, tokens_[info.left].prefix, static_cast<uint32_t>(token), true});
  }

  // Removes the head and returns it; none if no entry has the minimum frequency. A waiting token precedes its pair.
  std::optional<Entry> pop() {
    settle();
    if (heap_.empty() || heap_.top().count < min_frequency_) return {};
    const Entry head = heap_.top();
    heap_.pop();
    return head;
  }

  // The frequency of the head, even if it is below the minimum; 0 if the queue is empty.
  int64_t head_frequency() {
    settle();
    int64_t frequency = heap_.empty() ? 0 : heap_.top().count;
    if (frequency >= min_frequency_) return frequency;
    // The remaining pairs are below the minimum, so this scan runs once, before learning ends.
    for (uint32_t pair = 0; pair < pairs_.size(); ++pair)
      if (!is_too_long(pair)) frequency = std::max(frequency, pairs_.count(pair));
    return frequency;
  }

  // Whether a pair at the head was passed over because its token would be too long.
  bool reached_longest_token() const { return reached_longest_token_; }

 private:
  // 0 for a token that waits no longer.
  int64_t count_of(const Entry& entry) const {
    if (!entry.waiting) return pairs_.count(entry.number);
    const TokenInfo& info = tokens_[static_cast<Token>(entry.number)];
    return info.state == TokenState::kWaiting ? info.frequency : 0;
  }

  std::pair<Token, Token> halves_of(const Entry& entry) const {
    if (!entry.waiting) return {pairs_[entry.number].left, pairs_[entry.number].right};
    const TokenInfo& info = tokens_[static_cast<Token>(entry.number)];
    return {info.left, info.right};
  }

  bool before(const Entry& a, const Entry& b) const {
    if (a.count != b.count) return a.count < b.count;
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    const auto [a_left, a_right] = halves_of(a);
    const auto [b_left, b_right] = halves_of(b);
    const int order = tokens_.compare_pairs(a_left, a_right, b_left, b_right);
    return order != 0 ? order < 0 : a.waiting < b.waiting;
  }

  bool is_too_long(uint32_t pair) const {
    return tokens_[pairs_[pair].left].text.size() + tokens_[pairs_[pair].right].text.size() > kLongestToken;
  }

  // Brings the entry with the highest count to the head. Counts fall while their entries are in the heap, so a stale
  // head is put back with its present count.
  void settle() {
    while (true) {
      if (heap_minimum_ > min_frequency_ && (heap_.empty() || heap_.top().count < heap_minimum_)) {
        lower_heap_minimum();
        continue;
      }
      if (heap_.empty()) return;
      const Entry head = heap_.top();
      const int64_t count = count_of(head);
      if (count == head.count) {
        if (head.waiting || !is_too_long(head.number)) return;
        reached_longest_token_ = true;
      }
      heap_.pop();
      if (count < head.count && count >= (head.waiting ? 1 : heap_minimum_))
        heap_.push({count, head.prefix, head.number, head.waiting});
    }
  }

  // A pair enters the heap only once its count nears the top: most never do, and a small heap is fast.
  void lower_heap_minimum() {
    const int64_t before = heap_minimum_;
    heap_minimum_ = std::max(min_frequency_, before / 2);
    for (uint32_t pair = 0; pair < pairs_.size(); ++pair)
      if (pairs_.count(pair) < before) push_pair(pair);
  }

  struct Before {
    const MergeQueue& queue;
    bool operator()(const Entry& a, const Entry& b) const { return queue.before(a, b); }
  };

  const Tokens& tokens_;
  const Pairs& pairs_;
  const int64_t min_frequency_;
  std::priority_queue<Entry, HugeVector<Entry>, Before> heap_{Before{*this}};
  bool reached_longest_token_ = false;
  int64_t heap_minimum_ = std::numeric_limits<int64_t>::max();  // pairs with lower counts are not in the heap
};

}  // namespace mt_scaffold
