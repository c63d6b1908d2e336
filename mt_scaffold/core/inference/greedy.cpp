// Repeatedly takes the longest token that the rest of a word begins with (Uzan et al. 2024, "longest prefix").
#include <algorithm>

#include "inference/inference.hpp"
#include "inference/token_trie.hpp"

namespace mt_scaffold {

namespace {

struct GreedyScratch final : Inference::Scratch {
  TokensInWord tokens;
  std::vector<uint32_t> ends;
};

class Greedy final : public Inference {
 public:
  explicit Greedy(const MergeTable& table) : alphabet_(table.alphabet) {
    for (const std::string& token : table.normal_tokens()) tokens_.add(token, TokenTrie::kAnywhere);
    tokens_.link();
  }

  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<GreedyScratch>(); }

  uint32_t apply(std::string_view word, Symbols& symbols, Scratch& scratch, Decisions*) const override {
    TokensInWord& tokens = static_cast<GreedyScratch&>(scratch).tokens;
    std::vector<uint32_t>& ends = static_cast<GreedyScratch&>(scratch).ends;
    tokens_.find(word, alphabet_, tokens);
    ends.clear();
    size_t begin = 0;
    for (const uint32_t end : symbols.end) {
      if (end <= begin) continue;  // inside the previous token
      size_t longest = end;
      tokens_.for_each_token(tokens, begin, [&](size_t found, uint32_t) {
        longest = found;
        return false;
      });
      begin = std::min(longest, word.size());
      ends.push_back(static_cast<uint32_t>(begin));
    }
    symbols.token.assign(ends.size(), MergeTable::kUnknown);
    symbols.end.swap(ends);
    return 0;
  }

 private:
  const Alphabet alphabet_;
  TokenTrie tokens_;
};

}  // namespace

std::unique_ptr<const Inference> make_greedy(const MergeTable& table, const Codes&) {
  return std::make_unique<const Greedy>(table);
}

}  // namespace mt_scaffold
