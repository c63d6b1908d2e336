#include "learn/merge_queue.hpp"

#include <algorithm>

namespace mt_scaffold {

bool MergeQueue::before(const PairEntry& a, const PairEntry& b) const {
  if (a.count != b.count) return a.count < b.count;
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  const Pair &x = pairs_[a.pair], &y = pairs_[b.pair];
  return tokens_.compare_pairs(x.left, x.right, y.left, y.right) < 0;
}

bool MergeQueue::before(const WaitingEntry& a, const WaitingEntry& b) const {
  if (a.count != b.count) return a.count < b.count;
  const TokenInfo &x = tokens_[a.token], &y = tokens_[b.token];
  return tokens_.compare_pairs(x.left, x.right, y.left, y.right) < 0;
}

void MergeQueue::add_to_heap(uint32_t pair) {
  pair_heap_.push_back({pairs_.count(pair), tokens_[pairs_[pair].left].prefix, pair});
  std::push_heap(pair_heap_.begin(), pair_heap_.end(), [this](auto& a, auto& b) { return before(a, b); });
}

void MergeQueue::push_waiting(Token token) {
  waiting_heap_.push_back({tokens_[token].frequency, token});
  std::push_heap(waiting_heap_.begin(), waiting_heap_.end(), [this](auto& a, auto& b) { return before(a, b); });
}

MergeQueue::PairEntry MergeQueue::pop_pair() {
  const PairEntry top = pair_heap_.front();
  std::pop_heap(pair_heap_.begin(), pair_heap_.end(), [this](auto& a, auto& b) { return before(a, b); });
  pair_heap_.pop_back();
  return top;
}

Token MergeQueue::pop_waiting() {
  const Token token = waiting_heap_.front().token;
  std::pop_heap(waiting_heap_.begin(), waiting_heap_.end(), [this](auto& a, auto& b) { return before(a, b); });
  waiting_heap_.pop_back();
  return token;
}

// A pair enters the heap only once its count nears the top: most never do, and a small heap is fast.
void MergeQueue::lower_heap_minimum() {
  const int64_t before = heap_minimum_;
  heap_minimum_ = std::max(min_frequency_, before / 2);
  for (uint32_t pair = 0; pair < pairs_.size(); ++pair)
    if (pairs_.count(pair) < before) push_pair(pair);
}

// Counts fall while their entries are in the heaps, so a stale head is put back with its present count.
void MergeQueue::settle() {
  while (!pair_heap_.empty() || heap_minimum_ > min_frequency_) {
    if (pair_heap_.empty()) {
      lower_heap_minimum();
      continue;
    }
    const PairEntry& top = pair_heap_.front();
    if (pairs_.count(top.pair) == top.count) {
      if (!is_too_long(top.pair)) break;
      reached_longest_token_ = true;
      pop_pair();
      continue;
    }
    const PairEntry stale = pop_pair();
    if (pairs_.count(stale.pair) < stale.count) push_pair(stale.pair);
  }
  while (!waiting_heap_.empty()) {
    const WaitingEntry& top = waiting_heap_.front();
    const TokenInfo& info = tokens_[top.token];
    if (info.state == TokenState::kWaiting && info.frequency == top.count) break;
    const bool fallen = info.state == TokenState::kWaiting && info.frequency > 0 && info.frequency < top.count;
    const Token token = pop_waiting();
    if (fallen) push_waiting(token);
  }
}

bool MergeQueue::waiting_is_head() const {
  if (waiting_heap_.empty() || waiting_heap_.front().count < min_frequency_) return false;
  if (pair_heap_.empty()) return true;
  const WaitingEntry& waiting = waiting_heap_.front();
  const PairEntry& top = pair_heap_.front();
  if (waiting.count != top.count) return waiting.count > top.count;
  const TokenInfo& info = tokens_[waiting.token];
  const Pair& pair = pairs_[top.pair];
  return tokens_.compare_pairs(info.left, info.right, pair.left, pair.right) >= 0;
}

int64_t MergeQueue::head_frequency() {
  settle();
  int64_t frequency = waiting_heap_.empty() ? 0 : waiting_heap_.front().count;
  if (!pair_heap_.empty()) return std::max(frequency, pair_heap_.front().count);
  // The remaining pairs are below the minimum, so this scan runs once, before learning ends.
  for (uint32_t pair = 0; pair < pairs_.size(); ++pair)
    if (!is_too_long(pair)) frequency = std::max(frequency, pairs_.count(pair));
  return frequency;
}

}  // namespace mt_scaffold
