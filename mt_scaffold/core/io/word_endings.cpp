#include "io/word_endings.hpp"

#include <algorithm>

namespace mt_scaffold {

namespace {

// Whether a word ends before `at`: at a space, or at the margin of its line or document.
bool ends_word(const Block& block, size_t at) {
  const std::string_view text = block.text();
  if (at == text.size() || text[at] == ' ' || text[at] == '\n') return true;
  const std::vector<size_t>& ends = block.document_ends;
  const auto end = std::lower_bound(ends.begin(), ends.end(), at);
  if (end != ends.end() && *end == at) return true;
  if (text[at] != '\r') return false;
  const size_t after = text.find_first_not_of("\r ", at);
  return after == std::string_view::npos || text[after] == '\n' || (end != ends.end() && *end <= after);
}

}  // namespace

void WordEndings::begin_text() {
  std::lock_guard lock(mutex_);
  first_offset_ = 0;
}

void WordEndings::look(const Block& block) {
  const std::string_view text = block.text();
  uint64_t found = 0;
  size_t first = 0;
  if (separator_.empty()) return;
  for (size_t at = text.find(separator_); at != std::string_view::npos; at = text.find(separator_, at + 1)) {
    if (!ends_word(block, at + separator_.size())) continue;
    if (found++ == 0) first = at;
  }
  if (found == 0) return;
  std::lock_guard lock(mutex_);
  if (found_.count == 0 || block.global_offset < first_offset_) {
    first_offset_ = block.global_offset;
    found_.first = block.place(first);
  }
  found_.count += found;
}

WordEndings::Found WordEndings::found() const {
  std::lock_guard lock(mutex_);
  return found_;
}

}  // namespace mt_scaffold
