// Counted words in bounded memory: in tables or, if those would exceed the limit, in sorted runs on disk.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "count/count_file.hpp"
#include "count/run_file.hpp"
#include "count/sorted_words.hpp"
#include "count/word_counts.hpp"

namespace mt_scaffold {

// The memory of the process besides words: Python and its modules.
inline constexpr uint64_t kProcessBytes = uint64_t{32} << 20;

struct MemoryLimit {
  uint64_t bytes = 0;  // approximate, of the whole process; 0: no limit
  std::string folder;  // for runs
};

class CountedWords {
 public:
  explicit CountedWords(MemoryLimit limit) : limit_(std::move(limit)) {}
  CountedWords(CountedWords&&) = default;

  // All words, unless they are in files; the number of lines in any case.
  WordCounts& in_memory() { return in_memory_; }
  bool in_files() const { return !files_.empty() || from_files_; }
  // Whether any were read from count files, so that they have no positions.
  bool from_files() const { return from_files_; }
  uint64_t bytes_on_disk() const;

  // These words, each once, sorted by bytes; uses up count files. This object must outlive the stream.
  std::unique_ptr<SortedWords> sorted();

  void add(std::unique_ptr<RunFile> file) { files_.push_back(std::move(file)); }
  // Adds the words of a count file, which must stay open until they are used up.
  void add(std::unique_ptr<CountFileReader> file);
  // Merges the count files into a run on disk, so that they can be closed.
  void set_aside(const Tick& tick);

 private:
  MemoryLimit limit_;
  WordCounts in_memory_;
  std::vector<std::unique_ptr<RunFile>> files_;
  std::vector<std::unique_ptr<SortedWords>> count_files_;
  bool from_files_ = false;
};

// The counts of several threads.
class SharedCounts {
 public:
  SharedCounts(const MemoryLimit& limit, unsigned workers);

  // Whether a thread must hand over its own counts.
  bool must_take(const WordCounter& own) const {
    return own.size() > most_own_words_ || own.bytes_of_long_words() > most_own_bytes_;
  }

  // Adds a thread's own counts and empties them. Threads that start at different parts rarely contend.
  void take(WordCounter& own, size_t first_part);

  // All words, moved out; nothing may be added afterwards.
  CountedWords finish(uint64_t lines);

 private:
  // Writes a part's words to disk. The caller holds its lock.
  void spill(size_t part);

  const MemoryLimit limit_;
  const unsigned workers_;
  size_t most_own_words_, most_own_bytes_ = WordCounter::kUnlimited, part_bytes_ = WordCounter::kUnlimited;
  WordCounts counts_;
  std::array<std::mutex, WordCounts::kParts> mutexes_;
  std::array<std::unique_ptr<RunFile>, WordCounts::kParts> files_;
};

}  // namespace mt_scaffold
