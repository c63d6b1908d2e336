// How many words of a text end in a separator, which their subwords would be told apart by.
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

  // Begins another text: what is found in it comes after what has been found.
  void begin_text();
  // Looks through a block of words between spaces. Most blocks cost one memchr.
  void look(const Block& block);

  // Words that have been found, and the file with the line of the first; empty if there is none.
  uint64_t count() const;
  std::string first() const;

 private:
  const std::string separator_;
  mutable std::mutex mutex_;
  uint64_t count_ = 0, text_ = 0, first_text_ = 0, first_block_ = 0;
  std::string first_;
};

}  // namespace mt_scaffold
