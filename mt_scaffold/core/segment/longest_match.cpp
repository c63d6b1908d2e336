#include "segment/longest_match.hpp"

#include <algorithm>

#include "text/text.hpp"

namespace mt_scaffold {

void LongestMatch::add(std::string_view token, Place place) {
  uint32_t node = 0;
  for (const char byte : token) {
    if (places_.size() * 2 > edges_.size()) {
      std::vector<Edge> before(edges_.size() * 4, Edge{0, 0});
      before.swap(edges_);
      for (const Edge& edge : before)
        if (edge.key != 0) edges_[slot_of(edge.key)] = edge;
    }
    Edge& edge = edges_[slot_of(key_of(node, byte))];
    if (edge.key == 0) {
      edge = {key_of(node, byte), static_cast<uint32_t>(places_.size())};
      places_.push_back(0);
    }
    node = edge.node;
  }
  places_[node] |= place;
}

void LongestMatch::segment(std::string_view word, Alphabet alphabet, std::string& marked,
                           std::vector<uint32_t>& ends) const {
  marked.assign(word);
  if (alphabet.end_of_word) marked += kEndOfWord;
  ends.clear();
  for (size_t begin = 0; begin < word.size(); begin = ends.back()) {
    uint32_t ignored;
    size_t longest = begin + first_symbol(word.substr(begin), alphabet, ignored);
    for_each_token(marked, word.size(), begin, [&](size_t end) { longest = std::max(longest, end); });
    ends.push_back(static_cast<uint32_t>(std::min(longest, word.size())));
  }
}

}  // namespace mt_scaffold
