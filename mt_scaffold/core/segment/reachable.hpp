// The subwords that resampling can make of words: BPE-dropout, and uniform sampling.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codes/codes.hpp"
#include "inference/expansions.hpp"
#include "inference/merge_table.hpp"
#include "inference/token_trie.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

// Which tokens dropout can leave in a word that holds their characters, by token.
//
// At every step any merge may be the one that survives, and at any step none may be. So a token can be left wherever
// its characters are, its neighbours unmerged, if it can be merged of them alone: if it is a base symbol, or some line
// merges two such tokens into it. Lines are followed in any order, but those of PickyBPE's codes in their own, where a
// split takes a token apart for good.
std::vector<bool> mergeable_tokens(const MergeTable& table, const std::vector<Split>& splits, bool in_order);

class Reachable {
 public:
  // `tokens`: which may be symbols of a segmented word, beside single characters or bytes, which always may. They are
  // printed as `expansions` say; null: as they are.
  Reachable(const MergeTable& table, std::string separator, const std::vector<bool>& tokens,
            const Expansions* expansions);

  // Adds what can be made of a word, or a part of one; `ends_word`: it is the last part.
  void add(std::string_view word, bool ends_word);
  // Adds a part of a word that stays as it is.
  void add_whole(std::string_view part, bool ends_word);

  // Every subword that was found, as segmented text shows it, in order of discovery.
  const std::vector<std::string>& forms() const { return forms_; }

 private:
  void add_form(std::string_view text, bool ends_word);
  // Whether a symbol or token is met for the first time in such a place.
  bool is_new(std::vector<uint8_t>& seen, uint32_t number, bool at_end, bool ends_word);

  const MergeTable& table_;
  const std::string separator_;
  const Expansions* const expansions_;
  TokenTrie tokens_;
  std::vector<uint8_t> seen_tokens_, seen_symbols_;  // by number, a bit for each place
  std::vector<std::string> forms_;
  StringSet seen_forms_;
  TokensInWord found_;
  std::vector<int32_t> token_of_node_;
};

}  // namespace mt_scaffold
