// How a word becomes subwords: with the codes' merges or, for PickyBPE, with their merges and splits.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "codes/codes.hpp"
#include "inference/dropout.hpp"
#include "inference/merge_table.hpp"

namespace mt_scaffold {

// The symbols of a word: the token of each, or kUnknown, and its end in the word, in bytes.
struct Symbols {
  std::vector<int32_t> token;
  std::vector<uint32_t> end;
};

// Tokens that are always written for a word, so that no branch depends on their number if it is small.
inline constexpr size_t kTokensAtOnce = 4;

class Inference {
 public:
  virtual ~Inference() = default;

  // The buffers of one thread; a kind that needs some derives from it.
  struct Scratch {
    virtual ~Scratch() = default;
  };
  virtual std::unique_ptr<Scratch> make_scratch() const { return std::make_unique<Scratch>(); }

  // Replaces the base symbols of a word by its symbols, and returns the number of merges. Tokens other than kUnknown
  // are demolished and filtered afterwards. `decisions`, if given, decides on each merge; their order is a function of
  // the earlier answers alone. If all survive, there are as many decisions as merges.
  virtual uint32_t apply(std::string_view word, Symbols& symbols, Scratch& scratch, Decisions* decisions) const = 0;

  // The same, without decisions, for a word whose symbols are its bytes and that is readable for kPadding bytes past
  // its end. Writes its tokens to `tokens`, which has room for one per byte and for kTokensAtOnce, and returns their
  // number; 0 if only apply() can tell, as for any word of more than kMostTokens bytes.
  static constexpr size_t kMostTokens = 128;
  virtual size_t tokens_of(std::string_view /* word */, int32_t* /* tokens */) const { return 0; }
};

// The inference of these codes; `table` must outlive it.
std::unique_ptr<const Inference> make_inference(const MergeTable& table, const Codes& codes);

}  // namespace mt_scaffold
