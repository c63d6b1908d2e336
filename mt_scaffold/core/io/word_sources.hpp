// The sources of words to segment: each returns one word after the other, readable for kPadding bytes past its end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/text.hpp"

namespace mt_scaffold {

// A copy of a line that is readable for kPadding bytes past its end.
inline std::string_view padded(std::string_view line, std::string& copy) {
  copy.assign(line).append(kPadding, '\0');
  return {copy.data(), line.size()};
}

inline Margins margins_of(std::string_view line) { return line_margins(line.data(), line.data() + line.size()); }

// The words between ASCII spaces.
class SpacedWords {
 public:
  SpacedWords(const char* begin, const char* end) : p_(begin), end_(end) {}

  bool next(std::string_view& word) {
    while (p_ < end_) {
      const char* const begin = p_;
      const char* const stop = word_end(begin, end_);
      p_ = stop + 1;
      if (stop == begin) continue;
      word = {begin, static_cast<size_t>(stop - begin)};
      return true;
    }
    return false;
  }

 private:
  const char* p_;
  const char* const end_;
};

// The words of a pre-tokeniser, given their ends.
class SplitWords {
 public:
  SplitWords(const char* begin, const std::vector<size_t>& ends) : text_(begin), ends_(ends) {}

  bool next(std::string_view& word) {
    if (i_ == ends_.size()) return false;
    word = {text_ + begin_, ends_[i_] - begin_};
    begin_ = ends_[i_++];
    return true;
  }

 private:
  const char* const text_;
  const std::vector<size_t>& ends_;
  size_t begin_ = 0, i_ = 0;
};

// Given words, each followed by kPadding bytes.
class GivenWords {
 public:
  explicit GivenWords(const std::vector<std::string>& words) : words_(words) {}

  bool next(std::string_view& word) {
    while (i_ < words_.size() && words_[i_].size() <= kPadding) ++i_;
    if (i_ == words_.size()) return false;
    word = {words_[i_].data(), words_[i_].size() - kPadding};
    ++i_;
    return true;
  }

 private:
  const std::vector<std::string>& words_;
  size_t i_ = 0;
};

}  // namespace mt_scaffold
