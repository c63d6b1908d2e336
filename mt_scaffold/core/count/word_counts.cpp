#include "count/word_counts.hpp"

#include <algorithm>
#include <charconv>

#include "io/blocks.hpp"
#include "text/lines.hpp"

namespace mt_scaffold {

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
  for_each([&](const WordCount& entry) {
    if (__builtin_add_overflow(total, entry.count, &total))
      throw InputError("the counts of all words sum to 2^64 or more; scale them down");
  });
  return total;
}

uint64_t WordCounts::word_bytes() const {
  uint64_t total = 0;
  for_each([&](const WordCount& entry) {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(entry.word.size(), entry.count, &bytes) || __builtin_add_overflow(total, bytes, &total))
      throw InputError("the words have 2^64 bytes or more; scale their counts down");
  });
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

uint64_t WordCounts::bytes() const {
  uint64_t bytes = 0;
  for (const WordCounter& part : parts_) bytes += part.bytes();
  return bytes;
}

std::vector<WordCount> WordCounts::in_order() const {
  std::vector<WordCount> entries = entries_of(*this);
  std::sort(entries.begin(), entries.end(),
            [](const WordCount& a, const WordCount& b) { return a.first_seen < b.first_seen; });
  return entries;
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
          const char* const begin = line.data();  // not past the margin: a word may begin with a CR
          const char* const end = begin + line.size() - line_margins(begin, begin + line.size()).trailing;
          const char* const space = word_end(begin, end);
          uint64_t count = 0;
          const auto parsed = space < end ? std::from_chars(space + 1, end, count) : std::from_chars_result{};
          if (space == begin || space >= end || parsed.ec != std::errc() || parsed.ptr != end || count == 0)
            throw InputError(*block.name + ": line " + std::to_string(number) +
                             (parsed.ec == std::errc::result_out_of_range
                                  ? ": the count is over 18446744073709551615 (2^64 - 1)"
                              : parsed.ec == std::errc() && parsed.ptr == end && space != begin && space < end
                                  ? ": a count of 0; remove the line"
                                  : ": expected a word, one space and its count"));
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
