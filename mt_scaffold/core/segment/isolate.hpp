// Glossary entries inside words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace mt_scaffold {

// Longer words are rare and would fill the caches of words, so they are processed each time.
constexpr size_t kLongestRememberedWord = 255;

// Bytes of a word; a glossary entry is printed as it is, any other part is segmented like a word.
struct WordPart {
  uint32_t length;
  bool glossary;
};

// Splits a word at its glossary entries. Called by several threads at once.
using Isolate = std::function<std::vector<WordPart>(std::string_view word)>;

// `isolate` with a cache of the words it was called for.
Isolate remembering(Isolate isolate);

}  // namespace mt_scaffold
