#include "segmenter.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace mt_scaffold {

namespace {

// Words of more symbols are merged with a heap, in n log n.
constexpr size_t kShortWord = 48;

uint64_t pair_hash(int32_t left, int32_t right) {
  uint64_t hash = (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right)) *
                  0x9E3779B97F4A7C15ULL;
  return hash ^ hash >> 32;
}

// Whether a pair splits the letters of "</w>": only text that spells out "</w>" can do that.
bool cuts_end_of_word(std::string_view whole, std::string_view right) {
  return whole.ends_with(kEndOfWord) && right.size() <= kEndOfWord.size();
}

}  // namespace

DropoutLaw::DropoutLaw(double p) {
  // (1 - p)^k by repeated multiplication: no library function whose last digit differs between platforms.
  double survival = 1.0;
  for (int k = 0; k < 64; ++k) {
    survival *= 1.0 - p;
    survival_.push_back(survival >= 1.0 ? ~uint64_t{0} : static_cast<uint64_t>(survival * 18446744073709551616.0));
  }
}

struct Segmenter::Scratch {
  std::vector<Symbol> symbols, merged;
  std::vector<Lookup> next_pair;  // of each symbol with its right neighbour

  // Long words: symbols linked by index, candidates in a heap.
  struct Candidate {
    uint32_t rank, position;
    int32_t left, right;  // stale where the symbols there are others by now
  };
  std::vector<uint32_t> previous, next;
  std::vector<Candidate> heap, group, dropped;
};

std::shared_ptr<Segmenter::Scratch> Segmenter::make_scratch() { return std::make_shared<Scratch>(); }

Segmenter::Segmenter(const std::vector<Merge>& merges, std::string separator,
                     const std::unordered_set<std::string>* vocabulary)
    : separator_(std::move(separator)) {
  size_t size = 16;
  while (size < merges.size() * 3) size *= 2;
  pair_table_.assign(size, {kUnknown, kUnknown, {kNoRank, kUnknown}});
  uint32_t rank = 0;
  for (const Merge& merge : merges) {
    const int32_t left = intern(merge.left), right = intern(merge.right), merged = intern(merge.left + merge.right);
    scaffold_[static_cast<size_t>(merged)] = merge.scaffold;
    size_t i = pair_hash(left, right) & (size - 1);
    while (pair_table_[i].found.rank != kNoRank && (pair_table_[i].left != left || pair_table_[i].right != right))
      i = (i + 1) & (size - 1);
    if (pair_table_[i].found.rank == kNoRank) pair_table_[i] = {left, right, {rank, merged}};
    ++rank;
  }
  // The code points that stand in merges, inside a word and at its end.
  for (size_t token = 0; token < text_.size(); ++token) {
    const std::string_view text = text_[token];
    uint32_t code_point = 0;
    const size_t length = decode_code_point(reinterpret_cast<const unsigned char*>(text.data()), text.size(), code_point);
    const std::string_view rest = text.substr(length);
    if (!rest.empty() && rest != kEndOfWord) continue;
    auto& base = rest.empty() ? internal_base_ : final_base_;
    if (base.size() <= code_point) base.resize(code_point + 1, kUnknown);
    base[code_point] = static_cast<int32_t>(token);
  }
  build_expansions(merges, vocabulary);
}

int32_t Segmenter::intern(std::string_view text) {
  const auto found = token_of_text_.find(text);
  if (found != token_of_text_.end()) return found->second;
  const auto token = static_cast<int32_t>(text_.size());
  text_.push_back(texts_.store(text));
  token_of_text_.emplace(text_.back(), token);
  scaffold_.push_back(false);
  return token;
}

inline Segmenter::Lookup Segmenter::look_up(int32_t left, int32_t right) const {
  if ((left | right) < 0) return {kNoRank, kUnknown};
  const size_t mask = pair_table_.size() - 1;
  for (size_t i = pair_hash(left, right) & mask;; i = (i + 1) & mask) {
    const PairSlot& slot = pair_table_[i];
    if (slot.left == left && slot.right == right) return slot.found;
    if (slot.found.rank == kNoRank) return {kNoRank, kUnknown};
  }
}

// What each token is printed as: demolished where it is scaffold, then split where the vocabulary lacks it.
void Segmenter::build_expansions(const std::vector<Merge>& merges, const std::unordered_set<std::string>* vocabulary) {
  struct Derivation {
    int32_t left, right;
    uint32_t rank;           // first mention
    uint32_t last_mention;
    bool cuts;
  };
  const size_t count = text_.size();
  std::vector<std::vector<Derivation>> derivations(count);
  uint32_t rank = 0;
  for (const Merge& merge : merges) {
    const int32_t left = token_of_text_.at(merge.left), right = token_of_text_.at(merge.right);
    const std::string whole = merge.left + merge.right;
    auto& known = derivations[static_cast<size_t>(token_of_text_.at(whole))];
    const auto same = std::find_if(known.begin(), known.end(),
                                   [&](const Derivation& d) { return d.left == left && d.right == right; });
    if (same == known.end()) {
      known.push_back({left, right, rank, rank, cuts_end_of_word(whole, merge.right)});
    } else {
      same->last_mention = rank;
    }
    ++rank;
  }
  // Children are shorter than what they make: shortest first, every child is known when it is needed.
  std::vector<int32_t> by_length(count);
  std::iota(by_length.begin(), by_length.end(), 0);
  std::stable_sort(by_length.begin(), by_length.end(), [&](int32_t a, int32_t b) {
    return text_[static_cast<size_t>(a)].size() < text_[static_cast<size_t>(b)].size();
  });
  const auto append = [](Expansion& to, const std::vector<Expansion>& table, int32_t token) {
    const Expansion& expansion = table[static_cast<size_t>(token)];
    if (expansion.empty()) {
      to.push_back(token);
    } else {
      to.insert(to.end(), expansion.begin(), expansion.end());
    }
  };

  std::vector<Expansion> demolished(count);
  for (const int32_t token : by_length) {
    if (!scaffold_[static_cast<size_t>(token)]) continue;
    const auto length = [&](int32_t child) {
      return std::max<size_t>(1, demolished[static_cast<size_t>(child)].size());
    };
    const auto& options = derivations[static_cast<size_t>(token)];
    const auto best = std::min_element(options.begin(), options.end(), [&](const Derivation& a, const Derivation& b) {
      return std::make_tuple(a.cuts, length(a.left) + length(a.right), a.rank) <
             std::make_tuple(b.cuts, length(b.left) + length(b.right), b.rank);
    });
    Expansion expansion;
    append(expansion, demolished, best->left);
    append(expansion, demolished, best->right);
    demolished[static_cast<size_t>(token)] = std::move(expansion);
  }
  if (!vocabulary || vocabulary->empty()) {
    inner_ = demolished;
    last_ = std::move(demolished);
    return;
  }

  // subword-nmt's filter: undo merges until every piece is in the vocabulary (and normal), or cannot be split.
  std::vector<Expansion> split_inner(count), split_last(count);
  for (const int32_t token : by_length) {
    const auto at = static_cast<size_t>(token);
    const std::string_view text = text_[at];
    const std::string_view stem = text.ends_with(kEndOfWord) ? text.substr(0, text.size() - kEndOfWord.size()) : text;
    const bool keep_inner = !scaffold_[at] && vocabulary->contains(std::string(text) + separator_);
    const bool keep_last = !scaffold_[at] && vocabulary->contains(std::string(stem));
    const auto earliest = [&](bool final) {
      const Derivation* found = nullptr;
      for (const Derivation& d : derivations[at])
        if (!(final && d.cuts) && (!found || d.last_mention < found->last_mention)) found = &d;
      return found;
    };
    if (const Derivation* d = keep_inner ? nullptr : earliest(false)) {
      append(split_inner[at], split_inner, d->left);
      append(split_inner[at], split_inner, d->right);
    }
    if (const Derivation* d = keep_last ? nullptr : earliest(true)) {
      append(split_last[at], split_inner, d->left);
      append(split_last[at], split_last, d->right);
    }
  }
  inner_.resize(count);
  last_.resize(count);
  for (size_t at = 0; at < count; ++at) {
    Expansion whole = demolished[at].empty() ? Expansion{static_cast<int32_t>(at)} : demolished[at];
    for (const int32_t token : whole) append(inner_[at], split_inner, token);
    for (size_t i = 0; i < whole.size(); ++i) append(last_[at], i + 1 < whole.size() ? split_inner : split_last, whole[i]);
    const auto itself = Expansion{static_cast<int32_t>(at)};
    if (inner_[at] == itself) inner_[at].clear();
    if (last_[at] == itself) last_[at].clear();
  }
}

std::vector<std::string> Segmenter::surface_forms() const {
  std::vector<std::string> forms;
  std::unordered_set<std::string> seen;
  const auto add = [&](std::string form) {
    if (seen.insert(form).second) forms.push_back(std::move(form));
  };
  // Base symbols in both positions: dropout can leave any of them alone.
  const auto add_base = [&](const std::vector<int32_t>& base) {
    for (uint32_t code_point = 0; code_point < base.size(); ++code_point) {
      if (base[code_point] == kUnknown) continue;
      std::string text;
      append_code_point(text, code_point);
      add(text + separator_);
      add(text);
    }
  };
  add_base(internal_base_);
  add_base(final_base_);
  for (size_t token = 0; token < text_.size(); ++token) {
    if (scaffold_[token]) continue;
    const std::string_view text = text_[token];
    if (text.ends_with(kEndOfWord)) {
      add(std::string(text.substr(0, text.size() - kEndOfWord.size())));
    } else {
      add(std::string(text) + separator_);
    }
  }
  return forms;
}

uint32_t Segmenter::segment(std::string_view word, std::vector<Piece>& pieces, Scratch& scratch,
                            Decisions* decisions) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  const auto* p = reinterpret_cast<const unsigned char*>(word.data());
  for (size_t i = 0; i < word.size();) {
    uint32_t code_point = 0;
    const size_t begin = i;
    i += decode_code_point(p + i, word.size() - i, code_point);
    const auto& base = i == word.size() ? final_base_ : internal_base_;
    const int32_t token = code_point < base.size() ? base[code_point] : kUnknown;
    symbols.push_back({token, static_cast<uint32_t>(begin), static_cast<uint32_t>(i)});
  }
  const size_t base_symbols = symbols.size();
  if (base_symbols > kShortWord) {
    scaffold_long(symbols, scratch, decisions);
  } else {
    scaffold_short(symbols, scratch, decisions);
  }
  pieces.clear();
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    const Expansion* expansion = nullptr;
    if (symbol.token != kUnknown && base_symbols > 1)
      expansion = &(i + 1 == symbols.size() ? last_ : inner_)[static_cast<size_t>(symbol.token)];
    if (!expansion || expansion->empty()) {
      pieces.push_back({symbol.begin, symbol.end});
      continue;
    }
    uint32_t begin = symbol.begin;
    for (const int32_t token : *expansion) {
      const auto end = begin + static_cast<uint32_t>(text_[static_cast<size_t>(token)].size());
      pieces.push_back({begin, end});
      begin = end;
    }
    pieces.back().end = symbol.end;  // the last one without its </w>
  }
  return static_cast<uint32_t>(base_symbols - symbols.size());
}

// Each step looks at all pairs of the word: quickest for words of ordinary length.
void Segmenter::scaffold_short(std::vector<Symbol>& symbols, Scratch& scratch, Decisions* decisions) const {
  size_t n = symbols.size();
  Lookup next_pair[kShortWord];
  bool dropped[kShortWord];
  for (size_t i = 0; i + 1 < n; ++i) next_pair[i] = look_up(symbols[i].token, symbols[i + 1].token);
  std::vector<Symbol>& merged = scratch.merged;
  while (n > 1) {
    if (decisions) std::fill_n(dropped, n, false);
    bool replaced = false;
    while (!replaced) {
      uint32_t lowest = kNoRank;
      for (size_t i = 0; i + 1 < n; ++i) {
        if (next_pair[i].rank < lowest && !(decisions && dropped[i])) lowest = next_pair[i].rank;
      }
      if (lowest == kNoRank) break;
      // Pairs of other ranks are drawn only when all of this rank are dropped: what they drew would change nothing.
      merged.clear();
      for (size_t i = 0; i < n; ++i) {
        if (i + 1 < n && next_pair[i].rank == lowest) {
          if (!decisions || decisions->survives()) {
            merged.push_back({next_pair[i].merged, symbols[i].begin, symbols[i + 1].end});
            ++i;
            replaced = true;
            continue;
          }
          dropped[i] = true;
        }
        merged.push_back(symbols[i]);
      }
    }
    if (!replaced) return;
    // Only pairs with a new symbol have to be looked up again.
    size_t from = 0;
    Lookup old_pair[kShortWord];
    std::copy_n(next_pair, n, old_pair);
    for (size_t i = 0; i < merged.size(); ++i) {
      const bool fresh = merged[i].end != symbols[from].end;
      const size_t after = from + (fresh ? 2 : 1);
      if (i + 1 < merged.size()) {
        const bool next_fresh = merged[i + 1].end != symbols[after].end;
        next_pair[i] = fresh || next_fresh ? look_up(merged[i].token, merged[i + 1].token) : old_pair[from];
      }
      from = after;
    }
    symbols.swap(merged);
    n = symbols.size();
  }
}

// Candidates in a heap by rank, then position. All of one rank make one step.
void Segmenter::scaffold_long(std::vector<Symbol>& symbols, Scratch& scratch, Decisions* decisions) const {
  const auto n = static_cast<uint32_t>(symbols.size());
  constexpr uint32_t kNone = ~uint32_t{0};
  using Candidate = Scratch::Candidate;
  auto& [all, merged, next_pair, previous, next, heap, group, dropped] = scratch;
  previous.resize(n);
  next.resize(n);
  heap.clear();
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  const auto candidate_at = [&](uint32_t position, Candidate& candidate) {
    if (next[position] == kNone) return false;
    const int32_t left = symbols[position].token, right = symbols[next[position]].token;
    const Lookup found = look_up(left, right);
    candidate = {found.rank, position, left, right};
    return found.rank != kNoRank;
  };
  const auto push = [&](const Candidate& candidate) {
    heap.push_back(candidate);
    std::push_heap(heap.begin(), heap.end(), later);
  };
  const auto is_current = [&](const Candidate& c) {
    return symbols[c.position].token == c.left && symbols[c.position].begin != symbols[c.position].end &&
           next[c.position] != kNone && symbols[next[c.position]].token == c.right;
  };
  for (uint32_t i = 0; i < n; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == n ? kNone : i + 1;
  }
  for (uint32_t i = 0; i < n; ++i) {
    Candidate candidate;
    if (candidate_at(i, candidate)) heap.push_back(candidate);
  }
  std::make_heap(heap.begin(), heap.end(), later);

  dropped.clear();
  while (!heap.empty()) {
    // One rank, from the left; every place once.
    group.clear();
    const uint32_t rank = heap.front().rank;
    while (!heap.empty() && heap.front().rank == rank) {
      std::pop_heap(heap.begin(), heap.end(), later);
      const Candidate candidate = heap.back();
      heap.pop_back();
      if (is_current(candidate) && (group.empty() || group.back().position != candidate.position))
        group.push_back(candidate);
    }
    bool replaced = false;
    size_t survivors = 0;
    uint32_t taken = kNone;  // the symbol that the replacement before has used up
    for (const Candidate& candidate : group) {
      if (candidate.position == taken) {
        taken = kNone;
        continue;
      }
      if (decisions && !decisions->survives()) {
        dropped.push_back(candidate);
        taken = kNone;
        continue;
      }
      taken = next[candidate.position];
      group[survivors++] = candidate;
    }
    group.resize(survivors);
    for (const Candidate& candidate : group) {
      const uint32_t left = candidate.position, right = next[left];
      symbols[left].token = look_up(candidate.left, candidate.right).merged;
      symbols[left].end = symbols[right].end;
      symbols[right].begin = symbols[right].end;  // used up
      next[left] = next[right];
      if (next[left] != kNone) previous[next[left]] = left;
      replaced = true;
    }
    if (!replaced) continue;  // all of this rank were dropped: the next rank, in the same step
    for (const Candidate& done : group) {
      Candidate candidate;
      if (candidate_at(done.position, candidate)) push(candidate);
      if (previous[done.position] != kNone && candidate_at(previous[done.position], candidate)) push(candidate);
    }
    // The step is over: what was dropped in it may be drawn again.
    for (const Candidate& candidate : dropped) push(candidate);
    dropped.clear();
  }
  merged.clear();
  for (uint32_t i = 0; i != kNone; i = next[i]) merged.push_back(symbols[i]);
  symbols.swap(merged);
}

}  // namespace mt_scaffold
