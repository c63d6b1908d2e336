// Merges one pair at a time: the one whose token has the most base symbols, then the lowest rank, then the leftmost.
#include <algorithm>
#include <tuple>

#include "errors.hpp"
#include "inference/inference.hpp"
#include "io/interruption.hpp"

namespace mt_scaffold {

namespace {

struct LongestMergeScratch final : Inference::Scratch {
  struct Candidate {
    int32_t turn;
    uint32_t position;
    int32_t left, right;  // stale if the position now holds other symbols
  };
  std::vector<uint32_t> previous, next;  // a linked list of symbols
  std::vector<Candidate> heap, dropped;
};

class LongestMerge final : public Inference {
 public:
  explicit LongestMerge(const MergeTable& table) : turns_(table.merged_of_rank.size()) {
    struct Line {
      uint64_t symbols;
      int32_t rank;
    };
    std::vector<Line> lines;
    table.ranks.for_each([&](int32_t, int32_t, int32_t rank) {
      std::string_view text = table.texts[table.merged_of_rank[static_cast<size_t>(rank)]];
      if (is_marked(text, table.alphabet)) text.remove_suffix(kEndOfWord.size());
      lines.push_back({symbols_in(text, table.alphabet), rank});
    });
    std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
      return std::make_tuple(b.symbols, a.rank) < std::make_tuple(a.symbols, b.rank);
    });
    for (const Line& line : lines) {
      const MergeTable::Pair pair = table.pair_of_rank[static_cast<size_t>(line.rank)];
      turns_.set(pair.left, pair.right, static_cast<int32_t>(merged_.size()));
      merged_.push_back(table.merged_of_rank[static_cast<size_t>(line.rank)]);
    }
  }

  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<LongestMergeScratch>(); }

  // With a heap, in O(n log n). Symbols only grow, so no pair occurs at the same place twice.
  uint32_t apply(std::string_view, Symbols& symbols, Scratch& scratch, Decisions* decisions) const override {
    using Candidate = LongestMergeScratch::Candidate;
    auto& buffers = static_cast<LongestMergeScratch&>(scratch);
    std::vector<int32_t>& token = symbols.token;
    std::vector<uint32_t>&end = symbols.end, &previous = buffers.previous, &next = buffers.next;
    std::vector<Candidate>&heap = buffers.heap, &dropped = buffers.dropped;
    constexpr uint32_t kNone = ~uint32_t{0};
    constexpr int32_t kUsedUp = MergeTable::kUnknown - 1;
    const auto n = static_cast<uint32_t>(token.size());
    previous.resize(n);
    next.resize(n);
    for (uint32_t i = 0; i < n; ++i) {
      previous[i] = i == 0 ? kNone : i - 1;
      next[i] = i + 1 == n ? kNone : i + 1;
    }
    const auto later = [](const Candidate& a, const Candidate& b) {
      return a.turn != b.turn ? a.turn > b.turn : a.position > b.position;
    };
    const auto push = [&](const Candidate& candidate) {
      heap.push_back(candidate);
      std::push_heap(heap.begin(), heap.end(), later);
    };
    const auto push_pair_at = [&](uint32_t position) {
      if (position == kNone || next[position] == kNone) return;
      const int32_t left = token[position], right = token[next[position]];
      const int32_t turn = turns_.find(left, right);
      if (turn != PairTable::kNone) push({turn, position, left, right});
    };
    heap.clear();
    dropped.clear();
    for (uint32_t i = 0; i < n; ++i) {
      may_interrupt(i);
      push_pair_at(i);
    }
    size_t steps = 0;
    uint32_t merges = 0;
    while (!heap.empty()) {
      may_interrupt(++steps);
      std::pop_heap(heap.begin(), heap.end(), later);
      const Candidate candidate = heap.back();
      heap.pop_back();
      const uint32_t left = candidate.position, right = next[left];
      if (token[left] != candidate.left || right == kNone || token[right] != candidate.right) continue;
      if (decisions && !decisions->survives()) {
        dropped.push_back(candidate);
        continue;
      }
      ++merges;
      token[left] = merged_[static_cast<size_t>(candidate.turn)];
      end[left] = end[right];
      token[right] = kUsedUp;
      next[left] = next[right];
      if (next[left] != kNone) previous[next[left]] = left;
      push_pair_at(left);
      push_pair_at(previous[left]);
      // Dropped pairs are drawn again at the next step.
      for (const Candidate& again : dropped) push(again);
      dropped.clear();
    }
    size_t left = 0;
    for (uint32_t i = 0; i != kNone; i = next[i], ++left) {
      token[left] = token[i];
      end[left] = end[i];
    }
    token.resize(left);
    end.resize(left);
    return merges;
  }

 private:
  PairTable turns_;  // by pair: its place in the order of merging, from 0
  std::vector<int32_t> merged_;
};

}  // namespace

std::unique_ptr<const Inference> make_longest_merge(const MergeTable& table, const Codes& codes) {
  if (codes.header.picky)
    throw UsageError("longest-merge inference cannot follow PickyBPE's order of merges and splits; choose another");
  return std::make_unique<const LongestMerge>(table);
}

}  // namespace mt_scaffold
