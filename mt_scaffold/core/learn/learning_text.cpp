#include "learn/learning_text.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "errors.hpp"
#include "io/interruption.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

namespace {

constexpr size_t kLargeScratch = size_t{1} << 16;

// glibc's malloc keeps freed memory.
void give_back_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace

LearningText::LearningText(WordCounts words, Alphabet alphabet, bool splits) : splits_(splits) {
  lay_out(std::move(words), alphabet);
  count_initial_pairs();
}

void LearningText::lay_out(WordCounts words, Alphabet alphabet) {
  size_t cell_count = 1;
  uint64_t symbols = 0;  // an upper bound on all frequencies
  bool overflow = false;
  words.for_each([&](const WordCount& entry) {
    uint64_t in_word = symbols_in(entry.word, alphabet);
    cell_count += in_word + 1;
    overflow |= __builtin_mul_overflow(in_word, entry.count, &in_word);
    overflow |= __builtin_add_overflow(symbols, in_word, &symbols);
  });
  if (overflow || symbols > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    throw InputError("the counts of the words are too high: the text has more than 2^63 symbols; scale them down");
  if (cell_count > std::numeric_limits<Position>::max())
    throw InputError("more than 4 billion symbols in distinct words; learn from a sample of the text");

  // By symbol, without and with the end-of-word marker: its token plus one, or 0 if it has none yet. Zeroed lazily by
  // the system, so that only the pages of the scripts in use take memory.
  const std::unique_ptr<Token[], Free> base(
      static_cast<Token*>(std::calloc(size_t{alphabet.size()} * 2, sizeof(Token))));
  if (!base) throw std::bad_alloc();
  std::string text;
  cells_.reserve(cell_count);
  word_count_.reserve(words.size());
  words_.reserve(cell_count);
  const auto add_boundary = [&] {
    words_.add_boundary(cells_.size());
    cells_.push_back({kBoundary, kNoPair});
  };
  add_boundary();
  const auto make_token = [&](uint32_t symbol, bool marked) {
    text.clear();
    append_symbol(text, symbol, alphabet);
    if (marked) text += kEndOfWord;
    const Token token = tokens.intern(text);
    tokens[token].state = TokenState::kBase;
    return token;
  };
  const auto lay_out_word = [&](const WordCount& entry) {
    const auto count = static_cast<int64_t>(entry.count);
    word_count_.push_back(count);
    // Called from two loops, for characters and for bytes, which are half as fast unless it is inlined into both.
    const auto add_symbol = [&](uint32_t symbol, bool marked) __attribute__((always_inline)) {
      Token& token = base[size_t{symbol} * 2 + marked];
      if (token == 0) token = make_token(symbol, marked) + 1;
      cells_.push_back({token - 1, kNoPair});
      tokens[token - 1].frequency += count;
    };
    for_each_symbol(entry.word, alphabet, add_symbol);
    add_boundary();
  };
  // Words are freed while cells are added: holding both was the memory peak of learning from distinct words. Returning
  // small amounts is not worth the page faults of getting them back.
  constexpr uint64_t kWorthGivingBack = uint64_t{32} << 20;
  uint64_t freed = 0;
  for (size_t part = 0; part < WordCounts::kParts; ++part) {
    words.part(part).for_each(lay_out_word);
    freed += words.part(part).bytes();
    words.part(part) = WordCounter();
    if (freed < kWorthGivingBack) continue;
    give_back_freed_memory();
    freed = 0;
  }
  // Before `base`: once a block that large is freed, glibc keeps more of what is freed after it.
  words = WordCounts();
  give_back_freed_memory();  // that of counting is a fifth of the peak with one thread
}

void LearningText::count_initial_pairs() {
  size_t word = 0;
  for (size_t i = 1; i + 1 < cells_.size(); ++i) {
    may_interrupt(i);
    Cell& cell = cells_[i];
    word += cell.token == kBoundary;
    if (cell.token == kBoundary || cells_[i + 1].token == kBoundary) continue;
    cell.pair = pairs.find_or_add(cell.token, cells_[i + 1].token);
    pairs.count(cell.pair) += word_count_[word];
    ++pairs[cell.pair].occurrences.length;
  }
  uint64_t begin = 0;
  for (uint32_t pair = 0; pair < pairs.size(); ++pair) {
    Slice& slice = pairs[pair].occurrences;
    slice.begin = begin;
    begin += slice.length;
    slice.length = 0;
  }
  // A merge removes an occurrence and adds at most two. Untouched room takes no memory, whereas growing would take the
  // old and the new at once.
  occurrences_.reserve(3 * begin);
  occurrences_.resize(begin);
  crowded_ = begin + begin / 4;
  for (size_t i = 1; i < cells_.size(); ++i) {
    if (cells_[i].pair == kNoPair) continue;
    Slice& slice = pairs[cells_[i].pair].occurrences;
    occurrences_[slice.begin + slice.length++] = static_cast<Position>(i);
  }
}

template <typename OnSlice>
void LearningText::for_each_slice(uint32_t pair, OnSlice&& on_slice) {
  Slice& first = pairs[pair].occurrences;
  on_slice(first);
  for (uint32_t next = first.further; next != 0; next = further_[next - 1].further) on_slice(further_[next - 1]);
}

void LearningText::replace(uint32_t pair_index, Token token) {
  const Token a = pairs[pair_index].left, b = pairs[pair_index].right;
  found_.clear();
  collect_occurrences(pair_index);
  if (!splits_) {
    // They are never read again: their room is for new pairs.
    for_each_slice(pair_index, [&](const Slice& slice) { forget(slice); });
    pairs[pair_index].occurrences = {0, 0, 0};
  }
  // Occurrences of (a, a) overlap: they are replaced from the left.
  if (a == b) std::sort(found_.begin(), found_.end());

  replaced_.clear();
  int64_t frequency = 0;
  constexpr size_t kAhead = 12;
  for (size_t i = 0; i < found_.size(); ++i) {
    may_interrupt(i);
    if (i + kAhead < found_.size()) __builtin_prefetch(&cells_[found_[i + kAhead]], 1);
    const Position position = found_[i];
    Cell& first = cells_[position];
    if (first.token == kInside || first.pair != pair_index) continue;
    const Position middle = position + span_at(position), end = middle + span_at(middle);
    const uint32_t word = words_[position];
    const int64_t count = word_count_[word];
    take_off_before(position, count);
    take_off(middle, count);
    cells_[middle].token = kInside;
    first.token = kFresh;
    first.pair = kNoPair;
    set_span(position, end - position);
    replaced_.push_back({position, word});
    frequency += count;
  }
  pairs.count(pair_index) = 0;
  if (!splits_ && occurrences_.size() + replaced_.size() > crowded_) {
    forget_stale_occurrences();
    crowded_ = occurrences_.size() + occurrences_.size() / 4;
  }
  group_new_pairs(token);
  add_new_pairs(token);
  tokens[token].frequency += frequency;
  tokens[a].frequency -= frequency;
  tokens[b].frequency -= frequency;
  // The first merges need the most scratch.
  if (new_pairs_.capacity() < kLargeScratch || new_pairs_.capacity() / 8 < new_pairs_.size()) return;
  HugeVector<Position>().swap(found_);
  HugeVector<Replaced>().swap(replaced_);
  HugeVector<NewPair>().swap(new_pairs_);
}

void LearningText::collect_occurrences(uint32_t pair) {
  for_each_slice(pair, [&](const Slice& slice) {
    const auto begin = occurrences_.begin() + static_cast<std::ptrdiff_t>(slice.begin);
    found_.insert(found_.end(), begin, begin + slice.length);
  });
}

void LearningText::forget(const Slice& slice) {
  constexpr uint32_t kLeast = 16;  // shorter ones are not worth reusing
  if (slice.length >= kLeast) forgotten_[std::bit_width(slice.length) - 1].push_back({slice.begin, slice.length, 0});
}

void LearningText::forget_stale_occurrences() {
  for (uint32_t pair = 0; pair < pairs.size(); ++pair) {
    may_interrupt(pair);
    for_each_slice(pair, [&](Slice& slice) {
      Position* const positions = occurrences_.data() + slice.begin;
      uint32_t kept = 0;
      for (uint32_t i = 0; i < slice.length; ++i) {
        constexpr uint32_t kAhead = 16;
        if (i + kAhead < slice.length) __builtin_prefetch(&cells_[positions[i + kAhead]]);
        const Cell& cell = cells_[positions[i]];
        positions[kept] = positions[i];
        kept += cell.token != kInside && cell.pair == pair;
      }
      forget({slice.begin + kept, slice.length - kept, 0});
      slice.length = kept;
    });
  }
}

// Returns where in occurrences_ `length` positions may go, possibly past its end: the caller then resizes it once.
uint64_t LearningText::room_for(uint32_t length) {
  if (length > free_.length) {
    forget(free_);
    free_ = {0, 0, 0};
    // Large ones first, so that positions added together lie together.
    for (size_t bits = forgotten_.size(); bits > 0 && size_t{1} << (bits - 1) >= length;) {
      std::vector<Slice>& slices = forgotten_[--bits];
      if (slices.empty()) continue;
      free_ = slices.back();
      slices.pop_back();
      break;
    }
  }
  if (length > free_.length) {
    end_ += length;
    return end_ - length;
  }
  free_.begin += length;
  free_.length -= length;
  return free_.begin - length;
}

// Groups the pairs of fresh tokens with their neighbours, so that each pair is looked up once.
void LearningText::group_new_pairs(Token token) {
  left_group_.resize(tokens.size());
  right_group_.resize(tokens.size());
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
    new_pairs_.push_back({position, group - 1});
  };
  for (const auto& [position, word] : replaced_) {
    const int64_t count = word_count_[word];
    if (cells_[position - 1].token != kBoundary) {
      const Position before = position - span_before(position);
      const Token x = cells_[before].token;
      if (x == token) {
        add(right_group_, token, token, token, before, count);  // made earlier, by another pair of the same string
      } else if (x != kFresh) {
        add(left_group_, x, x, token, before, count);
      }
    }
    Token y = cells_[position + span_at(position)].token;
    if (y == kBoundary) continue;
    if (y == kFresh) y = token;
    add(right_group_, y, token, y, position, count);
  }
  for (const Replaced& replaced : replaced_) cells_[replaced.position].token = token;
}

// Counts the new pairs and stores the occurrences of each in one slice.
void LearningText::add_new_pairs(Token token) {
  end_ = occurrences_.size();
  for (Group& group : groups_) {
    pairs.prefetch(group.left, group.right);
    group.next = room_for(group.length);
  }
  occurrences_.resize(end_);
  for (Group& group : groups_) {
    (group.right == token && group.left != token ? left_group_[static_cast<size_t>(group.left)]
                                                 : right_group_[static_cast<size_t>(group.right)]) = 0;
    group.pair = pairs.find_or_add(group.left, group.right);
    add_occurrences(group.pair, group.next, group.length);
    pairs.count(group.pair) += group.count;
  }
  for (const NewPair& entry : new_pairs_) {
    Group& group = groups_[entry.group];
    occurrences_[group.next++] = entry.position;
    cells_[entry.position].pair = group.pair;
  }
}

void LearningText::add_occurrences(uint32_t pair_index, uint64_t begin, uint32_t length) {
  Pair& pair = pairs[pair_index];
  const Slice slice{begin, length, pair.occurrences.further};
  if (pair.occurrences.length == 0) {
    pair.occurrences = slice;
    return;
  }
  further_.push_back(slice);
  pair.occurrences.further = static_cast<uint32_t>(further_.size());
}

void LearningText::split(Token token, const std::vector<uint32_t>& made_by, const std::vector<Part>& parts) {
  found_.clear();
  for (const uint32_t pair : made_by) collect_occurrences(pair);
  placed_.resize(tokens.size());
  std::vector<Position>& placed = placed_[static_cast<size_t>(token)];
  found_.insert(found_.end(), placed.begin(), placed.end());
  placed = {};
  replaced_.clear();
  int64_t frequency = 0;
  constexpr size_t kAhead = 12;
  for (size_t i = 0; i < found_.size(); ++i) {
    if (i + kAhead < found_.size()) __builtin_prefetch(&cells_[found_[i + kAhead]], 1);
    const Position position = found_[i];
    if (cells_[position].token != token) continue;
    const uint32_t word = words_[position];
    const int64_t count = word_count_[word];
    const Position end = position + span_at(position);
    take_off_before(position, count);
    take_off(position, count);
    Position at = position;
    for (const Part& part : parts) {
      const uint32_t span = &part == &parts.back() ? end - at : part.span;
      cells_[at] = {part.token, kNoPair};
      set_span(at, span);
      if (tokens[part.token].state != TokenState::kBase) placed_[static_cast<size_t>(part.token)].push_back(at);
      at += span;
    }
    replaced_.push_back({position, word});
    frequency += count;
  }
  new_pairs_.clear();
  for (const auto& [position, word] : replaced_) {
    if (cells_[position - 1].token != kBoundary) add_pair_at(position - span_before(position), word);
    Position at = position;
    for (size_t i = 0; i < parts.size(); ++i, at += span_at(at)) add_pair_at(at, word);
  }
  // By pair, so that the occurrences of each are in one slice.
  std::sort(new_pairs_.begin(), new_pairs_.end(), [](const NewPair& a, const NewPair& b) {
    return a.group != b.group ? a.group < b.group : a.position < b.position;
  });
  groups_.clear();
  uint64_t begin = occurrences_.size();
  for (size_t first = 0, i = 0; i < new_pairs_.size(); first = i) {
    const uint32_t pair = new_pairs_[first].group;
    for (; i < new_pairs_.size() && new_pairs_[i].group == pair; ++i) occurrences_.push_back(new_pairs_[i].position);
    const auto length = static_cast<uint32_t>(i - first);
    add_occurrences(pair, begin, length);
    groups_.push_back({pairs[pair].left, pairs[pair].right, 0, length, pair, 0});
    begin += length;
  }
  tokens[token].frequency -= frequency;
  for (const Part& part : parts) tokens[part.token].frequency += frequency;
}

// Counts the pair of a symbol and its right neighbour, once, and adds it to new_pairs_ with its number as the group.
void LearningText::add_pair_at(Position left, uint32_t word) {
  Cell& cell = cells_[left];
  const Token right = cells_[left + span_at(left)].token;
  if (cell.pair != kNoPair || right == kBoundary) return;
  cell.pair = pairs.find_or_add(cell.token, right);
  pairs.count(cell.pair) += word_count_[word];
  new_pairs_.push_back({left, cell.pair});
}

}  // namespace mt_scaffold
