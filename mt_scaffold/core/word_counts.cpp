#include "word_counts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>

#include "blocks.hpp"
#include "lines.hpp"
#include "pretokeniser.hpp"

namespace mt_scaffold {

namespace {

// A thread merges its own counts into the shared ones at this many word types, so that memory grows with the types of
// the text and not with the threads.
constexpr size_t kOwnWords = size_t{1} << 18;

class SharedCounts {
 public:
  WordCounts counts;

  void take(WordCounter& own, size_t first_part) {
    std::vector<std::vector<WordCount>> by_part(WordCounts::kParts);
    own.for_each(
        [&](const WordCount& entry) { by_part[WordCounts::part_of(hash_word(entry.word).hash)].push_back(entry); });
    // Each thread starts at a different part, so that they rarely contend.
    for (size_t i = 0; i < WordCounts::kParts; ++i) {
      const size_t part = (first_part + i) % WordCounts::kParts;
      std::lock_guard lock(mutexes_[part]);
      for (const WordCount& entry : by_part[part]) counts.part(part).add_counted(hash_word(entry.word), entry);
    }
    own = WordCounter();
  }

 private:
  std::array<std::mutex, WordCounts::kParts> mutexes_;
};

void count_block(const Block& block, WordCounter& counter, const Counting& counting, uint64_t& lines_with_words) {
  // Words are hashed in batches, so that the table's memory is prefetched before it is needed.
  constexpr size_t kAhead = 32;
  HashedWord ahead[kAhead];
  size_t batched = 0;
  const Pretokeniser* const pretokeniser = counting.pretokeniser;
  const bool any_bytes = counting.any_bytes || pretokeniser;
  const auto count_batch = [&] {
    for (size_t i = 0; i < batched; ++i) {
      const auto position = static_cast<size_t>(ahead[i].text.data() - block.text().data());
      if (!counter.add(ahead[i], 1, block.global_offset + position, any_bytes))
        throw block.not_utf8(position + first_invalid_byte(ahead[i].text));
    }
    batched = 0;
  };
  const auto on_word = [&](std::string_view word) {
    ahead[batched] = hash_word(word);
    counter.prefetch(ahead[batched].hash);
    if (++batched == kAhead) count_batch();
  };
  if (counting.whole_inputs) {
    // Further blocks of a document do not count as documents.
    lines_with_words += block.first_offset == 0;
    pretokeniser->for_each_word(block.text().data(), block.text().data() + block.size, on_word);
    return count_batch();
  }
  std::string_view line;
  for (Lines lines(block.text()); lines.next(line);) {
    const char* const begin = line.data();
    const char* const end = begin + line.size();
    if (pretokeniser) {
      lines_with_words += begin < end;
      pretokeniser->for_each_word(begin, end, on_word);
      continue;
    }
    const Margins margins = line_margins(begin, end);
    lines_with_words += begin + margins.leading < end - margins.trailing;
    for_each_word(begin + margins.leading, end - margins.trailing, on_word);
  }
  count_batch();
}

}  // namespace

void WordCounts::merge(const WordCounts& other) {
  lines += other.lines;
  other.for_each([&](const WordCount& entry) {
    const HashedWord word = hash_word(entry.word);
    parts_[part_of(word.hash)].add_counted(word, entry);
  });
}

size_t WordCounts::size() const {
  size_t words = 0;
  for (const WordCounter& part : parts_) words += part.size();
  return words;
}

uint64_t WordCounts::total() const {
  uint64_t total = 0;
  for_each([&](const WordCount& entry) { total += entry.count; });
  return total;
}

uint64_t WordCounts::word_bytes() const {
  uint64_t total = 0;
  for_each([&](const WordCount& entry) { total += entry.word.size() * entry.count; });
  return total;
}

BaseSymbols WordCounts::base_symbols(Alphabet alphabet) const {
  if (!alphabet.end_of_word) return {alphabet.size(), 0};
  std::vector<bool> internal(alphabet.size()), final(alphabet.size());
  for_each([&](const WordCount& entry) {
    for_each_symbol(entry.word, alphabet,
                    [&](uint32_t symbol, bool marked) { (marked ? final : internal)[symbol] = true; });
  });
  const auto count = [](const std::vector<bool>& seen) {
    return static_cast<size_t>(std::count(seen.begin(), seen.end(), true));
  };
  return {count(internal), count(final)};
}

std::vector<WordCount> WordCounts::in_order() const {
  std::vector<WordCount> entries;
  entries.reserve(size());
  for_each([&](const WordCount& entry) { entries.push_back(entry); });
  std::sort(entries.begin(), entries.end(),
            [](const WordCount& a, const WordCount& b) { return a.first_seen < b.first_seen; });
  return entries;
}

WordCounts count_words(BlockReader& reader, unsigned workers, const Counting& counting, const Tick& tick) {
  if (counting.whole_inputs)
    reader.cut_with([&](std::string_view text, size_t searched) {
      return counting.pretokeniser->last_certain_cut(text, searched);
    });
  // Padded against false sharing.
  struct alignas(128) Own {
    WordCounter counter;
    uint64_t lines = 0;
  };
  SharedCounts shared;
  std::vector<Own> own(workers);
  const auto first_part = [&](unsigned worker) { return WordCounts::kParts * worker / workers; };
  for_each_block(
      reader, workers,
      [&](unsigned worker, Block& block) {
        count_block(block, own[worker].counter, counting, own[worker].lines);
        if (own[worker].counter.size() > kOwnWords) shared.take(own[worker].counter, first_part(worker));
      },
      tick);
  in_parallel(workers, [&](unsigned worker) { shared.take(own[worker].counter, first_part(worker)); });
  for (const Own& counted : own) shared.counts.lines += counted.lines;
  return std::move(shared.counts);
}

WordCounts read_word_counts(BlockReader& reader, bool any_bytes, const Tick& tick) {
  WordCounts counts;
  for_each_block(
      reader, 1,
      [&](unsigned, Block& block) {
        uint64_t number = block.first_line;
        std::string_view line;
        for (Lines lines(block.text()); lines.next(line);) {
          ++number;
          const char* const begin = line.data();  // not the margin: a word may begin with a CR
          const char* const end = begin + line.size() - line_margins(begin, begin + line.size()).trailing;
          const char* const space = word_end(begin, end);
          uint64_t count = 0;
          const auto parsed = space < end ? std::from_chars(space + 1, end, count) : std::from_chars_result{};
          if (space == begin || space >= end || parsed.ec != std::errc() || parsed.ptr != end)
            throw InputError(*block.name + ": line " + std::to_string(number) +
                             ": expected a word, one space and its count");
          const std::string_view word(begin, static_cast<size_t>(space - begin));
          const auto position = static_cast<size_t>(begin - block.text().data());
          if (!counts.add(hash_word(word), count, block.global_offset + position, any_bytes))
            throw block.not_utf8(position + first_invalid_byte(word));
        }
      },
      tick);
  return counts;
}

std::string format_vocabulary(const WordCounts& counts) {
  std::vector<WordCount> entries = counts.in_order();
  std::stable_sort(entries.begin(), entries.end(),
                   [](const WordCount& a, const WordCount& b) { return a.count > b.count; });
  std::string text;
  for (const WordCount& entry : entries)
    text.append(entry.word).append(1, ' ').append(std::to_string(entry.count)).append(1, '\n');
  return text;
}

}  // namespace mt_scaffold
