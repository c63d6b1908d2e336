// The pairs of adjacent tokens in the training text, with their counts and occurrences.
#pragma once

#include <cstdint>

#include "learn/tokens.hpp"
#include "memory/huge_pages.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

using Position = uint32_t;

// Left positions of a pair, some of them possibly stale, in an array that all pairs share.
struct Slice {
  uint64_t begin;
  uint32_t length;
  uint32_t further;  // the next, later added slice of the pair: an index + 1, or 0
};

struct Pair {
  Token left, right;
  Slice occurrences;
};

class Pairs {
 public:
  uint32_t find_or_add(Token left, Token right) {
    if ((pairs_.size() + 1) * 2 > table_.size()) grow_table();
    const size_t mask = table_.size() - 1;
    for (size_t i = hash_pair(left, right) & mask;; i = (i + 1) & mask) {
      const uint32_t entry = table_[i];
      if (entry == 0) {
        pairs_.push_back({left, right, {0, 0, 0}});
        counts_.push_back(0);
        table_[i] = static_cast<uint32_t>(pairs_.size());
        return static_cast<uint32_t>(pairs_.size() - 1);
      }
      if (pairs_[entry - 1].left == left && pairs_[entry - 1].right == right) return entry - 1;
    }
  }

  // Prefetches the slot that find_or_add() will read.
  void prefetch(Token left, Token right) const {
    __builtin_prefetch(&table_[hash_pair(left, right) & (table_.size() - 1)]);
  }

  Pair& operator[](uint32_t pair) { return pairs_[pair]; }
  const Pair& operator[](uint32_t pair) const { return pairs_[pair]; }
  int64_t& count(uint32_t pair) { return counts_[pair]; }
  int64_t count(uint32_t pair) const { return counts_[pair]; }
  size_t size() const { return pairs_.size(); }

 private:
  void grow_table() {
    HugeVector<uint32_t>().swap(table_);
    size_t size = 1 << 12;
    while (size < (pairs_.size() + 1) * 2) size *= 2;
    table_.assign(size, 0);
    for (uint32_t entry = 1; entry <= pairs_.size(); ++entry) {
      size_t i = hash_pair(pairs_[entry - 1].left, pairs_[entry - 1].right) & (size - 1);
      while (table_[i] != 0) i = (i + 1) & (size - 1);
      table_[i] = entry;
    }
  }

  HugeVector<Pair> pairs_;
  HugeVector<int64_t> counts_;  // not in pairs_, because learning spends most of its time on cache misses here
  HugeVector<uint32_t> table_;  // an index + 1 into pairs_; 0 if empty
};

}  // namespace mt_scaffold
