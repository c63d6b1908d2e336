// The training text as word types with counts, in its current segmentation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "count/word_counts.hpp"
#include "learn/pairs.hpp"
#include "learn/tokens.hpp"
#include "learn/word_numbers.hpp"
#include "memory/huge_pages.hpp"
#include "text/alphabet.hpp"

namespace mt_scaffold {

class LearningText {
 public:
  // Segments the words into base symbols, frees them, and counts the pairs. `splits`: whether split() will be called.
  LearningText(WordCounts words, Alphabet alphabet, bool splits = false);

  Tokens tokens;
  Pairs pairs;

  // Replaces all occurrences of the pair by `token` and updates the frequencies of tokens and pairs.
  void replace(uint32_t pair, Token token);

  // A piece of a split token, and the number of its base symbols.
  struct Part {
    Token token;
    uint32_t span;
  };
  // Splits all occurrences of a token and updates the frequencies of tokens and pairs. `made_by`: all pairs that were
  // ever replaced by it.
  void split(Token token, const std::vector<uint32_t>& made_by, const std::vector<Part>& parts);

  // Calls `on_pair(uint32_t pair)` for each pair whose count the last replacement, or split, raised.
  template <typename OnPair>
  void for_each_raised_pair(OnPair&& on_pair) const {
    for (const Group& group : groups_) on_pair(group.pair);
  }

 private:
  // One cell per base symbol, with a boundary cell between words. A token of several base symbols is held by its
  // first cell; its second and its last cell hold its span.
  struct Cell {
    Token token;
    union {
      uint32_t pair;  // with the token on the right
      uint32_t span;  // in a cell inside a token
    };
  };
  static constexpr uint32_t kNoPair = ~uint32_t{0};
  static constexpr Token kBoundary = -1;
  static constexpr Token kInside = -2;  // a cell after the first of its token
  static constexpr Token kFresh = -3;   // made by the current replacement

  // The occurrences of one new pair.
  struct Group {
    Token left, right;
    int64_t count;
    uint32_t length;
    uint32_t pair;
    uint64_t next;  // where in occurrences_ the next position goes
  };
  struct NewPair {
    Position position;
    uint32_t group;
  };
  struct Replaced {
    Position position;
    uint32_t word;
  };

  // The span of the token that begins at a position, or that ends before it.
  uint32_t span_at(Position position) const {
    return cells_[position + 1].token == kInside ? cells_[position + 1].span : 1;
  }
  uint32_t span_before(Position position) const {
    return cells_[position - 1].token == kInside ? cells_[position - 1].span : 1;
  }
  // The cells after the first are inside the token already.
  void set_span(Position position, uint32_t span) {
    if (span > 1) cells_[position + 1].span = cells_[position + span - 1].span = span;
  }

  // Takes the pair of the symbol at a position, or of the one before it in the word, off its count. The pairs of a
  // fresh token were taken off when it was made.
  void take_off(Position position, int64_t count) {
    uint32_t& pair = cells_[position].pair;
    if (pair != kNoPair) pairs.count(pair) -= count;
    pair = kNoPair;
  }
  void take_off_before(Position position, int64_t count) {
    if (cells_[position - 1].token != kBoundary) take_off(position - span_before(position), count);
  }
  template <typename OnSlice>
  void for_each_slice(uint32_t pair, OnSlice&& on_slice);

  void lay_out(WordCounts words, Alphabet alphabet);
  void count_initial_pairs();
  void collect_occurrences(uint32_t pair);
  void forget(const Slice& slice);
  void forget_stale_occurrences();
  uint64_t room_for(uint32_t length);
  void add_occurrences(uint32_t pair, uint64_t begin, uint32_t length);
  void add_pair_at(Position left, uint32_t word);
  void group_new_pairs(Token token);
  void add_new_pairs(Token token);

  const bool splits_;
  HugeVector<Cell> cells_;
  WordNumbers words_;
  std::vector<int64_t> word_count_;
  HugeVector<Position> occurrences_;
  std::vector<Slice> further_;
  Slice free_{0, 0, 0};                           // of occurrences_: the next positions go here while there is room
  uint64_t crowded_ = 0;                          // the size of occurrences_ at which stale ones are forgotten
  uint64_t end_ = 0;                              // the size of occurrences_ with those that are being added
  std::array<std::vector<Slice>, 32> forgotten_;  // further free slices, by the bit width of their length
  std::vector<std::vector<Position>> placed_;     // by token: where splits put it, perhaps stale

  // Scratch of one replacement or split.
  HugeVector<Position> found_;
  HugeVector<Replaced> replaced_;
  HugeVector<NewPair> new_pairs_;
  std::vector<Group> groups_;
  std::vector<uint32_t> left_group_, right_group_;  // by neighbour: an index + 1 into groups_, or 0
};

}  // namespace mt_scaffold
