// Segmenting one word: inference, then demolishing and subword-nmt's vocabulary filter.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codes/codes.hpp"
#include "inference/expansions.hpp"
#include "inference/inference.hpp"
#include "inference/merge_table.hpp"
#include "segment/reachable.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

// The bytes of a subword in its word, and its token if that is known.
struct Piece {
  uint32_t begin, end;
  int32_t token = MergeTable::kUnknown;
};

class Segmenter {
 public:
  // `vocabulary`: the surface forms (with separator) to keep; null or empty keeps all.
  Segmenter(const Codes& codes, std::string separator, const StringSet* vocabulary);
  Segmenter(const Segmenter&) = delete;

  // The buffers of one thread.
  struct Scratch {
    Symbols symbols;
    LongWord long_word;
  };

  // Segments a word, of valid UTF-8 unless symbols are bytes, into `pieces` and returns the number of merges.
  // `decisions`, if given, decides on each of them; their order is a function of the earlier answers alone. If all
  // survive, there are as many decisions as merges.
  uint32_t segment(std::string_view word, std::vector<Piece>& pieces, Scratch& scratch, Decisions* decisions) const;

  // The tokens of a word before they expand, as Inference::tokens_of().
  std::optional<size_t> tokens_of(std::string_view word, int32_t* tokens) const {
    return inference_->tokens_of(word, tokens);
  }
  // Empty: the token itself. Only for codes without an end-of-word marker, and without a vocabulary.
  const Expansion& expansion(int32_t token) const { return expansions_.inner[static_cast<size_t>(token)]; }

  // Returns a collector of the subwords that dropout can make of words; this must outlive it. `every`: it drops every
  // merge.
  Reachable reachable(bool every) const;

  const CodesHeader& header() const { return header_; }
  Alphabet alphabet() const { return table_.alphabet; }
  const std::string& separator() const { return separator_; }
  // All subwords that the codes can make: base symbols and normal merged tokens, word-internal and word-final. Without
  // an end-of-word marker, all bytes and the normal merged tokens, as bytes. `isolates`: a word may be segmented in
  // parts, so that a token that ends a part can be inside the word.
  std::vector<std::string> surface_forms(bool isolates = false) const;
  // The strings of the normal merged tokens, in order of the first merge that makes each.
  std::vector<std::string> merged_tokens() const { return table_.normal_tokens(); }
  // The strings of all tokens, by number.
  const Interner& texts() const { return table_.texts; }

 private:
  const CodesHeader header_;
  const std::string separator_;
  const MergeTable table_;
  const std::unique_ptr<const Inference> inference_;
  const std::vector<Split> splits_;
  Expansions expansions_;
  std::vector<uint8_t> expands_;  // by token: whether it has an expansion, in a table that fits the processor's cache
};

}  // namespace mt_scaffold
