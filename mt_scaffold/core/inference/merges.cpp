// Merges in order of rank: Algorithm 2 of the Scaffold-BPE paper before demolishing, with BPE-dropout.
#include <algorithm>

#include "inference/inference.hpp"
#include "inference/merges_one_by_one.hpp"
#include "inference/picky_merges.hpp"
#include "io/interruption.hpp"

namespace mt_scaffold {

namespace {

// Longer words are merged with a heap, in O(n log n).
constexpr size_t kShortWord = 48;

constexpr int32_t kNoRank = MergeTable::kNoRank;
constexpr int32_t kDropped = int32_t{1} << 30;  // above every rank

class Merges final : public Inference {
 public:
  explicit Merges(const MergeTable& table) : table_(table), one_by_one_(table) {}

  uint32_t apply(Symbols& symbols, LongWord& buffers, Decisions* decisions) const override;
  std::optional<size_t> tokens_of(std::string_view word, int32_t* tokens) const override {
    return one_by_one_.tokens_of(word, tokens);
  }

 private:
  size_t merge_short(int32_t* token, uint32_t* end, size_t n, Decisions* decisions) const;
  void merge_long(Symbols& symbols, LongWord& buffers, Decisions* decisions) const;

  const MergeTable& table_;
  const MergesOneByOne one_by_one_;
};

uint32_t Merges::apply(Symbols& symbols, LongWord& buffers, Decisions* decisions) const {
  const size_t base_symbols = symbols.token.size();
  if (!decisions && one_by_one_.apply(symbols)) {
    // Merged.
  } else if (base_symbols > kShortWord) {
    merge_long(symbols, buffers, decisions);
  } else {
    const size_t left = merge_short(symbols.token.data(), symbols.end.data(), base_symbols, decisions);
    symbols.token.resize(left);
    symbols.end.resize(left);
  }
  return static_cast<uint32_t>(base_symbols - symbols.token.size());
}

// Scans the ranks of all pairs at each step, which is fastest for words of ordinary length. Returns the symbols left.
size_t Merges::merge_short(int32_t* token, uint32_t* end, size_t n, Decisions* decisions) const {
  int32_t rank[kShortWord];  // of each symbol with its right neighbour; plus kDropped if dropped in this step
  for (size_t i = 0; i + 1 < n; ++i) rank[i] = table_.ranks.find(token[i], token[i + 1]);
  while (n > 1) {
    int32_t lowest = kNoRank;
    for (size_t i = 0; i + 1 < n; ++i) lowest = std::min(lowest, rank[i]);
    if (lowest >= kDropped) return n;  // no pair is in the codes, or none survived
    // Only this rank is drawn: the draws of higher ranks matter only if all of this one are dropped.
    size_t replaced = 0;
    size_t fresh[kShortWord];
    for (size_t i = 0; i + 1 < n; ++i) {
      if (rank[i] != lowest) continue;
      if (decisions && !decisions->survives()) {
        rank[i] += kDropped;
        continue;
      }
      token[i] = table_.merged_of_rank[static_cast<size_t>(lowest)];
      end[i] = end[i + 1];
      rank[i] = kNoRank;
      --n;
      std::copy(token + i + 2, token + n + 1, token + i + 1);
      std::copy(end + i + 2, end + n + 1, end + i + 1);
      // The new symbol's pair is ranked after this step; the scan continues at the one after it.
      if (i + 1 < n) {
        rank[i] = kNoRank;
        std::copy(rank + i + 2, rank + n, rank + i + 1);
      }
      fresh[replaced++] = i;
    }
    if (replaced == 0) continue;
    if (decisions) {
      for (size_t i = 0; i + 1 < n; ++i)
        if (rank[i] >= kDropped && rank[i] != kNoRank) rank[i] -= kDropped;
    }
    for (size_t k = 0; k < replaced; ++k) {
      const size_t i = fresh[k];
      if (i > 0) rank[i - 1] = table_.ranks.find(token[i - 1], token[i]);
      if (i + 1 < n) rank[i] = table_.ranks.find(token[i], token[i + 1]);
    }
  }
  return n;
}

// Candidates by rank, then position: new ones in a heap, and those dropped in earlier steps in order, the first at the
// back, as dropout near 1 tries most of them again at each step. A step takes all of the first rank of which any
// survive; it drops them rank by rank, so that those dropped in it are in order, too.
void Merges::merge_long(Symbols& symbols, LongWord& buffers, Decisions* decisions) const {
  using Candidate = LongWord::Candidate;
  // Not a structured binding: older clangs cannot use one in a lambda.
  std::vector<int32_t>& token = symbols.token;
  std::vector<uint32_t>&end = symbols.end, &previous = buffers.previous, &next = buffers.next;
  std::vector<Candidate>&heap = buffers.heap, &group = buffers.group, &dropped = buffers.dropped,
  &dropped_now = buffers.dropped_now;
  constexpr uint32_t kNone = ~uint32_t{0};
  constexpr int32_t kUsedUp = MergeTable::kUnknown - 1;
  const auto n = static_cast<uint32_t>(token.size());
  previous.resize(n);
  next.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == n ? kNone : i + 1;
  }
  const auto push_pair_at = [&](uint32_t position) {
    if (next[position] == kNone) return;
    const int32_t left = token[position], right = token[next[position]];
    const int32_t rank = table_.ranks.find(left, right);
    if (rank == kNoRank) return;
    heap.push_back({rank, position, left, right});
    std::push_heap(heap.begin(), heap.end(), Candidate::later);
  };
  heap.clear();
  for (uint32_t i = 0; i < n; ++i) {
    may_interrupt(i);
    push_pair_at(i);
  }
  dropped.clear();
  dropped_now.clear();
  const auto dropped_is_first = [&] {
    return !dropped.empty() && (heap.empty() || Candidate::later(heap.front(), dropped.back()));
  };
  const auto first = [&]() -> const Candidate& { return dropped_is_first() ? dropped.back() : heap.front(); };
  const auto take_first = [&] {
    const Candidate taken = first();
    if (dropped_is_first()) {
      dropped.pop_back();
    } else {
      std::pop_heap(heap.begin(), heap.end(), Candidate::later);
      heap.pop_back();
    }
    return taken;
  };
  const auto more = [&] { return !heap.empty() || !dropped.empty(); };
  size_t steps = 0;
  while (more()) {
    // All occurrences of the lowest rank, from the left.
    group.clear();
    const int32_t rank = first().when;
    while (more() && first().when == rank) {
      may_interrupt(++steps);
      const Candidate taken = take_first();
      const bool current = token[taken.position] == taken.left && next[taken.position] != kNone &&
                           token[next[taken.position]] == taken.right;
      if (current && (group.empty() || group.back().position != taken.position)) group.push_back(taken);
    }
    size_t survivors = 0;
    uint32_t taken = kNone;  // the right symbol of the previous replacement
    for (const Candidate& candidate : group) {
      if (candidate.position == taken) continue;
      if (decisions && !decisions->survives()) {
        dropped_now.push_back(candidate);
        continue;
      }
      taken = next[candidate.position];
      group[survivors++] = candidate;
    }
    group.resize(survivors);
    if (group.empty()) continue;  // all of this rank were dropped: try the next one in the same step
    for (const Candidate& candidate : group) {
      may_interrupt(++steps);
      const uint32_t left = candidate.position, right = next[left];
      token[left] = table_.merged_of_rank[static_cast<size_t>(rank)];
      end[left] = end[right];
      token[right] = kUsedUp;
      next[left] = next[right];
      if (next[left] != kNone) previous[next[left]] = left;
    }
    for (const Candidate& candidate : group) {
      push_pair_at(candidate.position);
      if (previous[candidate.position] != kNone) push_pair_at(previous[candidate.position]);
    }
    // Dropped pairs are drawn again at the next step.
    dropped.insert(dropped.end(), dropped_now.rbegin(), dropped_now.rend());
    dropped_now.clear();
  }
  size_t left = 0;
  for (uint32_t i = 0; i != kNone; i = next[i], ++left) {
    token[left] = token[i];
    end[left] = end[i];
  }
  token.resize(left);
  end.resize(left);
}

}  // namespace

std::unique_ptr<const Inference> make_inference(const MergeTable& table, const Codes& codes) {
  if (codes.header.picky) return std::make_unique<const PickyMerges>(codes, table.texts);
  return std::make_unique<const Merges>(table);
}

}  // namespace mt_scaffold
