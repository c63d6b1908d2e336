// Count files: the words of a text, sorted by bytes, each with its count, so that shards can be merged as streams.
//
//   #counts: 0.3 bytes gpt2 split-digits
//   Ġthe 31337
//   #end 1 31337
//
// The first line is the header of codes learned from these words, except for its first word. Words are in GPT-2's
// notation if symbols are bytes. The last line has the number of word types and the sum of the counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "codes/codes_header.hpp"
#include "count/sorted_words.hpp"
#include "io/blocks.hpp"
#include "io/interruption.hpp"

namespace mt_scaffold {

struct CountTotals {
  uint64_t types = 0, occurrences = 0;
};

// Writes the words of a sorted stream.
CountTotals write_count_file(SortedWords& words, const CodesHeader& header, Sink& sink, const Tick& tick);

// Reads a count file. Errors name the file and the line.
class CountFileReader : public SortedWords {
 public:
  // Reads the first line.
  explicit CountFileReader(std::unique_ptr<Source> source);
  const CodesHeader& header() const { return header_; }
  const std::string& name() const { return source_->name; }
  // An entry's first occurrence is its index in the file.
  bool next() override;

 private:
  // The next line without its LF; false at the end of the file.
  bool next_line(std::string_view& line);
  void check_end(std::string_view line);
  InputError error(const std::string& problem) const;

  const std::unique_ptr<Source> source_;
  CodesHeader header_;
  std::string buffer_, word_, last_word_;
  size_t at_ = 0;
  bool ended_ = false;
  uint64_t line_ = 0;
  CountTotals totals_;
};

}  // namespace mt_scaffold
