#include "word_counter.hpp"

#include <array>
#include <charconv>
#include <mutex>

namespace mt_scaffold {

namespace {

// So many word types a thread counts by itself before it brings them to the others': memory grows with the types of
// the text, not with the threads.
constexpr size_t kOwnWords = size_t{1} << 18;

// Adds a thread's own counts to those of all.
class Gathering {
 public:
  WordCounts counts;

  void bring(WordCounter& own, size_t first_part) {
    std::vector<std::vector<WordCount>> by_part(WordCounts::kParts);
    own.for_each(
        [&](const WordCount& entry) { by_part[WordCounts::part_of(hash_word(entry.word).hash)].push_back(entry); });
    // Each thread begins with another part, so that they seldom wait for one another.
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

}  // namespace

WordCounts count_words(BlockReader& reader, unsigned workers, const Tick& tick) {
  struct alignas(128) Own {
    WordCounter counter;
    uint64_t lines = 0;
  };
  Gathering gathering;
  std::vector<Own> own(workers);
  const auto first_part = [&](unsigned worker) { return WordCounts::kParts * worker / workers; };
  for_each_block(
      reader, workers,
      [&](unsigned worker, Block& block) {
        WordCounter& counter = own[worker].counter;
        const char* const begin = block.buffer.get();
        const char* const end = begin + block.size;
        // Some words at a time, so that the table's memory is on its way before it is needed.
        constexpr size_t kAhead = 32;
        HashedWord ahead[kAhead];
        size_t found_words = 0;
        const auto count_found = [&] {
          for (size_t i = 0; i < found_words; ++i) {
            const auto position = static_cast<size_t>(ahead[i].text.data() - begin);
            if (!counter.add(ahead[i], 1, block.global_offset + position))
              throw block.not_utf8(position + first_invalid_byte(ahead[i].text));
          }
          found_words = 0;
        };
        for (const char* line = begin; line < end;) {
          const void* found = std::memchr(line, '\n', static_cast<size_t>(end - line));
          const char* line_end = found ? static_cast<const char*>(found) : end;
          const Margins margins = line_margins(line, line_end);
          own[worker].lines += line + margins.leading < line_end - margins.trailing;
          for_each_word(line + margins.leading, line_end - margins.trailing, [&](std::string_view word) {
            ahead[found_words] = hash_word(word);
            counter.prefetch(ahead[found_words].hash);
            if (++found_words == kAhead) count_found();
          });
          line = line_end + 1;
        }
        count_found();
        if (counter.size() > kOwnWords) gathering.bring(counter, first_part(worker));
      },
      tick);
  in_parallel(workers, [&](unsigned worker) { gathering.bring(own[worker].counter, first_part(worker)); });
  for (const Own& counted : own) gathering.counts.lines += counted.lines;
  return std::move(gathering.counts);
}

WordCounts read_word_counts(BlockReader& reader, const Tick& tick) {
  WordCounts counter;
  for_each_block(
      reader, 1,
      [&](unsigned, Block& block) {
        const char* const begin = block.buffer.get();
        const char* const end = begin + block.size;
        uint64_t number = block.first_line;
        for (const char* line = begin; line < end;) {
          const void* found = std::memchr(line, '\n', static_cast<size_t>(end - line));
          const char* line_end = found ? static_cast<const char*>(found) : end;
          const Margins margins = line_margins(line, line_end);
          const char* first = line;  // a word may begin with a CR
          const char* last = line_end - margins.trailing;
          ++number;
          const char* space = word_end(first, last);
          uint64_t count = 0;
          const auto parsed = space < last ? std::from_chars(space + 1, last, count) : std::from_chars_result{};
          if (space == first || space >= last || parsed.ec != std::errc() || parsed.ptr != last)
            throw InputError(*block.name + ": line " + std::to_string(number) +
                             ": expected a word, one space and its count");
          const std::string_view word(first, static_cast<size_t>(space - first));
          const auto position = static_cast<size_t>(first - begin);
          if (!counter.add(hash_word(word), count, block.global_offset + position))
            throw block.not_utf8(position + first_invalid_byte(word));
          line = line_end + 1;
        }
      },
      tick);
  return counter;
}

}  // namespace mt_scaffold
