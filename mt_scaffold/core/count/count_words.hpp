// Text → counted words.
#pragma once

#include "count/counted_words.hpp"
#include "io/blocks.hpp"
#include "io/interruption.hpp"
#include "io/word_endings.hpp"
#include "text/pretokeniser.hpp"

namespace mt_scaffold {

// How a text is split into words.
struct Counting {
  // Splits each line (without its LF) or document; null: spaces and line ends separate words.
  const Pretokeniser* pretokeniser = nullptr;
  bool any_bytes = false;          // words need not be UTF-8; implied by a pre-tokeniser
  bool whole_inputs = false;       // each input is one document, LFs included; needs a pre-tokeniser
  WordEndings* endings = nullptr;  // ignored with a pre-tokeniser
};

// Counts the words of a text. Errors name the input, the line (or document) and the byte offset.
CountedWords count_words(BlockReader& reader, unsigned workers, const Counting& counting, const MemoryLimit& limit,
                         const Tick& tick);

}  // namespace mt_scaffold
