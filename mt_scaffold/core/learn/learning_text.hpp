// The text that is being learned from, as word types with counts, in its current segmentation.
#pragma once

#include <cstdint>
#include <vector>

#include "count/word_counts.hpp"
#include "learn/pairs.hpp"
#include "learn/tokens.hpp"
#include "memory/huge_pages.hpp"
#include "text/alphabet.hpp"

namespace mt_scaffold {

class LearningText {
 public:
  // Segments the words into base symbols, frees them, and counts the pairs.
  LearningText(WordCounts words, Alphabet alphabet);

  Tokens tokens;
  Pairs pairs;

  // Replaces all occurrences of the pair by `token` and updates the frequencies of tokens and pairs.
  void replace(uint32_t pair, Token token);

  // A piece of a token that is taken apart, and the number of its base symbols.
  struct Part {
    Token token;
    uint32_t span;
  };
  // Takes a token apart, wherever it stands, and updates the frequencies of tokens and pairs. `made_by`: all pairs that
  // were ever replaced by it.
  void split(Token token, const std::vector<uint32_t>& made_by, const std::vector<Part>& parts);

  // Calls `on_pair(uint32_t pair)` for each pair whose count the last replacement, or split, raised.
  template <typename OnPair>
  void for_each_raised_pair(OnPair&& on_pair) const {
    for (const Group& group : groups_) on_pair(group.pair);
  }

 private:
  // One cell per base symbol, with a boundary cell between words. A token of several base symbols is held by its
  // first cell; its first and its last cell hold its span.
  struct Cell {
    Token token;
    uint32_t span;
    uint32_t word;
    uint32_t pair;  // with the token on the right
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
    int64_t count;
  };

  void lay_out(WordCounts words, Alphabet alphabet);
  void count_initial_pairs();
  void collect_occurrences(uint32_t pair);
  void add_occurrences(uint32_t pair, uint64_t begin, uint32_t length);
  void add_pair_at(Position left);
  void group_new_pairs(Token token);
  void add_new_pairs(Token token);

  HugeVector<Cell> cells_;
  std::vector<int64_t> word_count_;
  HugeVector<Position> occurrences_;
  std::vector<Slice> further_;
  std::vector<std::vector<Position>> placed_;  // by token: where splits put it, perhaps stale

  // Scratch of one replacement or split.
  std::vector<Position> found_, replaced_;
  std::vector<NewPair> new_pairs_;
  std::vector<Group> groups_;
  std::vector<uint32_t> left_group_, right_group_;  // by neighbour: an index + 1 into groups_, or 0
};

}  // namespace mt_scaffold
