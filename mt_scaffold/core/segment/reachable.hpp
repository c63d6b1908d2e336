// The subwords that BPE-dropout can make of words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codes/codes.hpp"
#include "inference/expansions.hpp"
#include "inference/merge_table.hpp"
#include "memory/pair_table.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

// By token: whether dropout can leave it in a word that contains its characters.
//
// At every step any one merge may survive, or none. So a token can be left wherever its characters are, with its
// neighbours unmerged, if it can be merged from them alone: if it is a base symbol, or some line merges two such tokens
// into it. Lines apply in any order, except those of PickyBPE codes: they apply in order, and a split takes a token
// apart for good.
std::vector<bool> mergeable_tokens(const MergeTable& table, const std::vector<Split>& splits, bool in_order);

class Reachable {
 public:
  // `tokens`: by token, whether it may be a symbol of a segmented word; single characters or bytes always may. Tokens
  // are printed as their `expansions`.
  Reachable(const MergeTable& table, std::string separator, const std::vector<bool>& tokens,
            const Expansions& expansions);

  // Adds the subwords of a word, or of a part of one; `ends_word`: it is the last part.
  void add(std::string_view word, bool ends_word);
  // Adds a part of a word as one subword.
  void add_whole(std::string_view text, bool ends_word);

  // Every subword that was found, as segmented text shows it, in order of discovery.
  const std::vector<std::string>& forms() const { return forms_; }

 private:
  // Adds the pieces of a token, `text` without its marker.
  void add_token(int32_t token, std::string_view text, const std::vector<Expansion>& all, bool ends_word);
  // Whether a symbol or token is seen for the first time in such a place.
  bool is_new(std::vector<uint8_t>& seen, uint32_t number, bool at_end, bool ends_word);

  const MergeTable& table_;
  const std::string separator_;
  const Expansions& expansions_;
  struct Node {
    int32_t token = MergeTable::kUnknown, unseen = 0;  // unseen: tokens here and below, but last ones, not seen inside
  };

  // A trie: the child of a node by byte, the root being 0.
  PairTable children_;
  std::vector<Node> nodes_;
  size_t longest_ = 0;                               // bytes of a token
  std::vector<uint8_t> seen_tokens_, seen_symbols_;  // by number, a bit for each place
  std::vector<std::string> forms_;
  StringSet seen_forms_;
};

}  // namespace mt_scaffold
