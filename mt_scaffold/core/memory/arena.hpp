// Memory for strings that live as long as their owner.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "text/text.hpp"

namespace mt_scaffold {

// Each string is readable for kPadding bytes past its end.
class StringArena {
 public:
  static constexpr size_t kChunk = size_t{1} << 16;

  std::string_view store(std::string_view text) {
    const size_t needed = text.size() + kPadding;
    if (needed > left_) {
      const size_t size = std::max(kChunk, needed);
      chunks_.emplace_back(new char[size]);
      free_ = chunks_.back().get();
      left_ = size;
      bytes_ += size;
    }
    char* place = free_;
    std::memcpy(place, text.data(), text.size());
    std::memset(place + text.size(), 0, kPadding);
    // The next string may overwrite this padding, which only has to be readable.
    free_ += text.size();
    left_ -= text.size();
    return {place, text.size()};
  }

  // The memory taken, in bytes.
  size_t bytes() const { return bytes_; }

 private:
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  size_t left_ = 0;
  size_t bytes_ = 0;
};

}  // namespace mt_scaffold
