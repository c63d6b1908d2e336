#include "longest_match.hpp"

#include <algorithm>

#include "text.hpp"

namespace mt_scaffold {

size_t LongestMatch::slot_of(uint64_t key) const {
  const size_t mask = edges_.size() - 1;
  size_t slot = (key * 0x9E3779B97F4A7C15ULL >> 32) & mask;
  while (edges_[slot].key != 0 && edges_[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

void LongestMatch::add(std::string_view token) {
  uint32_t node = 0;
  for (const char byte : token) {
    if (is_token_.size() * 2 > edges_.size()) {
      std::vector<Edge> before(edges_.size() * 4, Edge{0, 0});
      before.swap(edges_);
      for (const Edge& edge : before)
        if (edge.key != 0) edges_[slot_of(edge.key)] = edge;
    }
    Edge& edge = edges_[slot_of(key_of(node, byte))];
    if (edge.key == 0) {
      edge = {key_of(node, byte), static_cast<uint32_t>(is_token_.size())};
      is_token_.push_back(false);
    }
    node = edge.node;
  }
  is_token_[node] = true;
}

void LongestMatch::segment(std::string_view word, Alphabet alphabet, std::string& marked,
                           std::vector<uint32_t>& ends) const {
  marked.assign(word);
  if (alphabet.end_of_word) marked += kEndOfWord;
  ends.clear();
  for (size_t begin = 0; begin < word.size(); begin = ends.back()) {
    uint32_t ignored;
    size_t longest = begin + first_symbol(word.substr(begin), alphabet, ignored);
    uint32_t node = 0;
    for (size_t end = begin; end < marked.size();) {
      node = edges_[slot_of(key_of(node, marked[end]))].node;
      if (node == 0) break;
      ++end;
      // The last symbol ends after its marker, and nowhere else.
      const bool between_symbols = !alphabet.end_of_word || end < word.size() || end == marked.size();
      if (is_token_[node] && between_symbols) longest = std::max(longest, end);
    }
    ends.push_back(static_cast<uint32_t>(std::min(longest, word.size())));
  }
}

}  // namespace mt_scaffold
