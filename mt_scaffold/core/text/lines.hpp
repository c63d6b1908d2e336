// The lines of a text: each ends at LF and nowhere else.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace mt_scaffold {

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // The next line without its LF; false at the end of the text.
  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    const void* found = std::memchr(rest_.data(), '\n', rest_.size());
    ended_by_lf_ = found != nullptr;
    const size_t length =
        ended_by_lf_ ? static_cast<size_t>(static_cast<const char*>(found) - rest_.data()) : rest_.size();
    line = rest_.substr(0, length);
    rest_.remove_prefix(length + ended_by_lf_);
    return true;
  }

  // Whether the last returned line had an LF, which the last line of a text may not have.
  bool ended_by_lf() const { return ended_by_lf_; }

 private:
  std::string_view rest_;
  bool ended_by_lf_ = false;
};

}  // namespace mt_scaffold
