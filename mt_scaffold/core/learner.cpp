#include "learner.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace mt_scaffold {

namespace {

uint64_t big_endian_prefix(std::string_view text) {
  uint64_t prefix = 0;
  for (size_t i = 0; i < 8; ++i) prefix = prefix << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
  return prefix;
}

uint64_t pair_hash(int32_t left, int32_t right) {
  return mix(static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right),
             0x9E3779B97F4A7C15ULL);
}

}  // namespace

Learner::Learner(WordCounts words) {
  // Base symbols: a code point inside a word, or one at its end.
  constexpr uint32_t kCodePoints = 0x110000;
  struct Free {
    void operator()(Token* table) const { std::free(table); }
  };
  // calloc, so that only the pages of the scripts in use are ever touched.
  std::unique_ptr<Token[], Free> base(static_cast<Token*>(std::calloc(size_t{kCodePoints} * 2, sizeof(Token))));
  if (!base) throw std::bad_alloc();

  size_t cell_count = 1;
  uint64_t symbols = 0;  // of the text: no frequency of a token or pair is higher
  bool too_many = false;
  words.for_each([&](const WordCount& entry) {
    uint64_t in_word = 0;
    for (const char c : entry.word) in_word += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    cell_count += in_word + 1;
    too_many |= __builtin_mul_overflow(in_word, entry.count, &in_word);
    too_many |= __builtin_add_overflow(symbols, in_word, &symbols);
  });
  if (too_many || symbols > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    throw InputError("the counts of the words are too high: with them the text has more than 2^63 symbols");
  if (cell_count > std::numeric_limits<Position>::max())
    throw InputError("more than 4 billion symbols in distinct words; learn from a sample of the text");
  cells_.reserve(cell_count);
  word_count_.reserve(words.size());
  cells_.push_back({kBoundary, 1, 0, kNoPair});
  std::string text;
  words.for_each([&](const WordCount& entry) {
    const auto word = static_cast<uint32_t>(word_count_.size());
    word_count_.push_back(static_cast<int64_t>(entry.count));
    const auto* p = reinterpret_cast<const unsigned char*>(entry.word.data());
    const size_t n = entry.word.size();
    for (size_t i = 0; i < n;) {
      uint32_t code_point = 0;
      i += decode_code_point(p + i, n - i, code_point);
      const bool final = i == n;
      Token& token = base[code_point * 2 + final];
      if (token == 0) {
        text.clear();
        append_code_point(text, code_point);
        if (final) text += kEndOfWord;
        token = intern(text) + 1;
        tokens_[static_cast<size_t>(token - 1)].state = State::kBase;
        ++(final ? final_symbols_ : internal_symbols_);
      }
      cells_.push_back({token - 1, 1, word, kNoPair});
      tokens_[static_cast<size_t>(token - 1)].frequency += static_cast<int64_t>(entry.count);
    }
    cells_.push_back({kBoundary, 1, word, kNoPair});
  });
  words = WordCounts();
#if defined(__GLIBC__)
  malloc_trim(0);  // what the counting threads have freed is not to count against the peak of learning
#endif
}

Learner::Token Learner::intern(std::string_view text) {
  const Token token = texts_.intern(text);
  if (static_cast<size_t>(token) < tokens_.size()) return token;
  TokenInfo info;
  info.text = texts_[token];
  info.prefix = big_endian_prefix(text);
  tokens_.push_back(info);
  left_group_.push_back(0);
  right_group_.push_back(0);
  return token;
}

// ---- pairs

uint32_t Learner::find_or_add_pair(Token left, Token right) {
  if ((pairs_.size() + 1) * 2 > pair_table_.size()) grow_pair_table();
  const size_t mask = pair_table_.size() - 1;
  for (size_t i = pair_hash(left, right) & mask;; i = (i + 1) & mask) {
    const uint32_t entry = pair_table_[i];
    if (entry == 0) {
      pairs_.push_back({left, right, {0, 0, 0}});
      pair_count_.push_back(0);
      pair_table_[i] = static_cast<uint32_t>(pairs_.size());
      return static_cast<uint32_t>(pairs_.size() - 1);
    }
    if (pairs_[entry - 1].left == left && pairs_[entry - 1].right == right) return entry - 1;
  }
}

inline void Learner::prefetch_pair_slot(Token left, Token right) const {
  __builtin_prefetch(&pair_table_[pair_hash(left, right) & (pair_table_.size() - 1)]);
}

void Learner::grow_pair_table() {
  HugeVector<uint32_t>().swap(pair_table_);
  size_t size = 1 << 12;
  while (size < (pairs_.size() + 1) * 4) size *= 2;
  pair_table_.assign(size, 0);
  for (uint32_t entry = 1; entry <= pairs_.size(); ++entry) {
    size_t i = pair_hash(pairs_[entry - 1].left, pairs_[entry - 1].right) & (size - 1);
    while (pair_table_[i] != 0) i = (i + 1) & (size - 1);
    pair_table_[i] = entry;
  }
}

void Learner::count_initial_pairs() {
  for (size_t i = 1; i + 1 < cells_.size(); ++i) {
    Cell& cell = cells_[i];
    if (cell.token == kBoundary || cells_[i + 1].token == kBoundary) continue;
    cell.pair = find_or_add_pair(cell.token, cells_[i + 1].token);
    pair_count_[cell.pair] += word_count_[cell.word];
    ++pairs_[cell.pair].occurrences.length;
  }
  uint64_t begin = 0;
  for (Pair& pair : pairs_) {
    pair.occurrences.begin = begin;
    begin += pair.occurrences.length;
    pair.occurrences.length = 0;
  }
  occurrences_.resize(begin);
  for (size_t i = 1; i < cells_.size(); ++i) {
    if (cells_[i].pair == kNoPair) continue;
    Slice& slice = pairs_[cells_[i].pair].occurrences;
    occurrences_[slice.begin + slice.length++] = static_cast<Position>(i);
  }
}

// ---- the queue: pairs, and scaffold tokens that wait to return

int Learner::compare_texts(Token a, Token b) const {
  // UTF-8 sorts by bytes as it does by code points.
  return a == b ? 0 : tokens_[static_cast<size_t>(a)].text.compare(tokens_[static_cast<size_t>(b)].text);
}

int Learner::compare_pairs(Token a_left, Token a_right, Token b_left, Token b_right) const {
  const int by_left = compare_texts(a_left, b_left);
  return by_left != 0 ? by_left : compare_texts(a_right, b_right);
}

bool Learner::before(const PairEntry& a, const PairEntry& b) const {
  if (a.count != b.count) return a.count < b.count;
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  const Pair &x = pairs_[a.pair], &y = pairs_[b.pair];
  return compare_pairs(x.left, x.right, y.left, y.right) < 0;
}

bool Learner::before(const WaitingEntry& a, const WaitingEntry& b) const {
  if (a.count != b.count) return a.count < b.count;
  const TokenInfo &x = tokens_[static_cast<size_t>(a.token)], &y = tokens_[static_cast<size_t>(b.token)];
  return compare_pairs(x.left, x.right, y.left, y.right) < 0;
}

void Learner::push_pair(uint32_t pair) {
  const int64_t count = pair_count_[pair];
  if (count < heap_minimum_) return;
  pair_heap_.push_back({count, tokens_[static_cast<size_t>(pairs_[pair].left)].prefix, pair});
  std::push_heap(pair_heap_.begin(), pair_heap_.end(), [this](auto& a, auto& b) { return before(a, b); });
}

// Pairs come into the heap when their counts are next: most never do, and a small heap is quick.
void Learner::lower_heap_minimum() {
  const int64_t before = heap_minimum_;
  heap_minimum_ = std::max(min_frequency_, before / 2);
  for (uint32_t pair = 0; pair < pairs_.size(); ++pair)
    if (pair_count_[pair] < before) push_pair(pair);
}

// Counts fall while entries lie in the heaps: what has come to the top too early goes back to its place.
void Learner::settle_heads() {
  const auto order = [this](auto& a, auto& b) { return before(a, b); };
  while (!pair_heap_.empty() || heap_minimum_ > min_frequency_) {
    if (pair_heap_.empty()) {
      lower_heap_minimum();
      continue;
    }
    const PairEntry top = pair_heap_.front();
    if (pair_count_[top.pair] == top.count) break;
    std::pop_heap(pair_heap_.begin(), pair_heap_.end(), order);
    pair_heap_.pop_back();
    if (pair_count_[top.pair] < top.count) push_pair(top.pair);
  }
  while (!waiting_heap_.empty()) {
    const WaitingEntry top = waiting_heap_.front();
    const TokenInfo& info = tokens_[static_cast<size_t>(top.token)];
    if (info.state == State::kWaiting && info.frequency == top.count) break;
    std::pop_heap(waiting_heap_.begin(), waiting_heap_.end(), order);
    if (info.state == State::kWaiting && info.frequency > 0 && info.frequency < top.count) {
      waiting_heap_.back().count = info.frequency;
      std::push_heap(waiting_heap_.begin(), waiting_heap_.end(), order);
    } else {
      waiting_heap_.pop_back();
    }
  }
}

int64_t Learner::head_frequency() {
  settle_heads();
  int64_t frequency = waiting_heap_.empty() ? 0 : waiting_heap_.front().count;
  if (!pair_heap_.empty()) return std::max(frequency, pair_heap_.front().count);
  // Pairs below the minimum are not in the heap; this happens once, when learning is about to end.
  for (const int64_t count : pair_count_) frequency = std::max(frequency, count);
  return frequency;
}

// ---- merging

int64_t Learner::replace(uint32_t pair_index, Token token) {
  const Token a = pairs_[pair_index].left, b = pairs_[pair_index].right;
  found_.clear();
  const auto collect = [&](const Slice& slice) {
    const auto begin = occurrences_.begin() + static_cast<std::ptrdiff_t>(slice.begin);
    found_.insert(found_.end(), begin, begin + slice.length);
  };
  collect(pairs_[pair_index].occurrences);
  for (uint32_t next = pairs_[pair_index].occurrences.further; next != 0; next = further_[next - 1].further)
    collect(further_[next - 1]);
  // Occurrences of (a, a) overlap: they are replaced from the left.
  if (a == b) std::sort(found_.begin(), found_.end());

  replaced_.clear();
  int64_t frequency = 0;
  constexpr size_t kAhead = 12;
  // A pair that the text loses; those of a fresh token went when that token was made.
  const auto lose = [&](uint32_t& pair, int64_t count) {
    if (pair != kNoPair && pair != pair_index) pair_count_[pair] -= count;
    pair = kNoPair;
  };
  for (size_t i = 0; i < found_.size(); ++i) {
    if (i + kAhead < found_.size()) __builtin_prefetch(&cells_[found_[i + kAhead]], 1);
    const Position position = found_[i];
    Cell& first = cells_[position];
    if (first.pair != pair_index) continue;
    Cell& second = cells_[position + first.span];
    const uint32_t span = first.span + second.span;
    const int64_t count = word_count_[first.word];
    if (cells_[position - 1].token != kBoundary) lose(cells_[position - cells_[position - 1].span].pair, count);
    lose(second.pair, count);
    second.token = kInside;
    first.token = kFresh;
    first.pair = kNoPair;
    first.span = span;
    cells_[position + span - 1].span = span;
    replaced_.push_back(position);
    frequency += count;
  }
  pair_count_[pair_index] = 0;
  add_new_pairs(token);
  tokens_[static_cast<size_t>(token)].frequency += frequency;
  tokens_[static_cast<size_t>(a)].frequency -= frequency;
  tokens_[static_cast<size_t>(b)].frequency -= frequency;
  return frequency;
}

// Counts the pairs that the fresh tokens form with their neighbours, and gives each pair its occurrences in one piece.
void Learner::add_new_pairs(Token token) {
  new_pairs_.clear();
  groups_.clear();
  const auto add = [&](std::vector<uint32_t>& group_of, Token neighbour, Token left, Token right, Position position,
                       int64_t count) {
    uint32_t& group = group_of[static_cast<size_t>(neighbour)];
    if (group == 0) {
      groups_.push_back({left, right, 0, 0, kNoPair, 0});
      group = static_cast<uint32_t>(groups_.size());
    }
    groups_[group - 1].count += count;
    ++groups_[group - 1].length;
    new_pairs_.push_back({position, group - 1, count});
  };
  for (const Position position : replaced_) {
    const int64_t count = word_count_[cells_[position].word];
    if (cells_[position - 1].token != kBoundary) {
      const Position before = position - cells_[position - 1].span;
      const Token x = cells_[before].token;
      if (x == token) {
        add(right_group_, token, token, token, before, count);  // a token of the same string made earlier
      } else if (x != kFresh) {
        add(left_group_, x, x, token, before, count);
      }
    }
    Token y = cells_[position + cells_[position].span].token;
    if (y == kBoundary) continue;
    if (y == kFresh) y = token;
    add(right_group_, y, token, y, position, count);
  }
  for (const Position position : replaced_) cells_[position].token = token;

  uint64_t begin = occurrences_.size();
  occurrences_.resize(begin + new_pairs_.size());
  for (Group& group : groups_) {
    prefetch_pair_slot(group.left, group.right);
    group.next = begin;
    begin += group.length;
  }
  for (Group& group : groups_) {
    (group.right == token && group.left != token ? left_group_[static_cast<size_t>(group.left)]
                                                 : right_group_[static_cast<size_t>(group.right)]) = 0;
    group.pair = find_or_add_pair(group.left, group.right);
    Pair& pair = pairs_[group.pair];
    Slice slice{group.next, group.length, 0};
    if (pair.occurrences.length == 0) {
      pair.occurrences = slice;
    } else {
      slice.further = pair.occurrences.further;
      further_.push_back(slice);
      pair.occurrences.further = static_cast<uint32_t>(further_.size());
    }
    pair_count_[group.pair] += group.count;
    push_pair(group.pair);
  }
  for (const NewPair& entry : new_pairs_) {
    Group& group = groups_[entry.group];
    occurrences_[group.next++] = entry.position;
    cells_[entry.position].pair = group.pair;
  }
}

LearnResult Learner::learn(const LearnOptions& options, const OnMerge& on_merge, const std::function<void()>& tick) {
  const bool scaffold = options.algorithm == Algorithm::kScaffold;
  min_frequency_ = options.min_frequency;
  count_initial_pairs();
  LearnResult result;
  struct Made {
    Token left, right, token;
  };
  std::vector<Made> merges;
  std::string text;
  uint64_t normal = 0;
  const auto order = [this](auto& a, auto& b) { return before(a, b); };
  for (uint64_t iteration = 0; (scaffold ? normal : merges.size()) < options.symbols; ++iteration) {
    if (iteration % 256 == 0) tick();
    settle_heads();
    if (!waiting_heap_.empty() && waiting_heap_.front().count >= min_frequency_) {
      const WaitingEntry& waiting = waiting_heap_.front();
      TokenInfo& info = tokens_[static_cast<size_t>(waiting.token)];
      bool is_head = true;
      if (!pair_heap_.empty()) {
        const PairEntry& top = pair_heap_.front();
        const Pair& pair = pairs_[top.pair];
        is_head = waiting.count != top.count ? waiting.count > top.count
                                             : compare_pairs(info.left, info.right, pair.left, pair.right) >= 0;
      }
      if (is_head) {
        info.state = State::kNormal;
        ++normal;
        ++result.restored;
        std::pop_heap(waiting_heap_.begin(), waiting_heap_.end(), order);
        waiting_heap_.pop_back();
        continue;
      }
    }
    if (pair_heap_.empty()) {
      result.exhausted = true;
      break;
    }
    const PairEntry top = pair_heap_.front();
    std::pop_heap(pair_heap_.begin(), pair_heap_.end(), order);
    pair_heap_.pop_back();
    const Token a = pairs_[top.pair].left, b = pairs_[top.pair].right;
    text.assign(tokens_[static_cast<size_t>(a)].text).append(tokens_[static_cast<size_t>(b)].text);
    const Token token = intern(text);
    if (on_merge)
      on_merge(merges.size(), std::string(tokens_[static_cast<size_t>(a)].text),
               std::string(tokens_[static_cast<size_t>(b)].text), top.count);
    merges.push_back({a, b, token});
    replace(top.pair, token);

    TokenInfo& info = tokens_[static_cast<size_t>(token)];
    if (info.left == kBoundary) {
      info.left = a;
      info.right = b;
      if (is_base_symbol(info.text)) info.state = State::kBase;
    }
    if (info.state == State::kUnmade || info.state == State::kWaiting) {
      info.state = State::kNormal;
      ++normal;
    }
    if (!scaffold) continue;
    // The modification of Scaffold-BPE: a child that has become rarer than the next candidate is scaffold.
    const int64_t head = head_frequency();
    for (const Token child : {a, b}) {
      TokenInfo& child_info = tokens_[static_cast<size_t>(child)];
      if (child_info.state != State::kNormal || child_info.frequency >= head) continue;
      child_info.state = State::kWaiting;
      --normal;
      if (child_info.frequency > 0) {
        waiting_heap_.push_back({child_info.frequency, child});
        std::push_heap(waiting_heap_.begin(), waiting_heap_.end(), order);
      }
    }
  }
  result.merges.reserve(merges.size());
  for (const auto& [a, b, token] : merges) {
    result.merges.push_back({std::string(tokens_[static_cast<size_t>(a)].text),
                             std::string(tokens_[static_cast<size_t>(b)].text),
                             tokens_[static_cast<size_t>(token)].state == State::kWaiting});
  }
  return result;
}

}  // namespace mt_scaffold
