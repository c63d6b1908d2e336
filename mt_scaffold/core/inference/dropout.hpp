// The random decisions of BPE-dropout: reproducible on every platform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mt_scaffold {

// How text is segmented at random: each merge is dropped with probability `dropout`.
struct Draw {
  double dropout = 0;
  uint64_t seed = 0;
  uint64_t epoch = 0;

  bool any() const { return dropout > 0; }
};

// SplitMix64, with a separate stream for each (seed, epoch, index of the line).
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t epoch, uint64_t index)
      : state_(scramble(scramble(scramble(seed) + epoch) + index)) {}
  uint64_t next() { return scramble(state_ += 0x9E3779B97F4A7C15ULL); }

 private:
  static uint64_t scramble(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
    return z ^ z >> 31;
  }
  uint64_t state_;
};

// Draws the number of merges that survive before the next drop, if each is dropped with probability p.
class DropoutLaw {
 public:
  explicit DropoutLaw(double p);
  // Compares integers only, so that every platform draws the same numbers.
  uint64_t survivors_before_drop(RandomStream& random) const {
    const uint64_t u = random.next();
    size_t k = 0;
    while (k < survival_.size() && u < survival_[k]) ++k;
    if (k < survival_.size()) return k;
    // The number of further survivors has the same distribution, and its binary digits are independent.
    uint64_t survivors = k;
    for (size_t digit = 0; digit < digit_.size(); ++digit)
      if (random.next() < digit_[digit]) survivors += uint64_t{1} << digit;
    return survivors;
  }

 private:
  // 2^64 times the probabilities that k + 1 merges survive, and that a digit of their number is 1.
  std::vector<uint64_t> survival_, digit_;
};

// Draws, merge by merge, which ones survive.
class Decisions {
 public:
  explicit Decisions(double p) : law_(p), random_(0, 0, 0) {}

  void start(const RandomStream& random) {
    random_ = random;
    survivors_ = law_.survivors_before_drop(random_);
  }
  bool survives() {
    if (all_survive(1)) return true;
    survivors_ = law_.survivors_before_drop(random_);
    return false;
  }
  // Takes the next `count` decisions if all are to survive; otherwise takes none.
  bool all_survive(uint32_t count) {
    if (survivors_ < count) return false;
    survivors_ -= count;
    return true;
  }

 private:
  DropoutLaw law_;
  RandomStream random_;
  uint64_t survivors_ = 0;  // until the next drop
};

}  // namespace mt_scaffold
