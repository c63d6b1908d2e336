// Segmenting text: blocks of lines in, blocks out, every word's segmentation computed once and then looked up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "blocks.hpp"
#include "segmenter.hpp"
#include "word_table.hpp"

namespace mt_scaffold {

// A part of a word, in bytes; a glossary entry is left as it stands, every other part is segmented as a word.
struct WordPart {
  uint32_t length;
  bool glossary;
};
// Isolates the glossary entries of a word. Called by several threads.
using Isolate = std::function<std::vector<WordPart>(std::string_view word)>;

struct Dropout {
  double p = 0;
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

// Longer words are segmented anew each time: they are rare, and would fill the table.
constexpr size_t kLongestRememberedWord = 255;

using Dictionary = std::unordered_map<std::string, int32_t>;

// Bytes that grow without being zeroed, writable for kPadding bytes past their end.
class OutputBuffer {
 public:
  char* reserve(size_t bytes) {
    if (size_ + bytes + kPadding > capacity_) grow(bytes);
    return data_.get() + size_;
  }
  void advance(size_t bytes) { size_ += bytes; }
  void append(const char* data, size_t bytes) {
    std::memcpy(reserve(bytes), data, bytes);
    size_ += bytes;
  }
  void clear() { size_ = 0; }
  void drop_last(size_t bytes) { size_ -= bytes; }
  size_t size() const { return size_; }
  std::string_view view() const { return {data_.get(), size_}; }

 private:
  void grow(size_t bytes);

  std::unique_ptr<char[]> data_;
  size_t size_ = 0, capacity_ = 0;
};

class Applier {
 public:
  // Subwords come out as text, or, where a dictionary is given, as ids of four bytes (`unknown` where it lacks one).
  Applier(std::shared_ptr<const Segmenter> segmenter, Isolate isolate, TableLimits limits,
          std::shared_ptr<const Dictionary> dictionary = nullptr, int32_t unknown = 0);

  // Segments all lines. Under dropout a line's random numbers are those of (seed, epoch, its number from 0).
  void apply(BlockReader& reader, Sink& sink, unsigned workers, const Dropout& dropout, const Tick& tick);

  // What one thread needs to segment line after line.
  class Worker;
  using WorkerPointer = std::unique_ptr<Worker, void (*)(Worker*)>;
  WorkerPointer make_worker(const Dropout& dropout);
  static void set_dropout(Worker& worker, const Dropout& dropout);

  static constexpr size_t kValid = ~size_t{0};
  // Appends the subwords of a line: text with its margins as they stand, or ids. `line` must be readable for
  // kPadding bytes past its end. Returns kValid, or the position of the first byte that is not UTF-8.
  size_t segment_line(Worker& worker, std::string_view line, Margins margins, uint64_t sentence, OutputBuffer& output);

 private:
  template <bool kDropout>
  size_t segment_line_as(Worker& worker, std::string_view line, Margins margins, uint64_t sentence,
                         OutputBuffer& output);
  const WordEntry* entry_of_new_word(Worker& worker, const HashedWord& word);
  // Segments a word that loses a merge before its decisions are over.
  void segment_with_drops(Worker& worker, const WordEntry* entry, const HashedWord& word, OutputBuffer& output);
  uint32_t segment_word(Worker& worker, std::string_view word, Decisions* decisions);
  void refresh_table(Worker& worker);

  std::shared_ptr<const Segmenter> segmenter_;
  Isolate isolate_;
  TableLimits limits_;
  std::shared_ptr<const Dictionary> dictionary_;
  int32_t unknown_;
  std::mutex table_mutex_;
  std::shared_ptr<WordTable> table_;
};

}  // namespace mt_scaffold
