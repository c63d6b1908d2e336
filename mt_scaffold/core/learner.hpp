// Learning merges: Algorithm 1 of the Scaffold-BPE paper, and original BPE, over word types.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "codes.hpp"
#include "huge_pages.hpp"
#include "interner.hpp"
#include "word_counter.hpp"

namespace mt_scaffold {

enum class Algorithm { kBpe, kScaffold };

struct LearnOptions {
  Algorithm algorithm = Algorithm::kScaffold;
  uint64_t symbols = 10000;   // merges (BPE) or normal merged tokens (Scaffold-BPE)
  int64_t min_frequency = 2;  // at least 1
};

struct LearnResult {
  std::vector<Merge> merges;
  uint64_t restored = 0;   // scaffold tokens that became normal again on the way
  bool exhausted = false;  // no pair reached min_frequency any more
};

class Learner {
 public:
  // Takes the words over and frees the counter.
  explicit Learner(WordCounts words);

  size_t internal_symbols() const { return internal_symbols_; }
  size_t final_symbols() const { return final_symbols_; }

  using OnMerge = std::function<void(uint64_t index, const std::string& left, const std::string& right, int64_t count)>;
  // `on_merge` may be empty; `tick` is called now and then and may throw. Call once.
  LearnResult learn(const LearnOptions& options, const OnMerge& on_merge, const std::function<void()>& tick);

 private:
  using Token = int32_t;
  using Position = uint32_t;

  // The text as word types, one cell a base symbol, words apart by a boundary cell. A token of several base
  // symbols stands in its first cell; its span stands in its first and its last cell.
  struct Cell {
    Token token;
    uint32_t span;
    uint32_t word;
    uint32_t pair;  // with the token on the right: an index into pairs_
  };
  static constexpr uint32_t kNoPair = ~uint32_t{0};
  static constexpr Token kBoundary = -1;
  static constexpr Token kInside = -2;  // a cell after the first of a token
  static constexpr Token kFresh = -3;   // the token that the running merge has just made

  // Left positions of a pair's occurrences, of which some may be stale, within occurrences_; and where more of them
  // stand that came later: an index + 1 into further_, or 0.
  struct Slice {
    uint64_t begin;
    uint32_t length;
    uint32_t further;
  };
  struct Pair {
    Token left, right;
    Slice occurrences;
  };

  enum class State : uint8_t { kBase, kUnmade, kNormal, kWaiting };
  struct TokenInfo {
    std::string_view text;
    uint64_t prefix;  // the first 8 bytes, big-endian: most comparisons need no more
    int64_t frequency = 0;
    Token left = kBoundary, right = kBoundary;  // the pair that first made it
    State state = State::kUnmade;
  };

  struct PairEntry {
    int64_t count;
    uint64_t prefix;
    uint32_t pair;
  };
  struct WaitingEntry {
    int64_t count;
    Token token;
  };

  Token intern(std::string_view text);
  uint32_t find_or_add_pair(Token left, Token right);
  void prefetch_pair_slot(Token left, Token right) const;
  void grow_pair_table();
  int compare_texts(Token a, Token b) const;
  int compare_pairs(Token a_left, Token a_right, Token b_left, Token b_right) const;
  bool before(const PairEntry& a, const PairEntry& b) const;
  bool before(const WaitingEntry& a, const WaitingEntry& b) const;
  void push_pair(uint32_t pair);
  void lower_heap_minimum();
  void settle_heads();
  int64_t head_frequency();
  void count_initial_pairs();
  // Replaces all of the pair by `token`, updates all counts, returns how often it was replaced.
  int64_t replace(uint32_t pair, Token token);
  void add_new_pairs(Token token);

  HugeVector<Cell> cells_;
  std::vector<int64_t> word_count_;
  std::vector<TokenInfo> tokens_;
  Interner texts_;
  size_t internal_symbols_ = 0, final_symbols_ = 0;

  HugeVector<Pair> pairs_;
  HugeVector<int64_t> pair_count_;  // apart, because most of the time goes into reaching the counts
  std::vector<Slice> further_;
  HugeVector<uint32_t> pair_table_;  // index + 1 into pairs_, 0: empty
  HugeVector<Position> occurrences_;
  HugeVector<PairEntry> pair_heap_;
  std::vector<WaitingEntry> waiting_heap_;
  int64_t min_frequency_ = 1;
  int64_t heap_minimum_ = std::numeric_limits<int64_t>::max();  // pairs of lower counts are not in the heap

  // Scratch of one merge.
  std::vector<Position> found_, replaced_;
  struct NewPair {
    Position position;
    uint32_t group;
    int64_t count;
  };
  struct Group {
    Token left, right;
    int64_t count;
    uint32_t length;
    uint32_t pair;
    uint64_t next;
  };
  std::vector<NewPair> new_pairs_;
  std::vector<Group> groups_;
  std::vector<uint32_t> left_group_, right_group_;  // by neighbour: index + 1 into groups_
};

}  // namespace mt_scaffold
