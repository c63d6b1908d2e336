// Segmenting one word: Algorithm 2 of the Scaffold-BPE paper, or PickyBPE's order of events, with BPE-dropout and
// subword-nmt's vocabulary filter.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "segment/codes.hpp"
#include "segment/dropout.hpp"
#include "segment/picky_segmenter.hpp"
#include "segment/expansions.hpp"
#include "memory/interner.hpp"
#include "segment/longest_match.hpp"
#include "memory/pair_table.hpp"
#include "segment/uniform_sampler.hpp"

namespace mt_scaffold {

// The bytes of a subword in its word.
struct Piece {
  uint32_t begin, end;
};

// What makes subwords of a word: the merges in order of rank, or the longest token from the left, again and again.
enum class Inference { kMerges, kGreedy };

class Segmenter {
 public:
  // `vocabulary`: the surface forms (with separator) to keep; null or empty keeps all. Only with kMerges.
  Segmenter(const Codes& codes, std::string separator, const std::unordered_set<std::string>* vocabulary,
            Inference inference = Inference::kMerges);
  Segmenter(const Segmenter&) = delete;

  // The buffers of one thread.
  struct Scratch;
  static std::shared_ptr<Scratch> make_scratch();

  // Segments a word, of valid UTF-8 unless symbols are bytes, into `pieces` and returns the number of merges.
  // `decisions`, if given, decides on each of them; their order is a function of the earlier answers alone. If all
  // survive, there are as many decisions as merges.
  uint32_t segment(std::string_view word, std::vector<Piece>& pieces, Scratch& scratch, Decisions* decisions) const;

  // Draws from all segmentations into subwords that the codes and the vocabulary allow. Made when first needed.
  const UniformSampler& sampler() const;

  const CodesHeader& header() const { return header_; }
  Alphabet alphabet() const { return alphabet_; }
  const std::string& separator() const { return separator_; }
  Inference inference() const { return inference_; }
  // All subwords that the codes can give: base symbols and normal merged tokens, word-internal and word-final. Without
  // an end-of-word marker, all bytes and the normal merged tokens, as bytes. `isolates`: a word may be segmented in
  // parts, so that what ends a part stands inside the word.
  std::vector<std::string> surface_forms(bool isolates = false) const;
  // The strings of the normal merged tokens, in order of the first merge that makes each.
  std::vector<std::string> merged_tokens() const;

 private:
  static constexpr int32_t kUnknown = -1;  // a symbol that is in no merge
  static constexpr int32_t kNoRank = PairTable::kNone;
  static constexpr int32_t kDropped = int32_t{1} << 30;  // above every rank

  int32_t intern(std::string_view text);
  size_t merge_short(int32_t* token, uint32_t* end, size_t n, Decisions* decisions) const;
  void merge_long(Scratch& scratch, Decisions* decisions) const;

  const CodesHeader header_;
  const Alphabet alphabet_;
  std::string separator_;
  const Inference inference_;
  LongestMatch longest_match_;  // of the normal merged tokens; empty with kMerges
  Interner texts_;
  PairTable ranks_;
  std::vector<int32_t> merged_of_rank_;
  std::unique_ptr<const EventOrder> events_;  // of PickyBPE, in place of ranks
  std::vector<bool> scaffold_;                // in no vocabulary
  Expansions expansions_;
  std::vector<int32_t> internal_base_, final_base_;  // by symbol
  mutable std::once_flag sampler_made_;
  mutable std::unique_ptr<const UniformSampler> sampler_;
};

}  // namespace mt_scaffold
