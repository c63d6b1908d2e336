// Merges in order of rank, demolishes the scaffold tokens that are left, and merges again, but never into one of them.
#include <algorithm>

#include "errors.hpp"
#include "inference/expansions.hpp"
#include "inference/inference.hpp"

namespace mt_scaffold {

namespace {

class Remerge final : public Inference {
 public:
  Remerge(const MergeTable& table, const Codes& codes)
      : table_(table),
        normal_(codes),
        first_(make_merges(table_, codes)),
        demolished_(expand(table, {}, nullptr).inner) {
    normal_.ranks = PairTable(table.pair_of_rank.size());
    table.ranks.for_each([&](int32_t left, int32_t right, int32_t rank) {
      if (!table.is_scaffold(table.merged_of_rank[static_cast<size_t>(rank)])) normal_.ranks.set(left, right, rank);
    });
    second_ = make_merges(normal_, codes);
  }

  std::unique_ptr<Scratch> make_scratch() const override { return first_->make_scratch(); }

  uint32_t apply(std::string_view word, Symbols& symbols, Scratch& scratch, Decisions*) const override {
    first_->apply(word, symbols, scratch, nullptr);
    const auto is_scaffold = [&](int32_t token) { return token != MergeTable::kUnknown && table_.is_scaffold(token); };
    if (std::none_of(symbols.token.begin(), symbols.token.end(), is_scaffold)) return 0;
    Symbols pieces;
    for (size_t i = 0; i < symbols.token.size(); ++i) {
      const int32_t token = symbols.token[i];
      if (is_scaffold(token)) {
        uint32_t end = i == 0 ? 0 : symbols.end[i - 1];
        for (const int32_t part : demolished_[static_cast<size_t>(token)]) {
          end += static_cast<uint32_t>(table_.texts[part].size());
          pieces.token.push_back(part);
          pieces.end.push_back(end);
        }
        pieces.end.back() = symbols.end[i];  // the end-of-word marker is not part of the word
      } else {
        pieces.token.push_back(token);
        pieces.end.push_back(symbols.end[i]);
      }
    }
    symbols = std::move(pieces);
    second_->apply(word, symbols, scratch, nullptr);
    return 0;
  }

 private:
  const MergeTable& table_;
  MergeTable normal_;  // with the same token numbers, but without merges into scaffold tokens
  std::unique_ptr<const Inference> first_, second_;
  const std::vector<Expansion> demolished_;
};

}  // namespace

std::unique_ptr<const Inference> make_remerge(const MergeTable& table, const Codes& codes) {
  if (codes.header.picky) throw UsageError("remerge inference is for scaffold tokens, which PickyBPE does not have");
  return std::make_unique<const Remerge>(table, codes);
}

}  // namespace mt_scaffold
