// Greedy inference: the longest token that the rest of a word begins with (Uzan et al. 2024, "longest prefix").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "alphabet.hpp"

namespace mt_scaffold {

// A trie of tokens, byte by byte, its edges in one hash table.
class LongestMatch {
 public:
  void add(std::string_view token);

  // Where each subword of a word ends. A symbol that begins no token is a subword. `marked` is scratch.
  void segment(std::string_view word, Alphabet alphabet, std::string& marked, std::vector<uint32_t>& ends) const;

 private:
  struct Edge {
    uint64_t key;  // parent and byte, + 1; 0 if empty
    uint32_t node;
  };
  static uint64_t key_of(uint32_t parent, char byte) {
    return (uint64_t{parent} << 8 | static_cast<unsigned char>(byte)) + 1;
  }
  size_t slot_of(uint64_t key) const;

  std::vector<Edge> edges_ = std::vector<Edge>(1 << 10, Edge{0, 0});
  std::vector<bool> is_token_ = {false};  // by node, the root first
};

}  // namespace mt_scaffold
