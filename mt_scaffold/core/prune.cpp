#include "prune.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "errors.hpp"

namespace mt_scaffold {

namespace {

constexpr uint64_t kWordsPerTick = 1 << 14;
// What LearningText takes per symbol and per word.
constexpr uint64_t kCell = 16, kWord = kCell + 8;

class DroppedWords {
 public:
  explicit DroppedWords(Alphabet alphabet) : alphabet_(alphabet), dense_(alphabet.bytes ? 256 * 512 : 0) {}

  void add(const WordCount& entry) {
    ++dropped_.types;
    dropped_.occurrences += entry.count;
    uint32_t left = 0;
    bool first = true;
    for_each_symbol(entry.word, alphabet_, [&](uint32_t symbol, bool marked) {
      if (!first) {
        uint64_t& count = dense_.empty() ? sparse_[uint64_t{left} << 32 | symbol << 1 | marked]
                                         : dense_[left << 9 | symbol << 1 | marked];
        if (__builtin_add_overflow(count, entry.count, &count)) count = ~uint64_t{0};
        dropped_.pair_error = std::max(dropped_.pair_error, count);
      }
      left = symbol;
      first = false;
    });
  }

  const Dropped& dropped() const { return dropped_; }

 private:
  const Alphabet alphabet_;
  Dropped dropped_;
  std::vector<uint64_t> dense_;
  std::unordered_map<uint64_t, uint64_t> sparse_;
};

// How many words would remain at each threshold.
class Thresholds {
 public:
  void add(uint64_t count) {
    ++words_;
    ++by_count_[std::min<uint64_t>(count, kMost) - 1];
  }
  uint64_t words() const { return words_; }

  // The lowest threshold that leaves at most `most` words, and how many those are; 0 if none does.
  uint64_t lowest(uint64_t most, uint64_t& left) const {
    left = words_;
    for (uint64_t count = 1; count < kMost; ++count) {
      left -= by_count_[count - 1];
      if (left <= most) return count + 1;
    }
    return 0;
  }

 private:
  static constexpr uint64_t kMost = 1000;
  uint64_t words_ = 0;
  std::array<uint64_t, kMost> by_count_{};
};

InputError too_many(const Thresholds& thresholds, uint64_t fit, uint64_t max_bytes) {
  uint64_t left = 0;
  const uint64_t threshold = thresholds.lowest(fit, left);
  std::string problem = "the text has " + std::to_string(thresholds.words()) + " word types; learning from more than " +
                        std::to_string(fit) + " exceeds --max-memory (" + std::to_string(max_bytes >> 20) + " MiB): ";
  if (threshold > 0)
    problem += "drop rare words with --prune " + std::to_string(threshold) + ", which leaves " +
               std::to_string(left) + ", or raise --max-memory";
  else
    problem += "raise it";
  return InputError(problem);
}

}  // namespace

Dropped prune(WordCounts& words, uint64_t min_count, Alphabet alphabet) {
  DroppedWords dropped(alphabet);
  if (min_count <= 1) return dropped.dropped();
  for (size_t part = 0; part < WordCounts::kParts; ++part) {
    WordCounter kept;
    words.part(part).for_each([&](const WordCount& entry) {
      if (entry.count < min_count) {
        dropped.add(entry);
      } else {
        kept.add_counted(hash_word(entry.word), entry);
      }
    });
    words.part(part) = std::move(kept);
  }
  return dropped.dropped();
}

Loaded load(SortedWords& words, const Loading& loading, const Tick& tick) {
  Loaded loaded;
  DroppedWords dropped(loading.alphabet);
  Thresholds thresholds;
  uint64_t symbols = 0, kept = 0, fit = 0;
  bool fits = true;
  for (uint64_t done = 0; words.next(); ++done) {
    if (done % kWordsPerTick == 0) {
      tick(done);
      if (fits && loading.max_bytes > 0 &&
          loaded.words.bytes() + symbols * kCell + kept * kWord > loading.max_bytes) {
        fits = false;
        fit = kept;
        loaded.words = WordCounts();
      }
    }
    WordCount entry = words.entry();
    thresholds.add(entry.count);
    if (entry.count < loading.min_count) {
      dropped.add(entry);
      continue;
    }
    ++kept;
    if (!fits) continue;
    if (!loading.keep_positions) entry.first_seen = kept;
    symbols += symbols_in(entry.word, loading.alphabet);
    const HashedWord word = hash_word(entry.word);
    loaded.words.part(WordCounts::part_of(word.hash)).add_counted(word, entry);
  }
  if (!fits) throw too_many(thresholds, fit, loading.max_bytes);
  loaded.dropped = dropped.dropped();
  return loaded;
}

uint64_t learning_bytes(const WordCounts& words, Alphabet alphabet) {
  uint64_t bytes = words.bytes();
  words.for_each([&](const WordCount& entry) { bytes += symbols_in(entry.word, alphabet) * kCell + kWord; });
  return bytes;
}

}  // namespace mt_scaffold
