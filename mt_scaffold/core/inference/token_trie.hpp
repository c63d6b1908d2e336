// Finds the tokens that begin at each byte of a word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/alphabet.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

// The tokens of one word.
struct TokensInWord {
  std::string marked;             // the word and its end-of-word marker, if it has one
  size_t size = 0;                // of the word alone
  std::vector<uint32_t> longest;  // by byte of `marked`: the node of the longest token that begins there; 0: none
};

// A trie of the bytes of tokens from last to first, its edges in one hash table. With failure links (Aho and Corasick
// 1975), one pass from the end of a word finds the tokens that begin at each byte, however long they are.
class TokenTrie {
 public:
  // Where a token may be found: before the end of the word, at its end, or both.
  enum Place : uint8_t { kInside = 1, kAtEnd = 2, kAnywhere = 3 };

  // Where a token may be found. (In a text that spells out "</w>", letters inside a word look like its end.)
  static Place place_of(std::string_view token, Alphabet alphabet) {
    return !alphabet.end_of_word ? kAnywhere : is_marked(token, alphabet) ? kAtEnd : kInside;
  }

  // Returns the token's node.
  uint32_t add(std::string_view token, Place place);
  // Call it after the last add().
  void link();

  void find(std::string_view word, Alphabet alphabet, TokensInWord& found) const;

  // Calls `on_token(end, node)` for each token that begins at `begin`, the longest first. At the
  // end of the word, `end` is after the marker, if there is one.
  template <typename OnToken>
  void for_each_token(const TokensInWord& found, size_t begin, OnToken&& on_token) const {
    for (uint32_t at = found.longest[begin]; at != 0; at = nodes_[at].shorter) {
      const size_t end = begin + nodes_[at].length;
      // The last symbol ends after its marker, and nowhere else.
      const uint8_t place = end == found.marked.size() ? kAtEnd : end < found.size ? kInside : 0;
      if (nodes_[at].place & place) on_token(end, at);
    }
  }

 private:
  struct Edge {
    uint64_t key;  // parent and byte, + 1; 0 if empty
    uint32_t node;
  };
  struct Node {
    uint32_t length = 0;   // of its string
    uint32_t prefix = 0;   // the failure link: the node of the longest proper prefix of its string
    uint32_t shorter = 0;  // the node of the longest token that is a proper prefix
    uint8_t place = 0;     // if its string is a token, else 0
  };
  static uint64_t key_of(uint32_t parent, char byte) {
    return (uint64_t{parent} << 8 | static_cast<unsigned char>(byte)) + 1;
  }
  size_t slot_of(uint64_t key) const {
    const size_t mask = edges_.size() - 1;
    size_t slot = hash_number(key) & mask;
    while (edges_[slot].key != 0 && edges_[slot].key != key) slot = (slot + 1) & mask;
    return slot;
  }
  // The node of the longest prefix of a byte followed by a node's string.
  uint32_t step(uint32_t node, char byte) const {
    while (true) {
      if (const uint32_t child = edges_[slot_of(key_of(node, byte))].node) return child;
      if (node == 0) return 0;
      node = nodes_[node].prefix;
    }
  }

  std::vector<Edge> edges_ = std::vector<Edge>(1 << 10, Edge{0, 0});
  std::vector<Node> nodes_ = std::vector<Node>(1);  // the root first
};

}  // namespace mt_scaffold
