// Prepares the spaces of a text as the program that codes were imported from does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "segment/token_ids.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

class ImportedSpaces {
 public:
  // `numbering` must outlive this.
  explicit ImportedSpaces(const Numbering& numbering) : numbering_(numbering) {}

  // The text to encode for a text without special tokens, readable for kPadding bytes past its end until the next call;
  // `first`: nothing precedes it in its document.
  std::string_view operator()(std::string_view text, bool first) {
    if (!numbering_.metaspace) return text;
    const bool there = text.starts_with(' ') || text.starts_with(kSpace);
    const bool wanted = numbering_.prefix == Numbering::Prefix::kAlways ||
                        (numbering_.prefix == Numbering::Prefix::kUnlessThere && !there);
    spaced_.clear();
    if (wanted && (first || numbering_.prefix_each)) spaced_ += ' ';
    for (size_t from = 0; from < text.size();) {
      const size_t found = std::min(text.find(kSpace, from), text.size());
      spaced_.append(text.substr(from, found - from));
      if (found < text.size()) spaced_ += ' ';
      from = found + kSpace.size();
    }
    const size_t size = spaced_.size();
    spaced_.append(kPadding, '\0');
    return std::string_view(spaced_).substr(0, size);
  }

 private:
  static constexpr std::string_view kSpace = "\xE2\x96\x81";

  const Numbering& numbering_;
  std::string spaced_;
};

}  // namespace mt_scaffold
