#include "word_counter.hpp"

#include <charconv>

namespace mt_scaffold {

WordCounter count_words(BlockReader& reader, unsigned workers, const Tick& tick) {
  std::vector<WordCounter> counters(workers);
  for_each_block(
      reader, workers,
      [&](unsigned worker, Block& block) {
        WordCounter& counter = counters[worker];
        const char* const begin = block.buffer.get();
        const char* const end = begin + block.size;
        for (const char* line = begin; line < end;) {
          const void* found = std::memchr(line, '\n', static_cast<size_t>(end - line));
          const char* line_end = found ? static_cast<const char*>(found) : end;
          const Margins margins = line_margins(line, line_end);
          for_each_word(line + margins.leading, line_end - margins.trailing, [&](std::string_view word) {
            const auto position = static_cast<size_t>(word.data() - begin);
            if (!counter.add(hash_word(word), 1, block.global_offset + position))
              throw block.not_utf8(position + first_invalid_byte(word));
          });
          line = line_end + 1;
        }
      },
      tick);
  for (unsigned i = 1; i < workers; ++i) {
    counters[0].merge(counters[i]);
    counters[i] = WordCounter();
  }
  return std::move(counters[0]);
}

WordCounter read_word_counts(BlockReader& reader, const Tick& tick) {
  WordCounter counter;
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
          const char* first = line + margins.leading;
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
