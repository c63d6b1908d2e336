// The state of one thread of an Applier.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/interruption.hpp"
#include "segment/applier.hpp"
#include "segment/word_cache.hpp"

namespace mt_scaffold {

// A word that is not in the thread's cache, and the gap left for its ids.
struct MissingWord {
  HashedWord word;
  int32_t* gap;
};

constexpr size_t kAhead = 64;  // words whose memory is fetched before it is needed

// Padded against false sharing.
class alignas(128) Applier::Worker {
 public:
  explicit Worker(const Draw& draw) : draw(draw), decisions(draw.dropout) {}

  Draw draw;
  Decisions decisions;  // on this line

  std::shared_ptr<WordTable> table;
  WordTable::Arena arena;
  std::unique_ptr<WordCache> cache;
  size_t words_looked_up = 0, words_missed = 0;  // in the cache, since the last decision on it
  size_t words_aside = 0;                        // still to bypass the cache
  std::vector<MissingWord> missing;              // of the current batch
  std::array<HashedWord, kAhead> hashed;         // here, as a loop over each line would initialise them again

  Segmenter::Scratch scratch;
  std::vector<Piece> pieces, part_pieces;
  std::string text;  // the output of the last segmented word
  OutputBuffer long_entry, output;

  // Checks for an interruption now and then; `bytes`: of the text to be segmented until the next call.
  void check_before(size_t bytes) {
    constexpr size_t kUnchecked = size_t{1} << 18;  // milliseconds of text, a tenth of a second of slow words
    unchecked += bytes;
    if (unchecked < kUnchecked) return;
    unchecked = 0;
    Interruptible::check();
  }
  size_t unchecked = 0;

  // The memory of its buffers, which one long word can fill.
  size_t bytes() const {
    const LongWord& word = scratch.long_word;
    const auto of = [](const auto&... buffers) { return (... + (buffers.capacity() * sizeof buffers[0])); };
    return of(scratch.symbols.token, scratch.symbols.end, word.token, word.previous, word.next, word.heap, word.group,
              word.dropped, word.dropped_now, pieces, part_pieces, text) +
           long_entry.capacity() + output.capacity();
  }
};

}  // namespace mt_scaffold
