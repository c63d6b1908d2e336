#include "inference/picky_merges.hpp"

#include <algorithm>
#include <string>

#include "io/interruption.hpp"

namespace mt_scaffold {

namespace {

// Longer words use a heap of events, in O(n log n).
constexpr size_t kShortWord = 48;

}  // namespace

PickyMerges::PickyMerges(const Codes& codes, const Interner& texts)
    : first_merge_(codes.merges.size() + codes.splits.size()) {
  struct Line {
    const Merge* merge;
    const Split* split;  // one of them is null
  };
  std::vector<Line> lines;
  lines.reserve(codes.merges.size() + codes.splits.size());
  auto split = codes.splits.begin();
  for (size_t i = 0; i < codes.merges.size(); ++i) {
    lines.push_back({&codes.merges[i], nullptr});
    for (; split != codes.splits.end() && split->after <= i + 1; ++split) lines.push_back({nullptr, &*split});
  }
  events_.resize(lines.size());
  std::vector<int32_t> next_split;  // by token
  const auto split_of = [&](int32_t token) -> int32_t& {
    if (next_split.size() <= static_cast<size_t>(token)) next_split.resize(texts.size(), kNever);
    return next_split[static_cast<size_t>(token)];
  };
  std::string text;
  // Backwards, so that the next event of a pair or token is known.
  for (size_t i = lines.size(); i-- > 0;) {
    Event& event = events_[i];
    const auto time = static_cast<int32_t>(i);
    if (const Merge* merge = lines[i].merge) {
      text.assign(merge->left).append(merge->right);
      const int32_t left = texts.find(merge->left), right = texts.find(merge->right);
      const int32_t token = texts.find(text);
      event = {token, first_merge_.find(left, right), split_of(token), 0, 0};
      first_merge_.set(left, right, time);
    } else {
      const Split& line = *lines[i].split;
      const int32_t token = texts.find(line.token);
      event = {token, kNever, kNever, static_cast<uint32_t>(pieces_.size()), static_cast<uint32_t>(line.pieces.size())};
      for (const std::string& piece : line.pieces) {
        const int32_t part = texts.find(piece);
        pieces_.push_back({part, static_cast<uint32_t>(piece.size()), split_of(part)});
      }
      split_of(token) = time;
    }
  }
}

uint32_t PickyMerges::apply(Symbols& symbols, LongWord& buffers, Decisions* decisions) const {
  uint32_t merges = 0;
  if (symbols.token.size() > kShortWord) {
    apply_long(symbols, buffers, decisions, merges);
    return merges;
  }
  // Splits never make more symbols than the word has base symbols.
  const size_t left = apply_short(symbols.token.data(), symbols.end.data(), symbols.token.size(), decisions, merges);
  symbols.token.resize(left);
  symbols.end.resize(left);
  return merges;
}

// Scans the times of all pairs at each event, which is fastest for words of ordinary length. Returns the symbols left.
size_t PickyMerges::apply_short(int32_t* token, uint32_t* end, size_t n, Decisions* decisions, uint32_t& merges) const {
  int32_t due[kShortWord];    // when each symbol is merged with its right neighbour
  int32_t split[kShortWord];  // when it is split
  for (size_t i = 0; i < n; ++i) split[i] = kNever;
  for (size_t i = 0; i + 1 < n; ++i) due[i] = merge_time(token[i], token[i + 1], -1);
  int32_t next_split = kNever;  // a lower bound: the symbol to be split may have been merged since
  while (true) {
    int32_t now = next_split;
    for (size_t i = 0; i + 1 < n; ++i) now = std::min(now, due[i]);
    if (now == kNever) return n;
    const Event& event = events_[static_cast<size_t>(now)];
    if (event.count == 0) {
      size_t replaced = 0;
      size_t fresh[kShortWord];
      for (size_t i = 0; i + 1 < n; ++i) {
        if (due[i] != now) continue;
        if (decisions && !decisions->survives()) {
          due[i] = event.next_of_pair;
          continue;
        }
        token[i] = event.token;
        end[i] = end[i + 1];
        split[i] = event.split;
        due[i] = kNever;
        --n;
        std::copy(token + i + 2, token + n + 1, token + i + 1);
        std::copy(end + i + 2, end + n + 1, end + i + 1);
        std::copy(split + i + 2, split + n + 1, split + i + 1);
        if (i + 1 < n) std::copy(due + i + 2, due + n, due + i + 1);
        fresh[replaced++] = i;
      }
      if (replaced == 0) continue;
      merges += static_cast<uint32_t>(replaced);
      next_split = std::min(next_split, event.split);
      for (size_t k = 0; k < replaced; ++k) {
        const size_t i = fresh[k];
        if (i > 0) due[i - 1] = merge_time(token[i - 1], token[i], now);
        if (i + 1 < n) due[i] = merge_time(token[i], token[i + 1], now);
      }
      continue;
    }
    for (size_t i = 0; i < n; ++i) {
      if (split[i] != now) continue;
      const size_t more = event.count - 1;
      std::copy_backward(token + i + 1, token + n, token + n + more);
      std::copy_backward(split + i + 1, split + n, split + n + more);
      if (i + 1 < n) std::copy_backward(due + i + 1, due + n - 1, due + n - 1 + more);
      const uint32_t last = end[i];
      std::copy_backward(end + i + 1, end + n, end + n + more);
      n += more;
      uint32_t at = i == 0 ? 0 : end[i - 1];
      for (size_t k = 0; k <= more; ++k) {
        const Part& piece = pieces_[event.pieces + k];
        token[i + k] = piece.token;
        split[i + k] = piece.split;
        end[i + k] = at += piece.bytes;
      }
      end[i + more] = last;  // without the end-of-word marker, which is not part of the word
      for (size_t k = i == 0 ? 0 : i - 1; k <= i + more && k + 1 < n; ++k)
        due[k] = merge_time(token[k], token[k + 1], now);
      i += more;
    }
    next_split = *std::min_element(split, split + n);
  }
}

// A heap of merges and splits by time, then position; each step takes all of one event. Symbols are in a linked list,
// each at the byte where it begins, so that each piece of a split has a place.
void PickyMerges::apply_long(Symbols& symbols, LongWord& buffers, Decisions* decisions, uint32_t& merges) const {
  using Candidate = LongWord::Candidate;
  // Not structured bindings: older clangs cannot use one in a lambda.
  std::vector<int32_t>&token = symbols.token, &at = buffers.token;
  std::vector<uint32_t>&end = symbols.end, &ends = buffers.next, &previous = buffers.previous;
  std::vector<Candidate>&heap = buffers.heap, &group = buffers.group;
  constexpr uint32_t kNone = ~uint32_t{0};
  constexpr int32_t kUsedUp = -2, kSplit = -3;
  const uint32_t bytes = end.back();
  at.assign(bytes, kUsedUp);
  ends.resize(bytes);
  previous.resize(bytes);
  uint32_t before = kNone;
  for (size_t i = 0; i < token.size(); ++i) {
    const uint32_t begin = i == 0 ? 0 : end[i - 1];
    at[begin] = token[i];
    ends[begin] = end[i];
    previous[begin] = before;
    before = begin;
  }
  const auto push = [&](const Candidate& candidate) {
    if (candidate.when == kNever) return;
    heap.push_back(candidate);
    std::push_heap(heap.begin(), heap.end(), Candidate::later);
  };
  const auto push_pair_at = [&](uint32_t position, int32_t now) {
    const uint32_t next = ends[position];
    if (next == bytes) return;
    push({merge_time(at[position], at[next], now), position, at[position], at[next]});
  };
  heap.clear();
  for (uint32_t position = 0; position < bytes; position = ends[position]) push_pair_at(position, -1);

  size_t steps = 0;
  while (!heap.empty()) {
    group.clear();
    const int32_t now = heap.front().when;
    while (!heap.empty() && heap.front().when == now) {
      may_interrupt(++steps);
      std::pop_heap(heap.begin(), heap.end(), Candidate::later);
      const Candidate candidate = heap.back();
      heap.pop_back();
      const uint32_t position = candidate.position;
      const bool current =
          at[position] == candidate.left &&
          (candidate.right == kSplit || (ends[position] != bytes && at[ends[position]] == candidate.right));
      if (current && (group.empty() || group.back().position != position)) group.push_back(candidate);
    }
    const Event& event = events_[static_cast<size_t>(now)];
    if (event.count == 0) {
      size_t survivors = 0;
      uint32_t taken = kNone;  // the right symbol of the previous replacement
      for (const Candidate& candidate : group) {
        if (candidate.position == taken) continue;
        if (decisions && !decisions->survives()) {
          push({event.next_of_pair, candidate.position, candidate.left, candidate.right});
          continue;
        }
        taken = ends[candidate.position];
        group[survivors++] = candidate;
      }
      group.resize(survivors);
      merges += static_cast<uint32_t>(survivors);
      for (const Candidate& candidate : group) {
        const uint32_t left = candidate.position, right = ends[left];
        at[left] = event.token;
        ends[left] = ends[right];
        at[right] = kUsedUp;
        if (ends[left] != bytes) previous[ends[left]] = left;
        push({event.split, left, event.token, kSplit});
      }
      for (const Candidate& candidate : group) {
        push_pair_at(candidate.position, now);
        if (previous[candidate.position] != kNone) push_pair_at(previous[candidate.position], now);
      }
      continue;
    }
    for (const Candidate& candidate : group) {
      const uint32_t last = ends[candidate.position];
      uint32_t position = candidate.position, left = previous[position];
      for (size_t k = 0; k < event.count; ++k) {
        const Part& piece = pieces_[event.pieces + k];
        at[position] = piece.token;
        ends[position] = k + 1 == event.count ? last : position + piece.bytes;
        previous[position] = left;
        push({piece.split, position, piece.token, kSplit});
        left = position;
        position = ends[position];
      }
      if (last != bytes) previous[last] = left;
    }
    for (const Candidate& candidate : group) {
      uint32_t position = candidate.position;
      if (previous[position] != kNone) push_pair_at(previous[position], now);
      for (size_t k = 0; k < event.count; ++k, position = ends[position]) push_pair_at(position, now);
    }
  }
  token.clear();
  end.clear();
  for (uint32_t position = 0; position < bytes; position = ends[position]) {
    token.push_back(at[position]);
    end.push_back(ends[position]);
  }
}

}  // namespace mt_scaffold
