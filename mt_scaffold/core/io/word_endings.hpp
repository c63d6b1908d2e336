// Counts the words of a text that end in a separator, so that their subwords could not be told apart.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "io/blocks.hpp"

namespace mt_scaffold {

// All methods may be called by several threads at once.
class WordEndings {
 public:
  explicit WordEndings(std::string separator) : separator_(std::move(separator)) {}

  // Begins another text: words found in it come after those found so far.
  void begin_text();
  // Searches a block of words between spaces. Most blocks cost one memchr.
  void look(const Block& block);

  struct Found {
    uint64_t count = 0;  // of words
    std::string first;   // its file and line
  };
  Found found() const;

 private:
  const std::string separator_;
  mutable std::mutex mutex_;
  uint64_t first_offset_ = 0;  // of the block with the first word, in all inputs of its text; 0 in later texts
  Found found_;
};

}  // namespace mt_scaffold
