// Counted words on disk: sorted runs in an unnamed temporary file, which vanishes with the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "count/sorted_words.hpp"
#include "io/interruption.hpp"

namespace mt_scaffold {

// Not thread-safe while being written; afterwards any number of threads may read it.
class RunFile {
 public:
  // Creates the file in `folder`.
  explicit RunFile(std::string folder);
  ~RunFile();
  RunFile(const RunFile&) = delete;
  RunFile& operator=(const RunFile&) = delete;

  // Writes all words of a sorted stream as one run. `tick` may be empty.
  void add_run(SortedWords& words, const Tick& tick = nullptr);

  size_t runs() const { return runs_.size(); }
  uint64_t bytes() const { return bytes_; }

  // Appends a stream for each run, which reads `buffer` bytes at a time.
  void append_streams(std::vector<std::unique_ptr<SortedWords>>& streams, size_t buffer) const;

 private:
  struct Run {
    uint64_t begin, end;
  };
  class Reader;

  void write(std::string& buffer);

  const std::string folder_;
  int descriptor_;
  uint64_t bytes_ = 0;
  std::vector<Run> runs_;
};

}  // namespace mt_scaffold
