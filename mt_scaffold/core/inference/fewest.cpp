// The segmentation into the fewest normal tokens and base symbols (Schmidt et al. 2024); of several, the one with the
// longest first token, then the longest second one, and so on.
#include <algorithm>

#include "inference/inference.hpp"
#include "inference/token_trie.hpp"
#include "io/interruption.hpp"

namespace mt_scaffold {

namespace {

struct FewestScratch final : Inference::Scratch {
  // By position in the word, in bytes: the number of subwords in the rest of the word, and the end of the first.
  struct Rest {
    uint32_t subwords, end;
  };
  std::vector<Rest> rest;
  TokensInWord tokens;
};

class Fewest final : public Inference {
 public:
  explicit Fewest(const MergeTable& table) : alphabet_(table.alphabet) {
    for (const std::string& token : table.normal_tokens()) tokens_.add(token, TokenTrie::place_of(token, alphabet_));
    tokens_.link();
  }

  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<FewestScratch>(); }

  uint32_t apply(std::string_view word, Symbols& symbols, Scratch& scratch, Decisions*) const override {
    auto& buffers = static_cast<FewestScratch&>(scratch);
    std::vector<FewestScratch::Rest>& rest = buffers.rest;
    const auto size = static_cast<uint32_t>(word.size());
    tokens_.find(word, alphabet_, buffers.tokens);
    if (rest.size() <= size) rest.resize(size + 1);
    rest[size] = {0, size};
    size_t steps = 0;
    for (size_t i = symbols.end.size(); i-- > 0;) {
      const uint32_t begin = i == 0 ? 0 : symbols.end[i - 1], end = symbols.end[i];
      FewestScratch::Rest best = {rest[end].subwords + 1, end};
      // Of equally good tokens, the first and longest is kept; the single symbol is the shortest.
      tokens_.for_each_token(buffers.tokens, begin, [&](size_t found, uint32_t) {
        may_interrupt(++steps);
        const uint32_t next = std::min(static_cast<uint32_t>(found), size);
        const uint32_t subwords = rest[next].subwords + 1;
        if (subwords < best.subwords || (subwords == best.subwords && best.end == end)) best = {subwords, next};
        return true;
      });
      rest[begin] = best;
    }
    symbols.end.clear();
    for (uint32_t at = 0; at < size; at = rest[at].end) symbols.end.push_back(rest[at].end);
    symbols.token.assign(symbols.end.size(), MergeTable::kUnknown);
    return 0;
  }

 private:
  const Alphabet alphabet_;
  TokenTrie tokens_;
};

}  // namespace

std::unique_ptr<const Inference> make_fewest(const MergeTable& table, const Codes&) {
  return std::make_unique<const Fewest>(table);
}

}  // namespace mt_scaffold
