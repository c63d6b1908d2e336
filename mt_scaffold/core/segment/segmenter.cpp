#include "segment/segmenter.hpp"

#include <algorithm>

namespace mt_scaffold {

namespace {

// Longer words are merged with a heap, in O(n log n).
constexpr size_t kShortWord = 48;

}  // namespace

struct Segmenter::Scratch {
  // The symbols of the word: the token of each and where it ends.
  std::vector<int32_t> token;
  std::vector<uint32_t> end;

  // For long words: a linked list of symbols, and the merges to try.
  struct Candidate {
    int32_t rank;
    uint32_t position;
    int32_t left, right;  // stale if the position now holds other symbols
  };
  std::vector<uint32_t> previous, next;
  std::vector<Candidate> heap, group, dropped;

  std::string marked_word;  // for greedy inference
  EventOrder::Scratch events;
};

std::shared_ptr<Segmenter::Scratch> Segmenter::make_scratch() { return std::make_shared<Scratch>(); }

Segmenter::Segmenter(const Codes& codes, std::string separator, const std::unordered_set<std::string>* vocabulary,
                     Inference inference)
    : header_(codes.header),
      alphabet_(codes.header.alphabet()),
      separator_(std::move(separator)),
      inference_(inference),
      ranks_(codes.merges.size()) {
  const std::vector<Merge>& merges = codes.merges;
  std::vector<Derivation> lines;
  lines.reserve(merges.size());
  std::string text;
  for (const Merge& merge : merges) {
    text.assign(merge.left).append(merge.right);
    const int32_t left = intern(merge.left), right = intern(merge.right), merged = intern(text);
    const auto rank = static_cast<int32_t>(lines.size());
    lines.push_back({left, right, merged, rank, rank});
    scaffold_[static_cast<size_t>(merged)] = merge.scaffold;
    merged_of_rank_.push_back(merged);
    int32_t& first = ranks_(left, right);
    if (first == kNoRank) first = rank;
  }
  if (header_.picky) {
    events_ = std::make_unique<const EventOrder>(codes, texts_);
    scaffold_.resize(texts_.size());
  }
  // Base symbols by their value, word-internal and word-final.
  for (size_t token = 0; token < texts_.size(); ++token) {
    const std::string_view text = texts_[static_cast<int32_t>(token)];
    if (!is_base_symbol(text, alphabet_)) continue;
    uint32_t symbol = 0;
    const bool marked = first_symbol(text, alphabet_, symbol) < text.size();
    auto& base = marked ? final_base_ : internal_base_;
    if (base.size() <= symbol) base.resize(symbol + 1, kUnknown);
    base[symbol] = static_cast<int32_t>(token);
  }
  expansions_ = expand(texts_, alphabet_, scaffold_, lines, separator_, vocabulary);
  if (inference_ == Inference::kGreedy)
    for (const std::string& token : merged_tokens()) longest_match_.add(token);
}

int32_t Segmenter::intern(std::string_view text) {
  const int32_t token = texts_.intern(text);
  if (texts_.size() > scaffold_.size()) scaffold_.push_back(false);
  return token;
}

std::vector<std::string> Segmenter::merged_tokens() const {
  std::vector<std::string> tokens;
  std::vector<bool> seen(texts_.size());
  for (const int32_t token : merged_of_rank_) {
    const auto at = static_cast<size_t>(token);
    if (!seen[at] && !scaffold_[at]) tokens.emplace_back(texts_[token]);
    seen[at] = true;
  }
  return tokens;
}

const UniformSampler& Segmenter::sampler() const {
  std::call_once(sampler_made_, [&] {
    auto sampler = std::make_unique<UniformSampler>(alphabet_);
    const bool filtered = !expansions_.last.empty();
    for (const int32_t token : merged_of_rank_) {
      const auto at = static_cast<size_t>(token);
      const bool final = is_marked(texts_[token], alphabet_);
      const bool whole = (final && filtered ? expansions_.last : expansions_.inner)[at].empty();
      if (scaffold_[at] || !whole) continue;
      sampler->add(texts_[token], final                   ? LongestMatch::kAtEnd
                                  : alphabet_.end_of_word ? LongestMatch::kInside
                                                          : LongestMatch::kAnywhere);
    }
    sampler_ = std::move(sampler);
  });
  return *sampler_;
}

std::vector<std::string> Segmenter::surface_forms(bool isolates) const {
  std::vector<std::string> forms;
  std::unordered_set<std::string> seen;
  const auto add = [&](std::string form) {
    if (seen.insert(form).second) forms.push_back(std::move(form));
  };
  if (!alphabet_.end_of_word) {
    for (uint32_t byte = 0; byte < 256; ++byte) add({static_cast<char>(byte)});
    for (const int32_t token : merged_of_rank_)
      if (!scaffold_[static_cast<size_t>(token)]) add(std::string(texts_[token]));
    return forms;
  }
  // Base symbols in both positions, because dropout can leave any of them unmerged.
  const auto add_base = [&](const std::vector<int32_t>& base) {
    for (uint32_t symbol = 0; symbol < base.size(); ++symbol) {
      if (base[symbol] == kUnknown) continue;
      std::string text;
      append_symbol(text, symbol, alphabet_);
      add(text + separator_);
      add(text);
    }
  };
  add_base(internal_base_);
  add_base(final_base_);
  // In a text that spells out "</w>", a token inside a word can end in it.
  std::vector<bool> spelled_out(texts_.size());
  const auto may_be_inside = [&](int32_t token) {
    const std::string_view text = texts_[token];
    return !text.ends_with(kEndOfWord) || text == kEndOfWord || spelled_out[static_cast<size_t>(token)];
  };
  for (bool more = true; more;) {
    more = false;
    ranks_.for_each([&](int32_t, int32_t right, int32_t rank) {
      if (!may_be_inside(right)) return;
      const int32_t merged = merged_of_rank_[static_cast<size_t>(rank)];
      if (may_be_inside(merged)) return;
      spelled_out[static_cast<size_t>(merged)] = more = true;
    });
  }
  for (int32_t token = 0; token < static_cast<int32_t>(texts_.size()); ++token) {
    if (scaffold_[static_cast<size_t>(token)]) continue;
    const std::string_view text = texts_[token];
    if (may_be_inside(token)) add(std::string(text) + separator_);
    if (!text.ends_with(kEndOfWord) || text == kEndOfWord) continue;
    const std::string stem(text.substr(0, text.size() - kEndOfWord.size()));
    if (isolates) add(stem + separator_);
    add(stem);
  }
  return forms;
}

uint32_t Segmenter::segment(std::string_view word, std::vector<Piece>& pieces, Scratch& scratch,
                            Decisions* decisions) const {
  if (inference_ == Inference::kGreedy) {
    longest_match_.segment(word, alphabet_, scratch.marked_word, scratch.end);
    pieces.clear();
    for (const uint32_t end : scratch.end) pieces.push_back({pieces.empty() ? 0 : pieces.back().end, end});
    return 0;
  }
  std::vector<int32_t>& token = scratch.token;
  std::vector<uint32_t>& end = scratch.end;
  token.clear();
  end.clear();
  if (alphabet_.bytes) {
    for_each_symbol(word, alphabet_, [&](uint32_t symbol, bool marked) {
      const auto& base = marked ? final_base_ : internal_base_;
      token.push_back(symbol < base.size() ? base[symbol] : kUnknown);
      end.push_back(static_cast<uint32_t>(token.size()));
    });
  } else {
    const auto* p = reinterpret_cast<const unsigned char*>(word.data());
    for (size_t i = 0; i < word.size();) {
      uint32_t code_point = 0;
      i += decode_code_point(p + i, word.size() - i, code_point);
      const auto& base = i == word.size() ? final_base_ : internal_base_;
      token.push_back(code_point < base.size() ? base[code_point] : kUnknown);
      end.push_back(static_cast<uint32_t>(i));
    }
  }
  const size_t base_symbols = token.size();
  uint32_t merges = 0;
  if (events_) {
    merges = events_->apply(token, end, scratch.events, decisions);
  } else if (base_symbols > kShortWord) {
    merge_long(scratch, decisions);
  } else {
    const size_t left = merge_short(token.data(), end.data(), base_symbols, decisions);
    token.resize(left);
    end.resize(left);
  }
  pieces.clear();
  uint32_t begin = 0;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] != kUnknown && base_symbols > 1) {
      const bool last = i + 1 == token.size() && !expansions_.last.empty();
      const auto& expansion = (last ? expansions_.last : expansions_.inner)[static_cast<size_t>(token[i])];
      for (size_t k = 0; k + 1 < expansion.size(); ++k) {
        const auto piece_end = begin + static_cast<uint32_t>(texts_[expansion[k]].size());
        pieces.push_back({begin, piece_end});
        begin = piece_end;
      }
    }
    pieces.push_back({begin, end[i]});
    begin = end[i];
  }
  return events_ ? merges : static_cast<uint32_t>(base_symbols - token.size());
}

// Scans the ranks of all pairs at each step, which is fastest for words of ordinary length. Returns the symbols left.
size_t Segmenter::merge_short(int32_t* token, uint32_t* end, size_t n, Decisions* decisions) const {
  int32_t rank[kShortWord];  // of each symbol with its right neighbour; plus kDropped if dropped in this step
  for (size_t i = 0; i + 1 < n; ++i) rank[i] = ranks_.find(token[i], token[i + 1]);
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
      token[i] = merged_of_rank_[static_cast<size_t>(lowest)];
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
      if (i > 0) rank[i - 1] = ranks_.find(token[i - 1], token[i]);
      if (i + 1 < n) rank[i] = ranks_.find(token[i], token[i + 1]);
    }
  }
  return n;
}

// A heap of candidates by rank, then position; each step takes all of one rank.
void Segmenter::merge_long(Scratch& scratch, Decisions* decisions) const {
  // Not a structured binding: older clangs cannot use one in a lambda.
  std::vector<int32_t>& token = scratch.token;
  std::vector<uint32_t>&end = scratch.end, &previous = scratch.previous, &next = scratch.next;
  std::vector<Scratch::Candidate>&heap = scratch.heap, &group = scratch.group, &dropped = scratch.dropped;
  constexpr uint32_t kNone = ~uint32_t{0};
  constexpr int32_t kUsedUp = kUnknown - 1;
  using Candidate = Scratch::Candidate;
  const auto n = static_cast<uint32_t>(token.size());
  previous.resize(n);
  next.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == n ? kNone : i + 1;
  }
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  const auto push_pair_at = [&](uint32_t position) {
    if (next[position] == kNone) return;
    const int32_t left = token[position], right = token[next[position]];
    const int32_t rank = ranks_.find(left, right);
    if (rank == kNoRank) return;
    heap.push_back({rank, position, left, right});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  heap.clear();
  for (uint32_t i = 0; i < n; ++i) push_pair_at(i);

  dropped.clear();
  while (!heap.empty()) {
    // All occurrences of the lowest rank, from the left.
    group.clear();
    const int32_t rank = heap.front().rank;
    while (!heap.empty() && heap.front().rank == rank) {
      std::pop_heap(heap.begin(), heap.end(), later);
      const Candidate candidate = heap.back();
      heap.pop_back();
      const bool current = token[candidate.position] == candidate.left && next[candidate.position] != kNone &&
                           token[next[candidate.position]] == candidate.right;
      if (current && (group.empty() || group.back().position != candidate.position)) group.push_back(candidate);
    }
    size_t survivors = 0;
    uint32_t taken = kNone;  // the right symbol of the previous replacement
    for (const Candidate& candidate : group) {
      if (candidate.position == taken) continue;
      if (decisions && !decisions->survives()) {
        dropped.push_back(candidate);
        continue;
      }
      taken = next[candidate.position];
      group[survivors++] = candidate;
    }
    group.resize(survivors);
    if (group.empty()) continue;  // all of this rank were dropped: try the next one in the same step
    for (const Candidate& candidate : group) {
      const uint32_t left = candidate.position, right = next[left];
      token[left] = merged_of_rank_[static_cast<size_t>(rank)];
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
    for (const Candidate& candidate : dropped) {
      heap.push_back(candidate);
      std::push_heap(heap.begin(), heap.end(), later);
    }
    dropped.clear();
  }
  size_t left = 0;
  for (uint32_t i = 0; i != kNone; i = next[i], ++left) {
    token[left] = token[i];
    end[left] = end[i];
  }
  token.resize(left);
  end.resize(left);
}

}  // namespace mt_scaffold
