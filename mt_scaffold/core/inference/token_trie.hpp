// The tokens that a word holds, by where they begin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/alphabet.hpp"

namespace mt_scaffold {

// A trie of tokens, byte by byte, its edges in one hash table.
class TokenTrie {
 public:
  // Where a token may be found: before the end of the word, at its end, or both.
  enum Place : uint8_t { kInside = 1, kAtEnd = 2, kAnywhere = 3 };

  // Where a token of an alphabet stands. (In a text that spells out "</w>", letters inside a word look like its end.)
  static Place place_of(std::string_view token, Alphabet alphabet) {
    return !alphabet.end_of_word ? kAnywhere : is_marked(token, alphabet) ? kAtEnd : kInside;
  }

  void add(std::string_view token, Place place);

  // Calls `on_token(end)` for each token that begins at `begin`, from the shortest on. `marked` is a word of `size`
  // bytes followed by its end-of-word marker, if it has one, which a token at its end ends in, too.
  template <typename OnToken>
  void for_each_token(std::string_view marked, size_t size, size_t begin, OnToken&& on_token) const {
    uint32_t node = 0;
    for (size_t end = begin; end < marked.size();) {
      node = edges_[slot_of(key_of(node, marked[end]))].node;
      if (node == 0) return;
      ++end;
      // The last symbol ends after its marker, and nowhere else.
      const uint8_t place = end == marked.size() ? kAtEnd : end < size ? kInside : 0;
      if (places_[node] & place) on_token(end);
    }
  }

 private:
  struct Edge {
    uint64_t key;  // parent and byte, + 1; 0 if empty
    uint32_t node;
  };
  static uint64_t key_of(uint32_t parent, char byte) {
    return (uint64_t{parent} << 8 | static_cast<unsigned char>(byte)) + 1;
  }
  size_t slot_of(uint64_t key) const {
    const size_t mask = edges_.size() - 1;
    size_t slot = (key * 0x9E3779B97F4A7C15ULL >> 32) & mask;
    while (edges_[slot].key != 0 && edges_[slot].key != key) slot = (slot + 1) & mask;
    return slot;
  }

  std::vector<Edge> edges_ = std::vector<Edge>(1 << 10, Edge{0, 0});
  std::vector<uint8_t> places_ = {0};  // of the token that ends in each node, the root first; 0: none does
};

}  // namespace mt_scaffold
