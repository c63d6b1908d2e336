#include "learn/prune.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "errors.hpp"

namespace mt_scaffold {

namespace {

constexpr uint64_t kWordsPerTick = 1 << 14;
// The bytes that LearningText takes per symbol and per word and, roughly, that merging adds per symbol: positions and
// pairs.
constexpr uint64_t kCell = 8, kWord = kCell + 8, kMerging = 40;

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
  std::unordered_map<uint64_t, uint64_t, NumberHash> sparse_;
};

// How many words would remain at each threshold.
class Thresholds {
 public:
  void add(uint64_t count) {
    ++words_;
    ++by_count_[std::min<uint64_t>(count, kMost) - 1];
  }
  uint64_t words() const { return words_; }

  // The lowest threshold above `present` that leaves at most `most` words, and how many those are; 0 if none does.
  uint64_t lowest(uint64_t present, uint64_t most, uint64_t& left) const {
    left = words_;
    for (uint64_t count = 1; count < kMost; ++count) {
      left -= by_count_[count - 1];
      if (left <= most && count + 1 > present) return count + 1;
    }
    return 0;
  }

 private:
  static constexpr uint64_t kMost = 1000;
  uint64_t words_ = 0;
  std::array<uint64_t, kMost> by_count_{};
};

InputError too_many(const Thresholds& thresholds, uint64_t fit, const Loading& loading) {
  uint64_t left = 0;
  const uint64_t threshold = thresholds.lowest(loading.min_count, fit, left);
  std::string problem = "the text has " + std::to_string(thresholds.words()) +
                        " word types, of which learning can hold about " + std::to_string(fit) +
                        " within --max-memory (" + std::to_string(loading.max_bytes >> 20) + " MiB): ";
  if (threshold > 0 && left > 0)
    problem += "drop rare words with --prune " + std::to_string(threshold) + ", which leaves " + std::to_string(left) +
               ", or raise --max-memory";
  else
    problem += "raise --max-memory";
  return InputError(problem);
}

// The approximate memory of learning from words. Their tables are freed once they are laid out as a text.
struct Needed {
  uint64_t symbols = 0, words = 0;

  void add(std::string_view word, Alphabet alphabet) {
    symbols += symbols_in(word, alphabet);
    ++words;
  }
  uint64_t bytes(const WordCounts& tables) const {
    return kProcessBytes + symbols * kCell + words * kWord + std::max(tables.bytes(), symbols * kMerging);
  }
};

// About how many of the words fit, if all take `bytes`.
uint64_t share_of(uint64_t words, uint64_t max_bytes, uint64_t bytes) {
  return static_cast<uint64_t>(static_cast<double>(words) * static_cast<double>(max_bytes) /
                               static_cast<double>(bytes));
}

// Of words in files, which are numbered as they come if they are from count files.
Loaded load_files(CountedWords& counted, const Loading& loading, const Tick& tick) {
  const std::unique_ptr<SortedWords> words = counted.sorted();
  Loaded loaded;
  DroppedWords dropped(loading.alphabet);
  Thresholds thresholds;
  Needed needed;
  uint64_t fit = 0;
  bool fits = true;
  const auto check = [&] {
    if (!fits || loading.max_bytes == 0) return;
    const uint64_t bytes = needed.bytes(loaded.words);
    fits = bytes <= loading.max_bytes;
    if (fits) return;
    fit = share_of(needed.words, loading.max_bytes, bytes);
    loaded.words = WordCounts();
  };
  for (uint64_t done = 0; words->next(); ++done) {
    if (done % kWordsPerTick == 0) {
      tick(done);
      check();
    }
    WordCount entry = words->entry();
    thresholds.add(entry.count);
    if (entry.count < loading.min_count) {
      dropped.add(entry);
    } else if (fits) {
      needed.add(entry.word, loading.alphabet);
      if (counted.from_files()) entry.first_seen = needed.words;
      const HashedWord word = hash_word(entry.word);
      loaded.words.part(WordCounts::part_of(word.hash)).add_counted(word, entry);
    }
  }
  check();
  if (!fits) throw too_many(thresholds, fit, loading);
  loaded.dropped = dropped.dropped();
  loaded.words.lines = counted.in_memory().lines;
  return loaded;
}

}  // namespace

Loaded load(CountedWords& counted, const Loading& loading, const Tick& tick) {
  if (counted.in_files()) return load_files(counted, loading, tick);
  WordCounts& words = counted.in_memory();
  if (loading.min_count <= 1 && loading.max_bytes == 0) return {std::exchange(words, WordCounts()), {}};
  DroppedWords dropped(loading.alphabet);
  Thresholds thresholds;
  Needed needed;
  for (size_t part = 0; part < WordCounts::kParts; ++part) {
    WordCounter kept;
    words.part(part).for_each([&](const WordCount& entry) {
      thresholds.add(entry.count);
      if (entry.count < loading.min_count) {
        dropped.add(entry);
        return;
      }
      needed.add(entry.word, loading.alphabet);
      if (loading.min_count > 1) kept.add_counted(hash_word(entry.word), entry);
    });
    if (loading.min_count > 1) words.part(part) = std::move(kept);
  }
  if (const uint64_t bytes = needed.bytes(words); loading.max_bytes > 0 && bytes > loading.max_bytes)
    throw too_many(thresholds, share_of(needed.words, loading.max_bytes, bytes), loading);
  return {std::exchange(words, WordCounts()), dropped.dropped()};
}

}  // namespace mt_scaffold
