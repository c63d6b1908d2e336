// Pre-tokenisation: a document cut into words by a published pattern, byte for byte.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace mt_scaffold {

// Thread-safe. A byte that is not part of valid UTF-8 is a character of no class.
class Pretokeniser {
 public:
  static constexpr size_t kBatch = 256;

  // Returns the ends of a document's words by a pattern that the core has no matcher for; may be called by any thread.
  using Split = std::function<std::vector<size_t>(std::string_view document)>;

  // `name` is gpt2, cl100k, o200k, metaspace or metaspace-runs. With `split_digits` every number character then becomes
  // a separate word.
  Pretokeniser(std::string_view name, bool split_digits);
  Pretokeniser(Split split, bool split_digits) : split_(std::move(split)), split_digits_(split_digits) {}

  // Calls `on_word(std::string_view)` for each word of one document; concatenated, they are the document.
  // It must be readable for kPadding bytes past its end.
  template <typename OnWord>
  void for_each_word(const char* begin, const char* end, OnWord&& on_word) const {
    for_each_batch(begin, end, [&](const char* from, const char* const* ends, size_t count) {
      for (size_t i = 0; i < count; from = ends[i++])
        on_word(std::string_view(from, static_cast<size_t>(ends[i] - from)));
    });
  }

  // Calls `on_batch(const char* begin, const char* const* ends, size_t count)` for 1 to kBatch words at a time: where
  // the first begins, and where each ends.
  template <typename OnBatch>
  void for_each_batch(const char* begin, const char* end, OnBatch&& on_batch) const {
    const char* ends[kBatch];
    if (!split_) {
      for (; begin < end;) {
        const size_t count = cut_(begin, end, ends);
        on_batch(begin, ends, count);
        begin = ends[count - 1];
      }
      return;
    }
    size_t count = 0;
    const char *from = begin, *p = begin;
    for (const size_t length : pattern_lengths(begin, end)) {
      ends[count++] = p += length;
      if (count < kBatch) continue;
      on_batch(from, ends, count);
      from = p;
      count = 0;
    }
    if (count > 0) on_batch(from, ends, count);
  }

  // Returns a position where any document that begins with `text` may be cut in two without changing its words: the
  // last one that is found quickly, or 0 if there is none. `searched`: the size of a prefix searched before, in vain.
  size_t last_certain_cut(std::string_view text, size_t searched) const;

 private:
  // Writes the ends of the next words of a document, at least one and at most kBatch, and returns their number.
  using Cut = size_t (*)(const char* begin, const char* end, const char** ends);

  // The lengths of a document's words.
  std::vector<size_t> pattern_lengths(const char* begin, const char* end) const;

  Cut cut_ = nullptr;
  bool at_spaces_ = false;
  Split split_;
  bool split_digits_;
};

}  // namespace mt_scaffold
