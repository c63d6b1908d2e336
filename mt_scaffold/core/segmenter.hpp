// Segmenting one word: Algorithm 2 of the Scaffold-BPE paper, BPE-dropout, and subword-nmt's vocabulary filter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "codes.hpp"
#include "interner.hpp"

namespace mt_scaffold {

// Where a subword lies in its word, in bytes.
struct Piece {
  uint32_t begin, end;
};

// A reproducible stream of random numbers (SplitMix64), a stream for each (seed, epoch, sentence).
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t epoch, uint64_t sentence)
      : state_(scramble(scramble(scramble(seed) + epoch) + sentence)) {}
  uint64_t next() { return scramble(state_ += 0x9E3779B97F4A7C15ULL); }

 private:
  static uint64_t scramble(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
    return z ^ z >> 31;
  }
  uint64_t state_;
};

// Draws how many decisions survive before the next one is dropped, each being dropped with probability p.
class DropoutLaw {
 public:
  explicit DropoutLaw(double p);
  // Integer comparisons only, so that every platform draws the same.
  uint64_t survivors_before_drop(RandomStream& random) const {
    const uint64_t u = random.next();
    size_t k = 0;
    while (k < survival_.size() && u < survival_[k]) ++k;
    if (k < survival_.size()) return k;
    // How many more survive follows the same law, and the binary digits of such a number are independent.
    uint64_t survivors = k;
    for (size_t digit = 0; digit < digit_.size(); ++digit)
      if (random.next() < digit_[digit]) survivors += uint64_t{1} << digit;
    return survivors;
  }

 private:
  // 2^64 times a probability: that k + 1 decisions survive, and that a digit of their number is 1.
  std::vector<uint64_t> survival_, digit_;
};

// Answers, decision by decision, whether a merge survives.
class Decisions {
 public:
  virtual ~Decisions() = default;
  virtual bool survives() = 0;
};

class Segmenter {
 public:
  // `vocabulary`: surface forms (with separator) that may stand, or null for all; an empty one filters nothing.
  Segmenter(const std::vector<Merge>& merges, std::string separator, const std::unordered_set<std::string>* vocabulary);

  // Work space of one thread.
  struct Scratch;
  static std::shared_ptr<Scratch> make_scratch();

  // Segments a word of valid UTF-8 into `pieces`. Returns how many replacements merging made.
  // With `decisions`, each merge that would be made is put to it; they come in an order that is a function of the
  // answers alone. Without a drop there are as many decisions as replacements.
  uint32_t segment(std::string_view word, std::vector<Piece>& pieces, Scratch& scratch, Decisions* decisions) const;

  const std::string& separator() const { return separator_; }
  // The surface forms that can come out: normal merged tokens and base symbols, word-internal and word-final.
  std::vector<std::string> surface_forms() const;

 private:
  static constexpr int32_t kUnknown = -1;  // a code point that stands in no merge
  static constexpr int32_t kNoRank = INT32_MAX;
  static constexpr int32_t kDropped = int32_t{1} << 30;  // above every rank

  struct PairSlot {
    int32_t left, right;
    int32_t rank;
  };
  // One way to make a token; `rank` is the first line that says so.
  struct Derivation {
    int32_t left, right, token;
    int32_t rank, last_mention;
    bool cuts_end_of_word;
  };
  // The tokens that a token is printed as; empty: as itself.
  using Expansion = std::vector<int32_t>;

  int32_t intern(std::string_view text);
  int32_t rank_of(int32_t left, int32_t right) const;
  size_t merge_short(int32_t* token, uint32_t* end, size_t n, Decisions* decisions) const;
  void merge_long(Scratch& scratch, Decisions* decisions) const;
  void build_expansions(const std::vector<Derivation>& lines, const std::unordered_set<std::string>* vocabulary);

  std::string separator_;
  Interner texts_;
  std::vector<PairSlot> pair_table_;
  std::vector<uint64_t> may_exist_;
  std::vector<int32_t> merged_of_rank_;
  std::vector<bool> scaffold_;
  std::vector<Expansion> inner_, last_;              // by token: inside the word, and at its end (empty: the same)
  std::vector<int32_t> internal_base_, final_base_;  // by code point
};

}  // namespace mt_scaffold
