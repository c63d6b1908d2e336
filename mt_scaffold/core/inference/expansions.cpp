#include "inference/expansions.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "text/alphabet.hpp"

namespace mt_scaffold {

namespace {

// One pair that makes a token.
struct Derivation {
  int32_t left, right, token;
  int32_t rank, last_mention;  // the first and the last line with this pair
};

void append(Expansion& to, const std::vector<Expansion>& expansions, int32_t token) {
  const Expansion& expansion = expansions[static_cast<size_t>(token)];
  if (expansion.empty()) {
    to.push_back(token);
  } else {
    to.insert(to.end(), expansion.begin(), expansion.end());
  }
}

class Expander {
 public:
  Expander(const Interner& texts, Alphabet alphabet, const std::vector<bool>& scaffold,
           const std::vector<Derivation>& lines, bool scaffold_only)
      : texts_(texts), alphabet_(alphabet), scaffold_(scaffold), derivations_(texts.size()), made_(texts.size()) {
    for (size_t token = 0; token < texts.size(); ++token)
      made_[token] = is_base_symbol(texts[static_cast<int32_t>(token)], alphabet);
    for (const Derivation& line : lines) {
      made_[static_cast<size_t>(line.token)] = true;
      if (scaffold_only && !is_scaffold(line.token)) continue;
      auto& known = derivations_[static_cast<size_t>(line.token)];
      const auto same = std::find_if(known.begin(), known.end(),
                                     [&](const Derivation& d) { return d.left == line.left && d.right == line.right; });
      if (same == known.end()) {
        known.push_back(line);
      } else {
        same->last_mention = line.rank;
      }
    }
    for (size_t token = 0; token < texts.size(); ++token)
      if (!scaffold_only || scaffold_[token]) shortest_first_.push_back(static_cast<int32_t>(token));
    std::stable_sort(shortest_first_.begin(), shortest_first_.end(),
                     [&](int32_t a, int32_t b) { return texts_[a].size() < texts_[b].size(); });
  }

  // Of several derivations the shortest result wins, then the earliest merge.
  std::vector<Expansion> demolish() const {
    std::vector<Expansion> demolished(texts_.size());
    const auto length = [&](int32_t child) {
      return std::max<size_t>(1, demolished[static_cast<size_t>(child)].size());
    };
    // Children are shorter than their token, so they are expanded before it.
    for (const int32_t token : shortest_first_) {
      if (!is_scaffold(token)) continue;
      const auto& options = derivations_[static_cast<size_t>(token)];
      const auto best = std::min_element(options.begin(), options.end(), [&](const Derivation& a, const Derivation& b) {
        return std::make_tuple(cuts_end_of_word(a), never(a), length(a.left) + length(a.right), a.rank) <
               std::make_tuple(cuts_end_of_word(b), never(b), length(b.left) + length(b.right), b.rank);
      });
      Expansion expansion;
      append(expansion, demolished, best->left);
      append(expansion, demolished, best->right);
      demolished[static_cast<size_t>(token)] = std::move(expansion);
    }
    return demolished;
  }

  // subword-nmt's filter: undo merges until every piece is in the vocabulary (and normal) or a base symbol.
  Expansions filter(const std::vector<Expansion>& demolished, const std::string& separator,
                    const StringSet& vocabulary) const {
    const size_t count = texts_.size();
    std::vector<Expansion> split_inner(count), split_last(count);
    for (const int32_t token : shortest_first_) {
      const auto at = static_cast<size_t>(token);
      const std::string_view text = texts_[token];
      const std::string_view stem = is_marked(text, alphabet_) ? text.substr(0, text.size() - kEndOfWord.size()) : text;
      const bool keep_inner = !scaffold_[at] && vocabulary.contains(std::string(text) + separator);
      const bool keep_last = !scaffold_[at] && vocabulary.contains(std::string(stem));
      if (const Derivation* d = keep_inner ? nullptr : earliest(token, false)) {
        append(split_inner[at], split_inner, d->left);
        append(split_inner[at], split_inner, d->right);
      }
      if (const Derivation* d = keep_last ? nullptr : earliest(token, true)) {
        append(split_last[at], split_inner, d->left);
        append(split_last[at], split_last, d->right);
      }
    }
    Expansions result{std::vector<Expansion>(count), std::vector<Expansion>(count)};
    for (size_t at = 0; at < count; ++at) {
      const Expansion itself = {static_cast<int32_t>(at)};
      const Expansion& whole = demolished[at].empty() ? itself : demolished[at];
      for (const int32_t token : whole) append(result.inner[at], split_inner, token);
      for (size_t i = 0; i < whole.size(); ++i)
        append(result.last[at], i + 1 < whole.size() ? split_inner : split_last, whole[i]);
      if (result.inner[at] == itself) result.inner[at].clear();
      if (result.last[at] == itself) result.last[at].clear();
    }
    return result;
  }

 private:
  bool is_scaffold(int32_t token) const { return scaffold_[static_cast<size_t>(token)]; }

  // Whether a derivation splits the letters of "</w>", as it can in a text that spells out "</w>".
  bool cuts_end_of_word(const Derivation& derivation) const {
    return is_marked(texts_[derivation.token], alphabet_) && texts_[derivation.right].size() <= kEndOfWord.size();
  }

  // Whether a half is in no word: neither a base symbol nor made by a line.
  bool never(const Derivation& derivation) const {
    return !made_[static_cast<size_t>(derivation.left)] || !made_[static_cast<size_t>(derivation.right)];
  }

  const Derivation* earliest(int32_t token, bool final) const {
    const Derivation* found = nullptr;
    for (const Derivation& d : derivations_[static_cast<size_t>(token)])
      if (!(final && cuts_end_of_word(d)) && (!found || d.last_mention < found->last_mention)) found = &d;
    return found;
  }

  const Interner& texts_;
  const Alphabet alphabet_;
  const std::vector<bool>& scaffold_;
  std::vector<std::vector<Derivation>> derivations_;  // by token
  std::vector<bool> made_;                            // by token: whether it is a base symbol, or a line makes it
  std::vector<int32_t> shortest_first_;
};

}  // namespace

Expansions expand(const MergeTable& table, const std::string& separator, const StringSet* vocabulary) {
  const bool filtered = vocabulary && !vocabulary->empty();
  std::vector<Derivation> lines;
  lines.reserve(table.pair_of_rank.size());
  for (const MergeTable::Pair& pair : table.pair_of_rank) {
    const auto rank = static_cast<int32_t>(lines.size());
    lines.push_back({pair.left, pair.right, table.merged_of_rank[lines.size()], rank, rank});
  }
  const Expander expander(table.texts, table.alphabet, table.scaffold, lines, !filtered);
  std::vector<Expansion> demolished = expander.demolish();
  if (!filtered) return {std::move(demolished), {}};
  return expander.filter(demolished, separator, *vocabulary);
}

}  // namespace mt_scaffold
