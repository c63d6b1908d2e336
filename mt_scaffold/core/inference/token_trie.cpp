#include "inference/token_trie.hpp"

#include <algorithm>
#include <numeric>

#include "io/interruption.hpp"

namespace mt_scaffold {

uint32_t TokenTrie::add(std::string_view token, Place place) {
  uint32_t at = 0;
  for (size_t i = token.size(); i-- > 0;) {
    if (nodes_.size() * 2 > edges_.size()) {
      std::vector<Edge> before(edges_.size() * 4, Edge{0, 0});
      before.swap(edges_);
      for (const Edge& edge : before)
        if (edge.key != 0) edges_[slot_of(edge.key)] = edge;
    }
    Edge& edge = edges_[slot_of(key_of(at, token[i]))];
    if (edge.key == 0) {
      edge = {key_of(at, token[i]), static_cast<uint32_t>(nodes_.size())};
      nodes_.push_back({nodes_[at].length + 1});
    }
    at = edge.node;
  }
  nodes_[at].place |= place;
  return at;
}

void TokenTrie::link() {
  std::vector<uint64_t> key_of_node(nodes_.size());
  for (const Edge& edge : edges_)
    if (edge.key != 0) key_of_node[edge.node] = edge.key - 1;
  std::vector<uint32_t> shortest_first(nodes_.size());
  std::iota(shortest_first.begin(), shortest_first.end(), uint32_t{0});
  std::stable_sort(shortest_first.begin(), shortest_first.end(),
                   [&](uint32_t a, uint32_t b) { return nodes_[a].length < nodes_[b].length; });
  for (size_t i = 1; i < shortest_first.size(); ++i) {
    may_interrupt(i);
    const uint32_t at = shortest_first[i];
    const auto parent = static_cast<uint32_t>(key_of_node[at] >> 8);
    Node& node = nodes_[at];
    if (parent != 0) node.prefix = step(nodes_[parent].prefix, static_cast<char>(key_of_node[at]));
    const Node& prefix = nodes_[node.prefix];
    node.shorter = prefix.place != 0 ? node.prefix : prefix.shorter;
  }
}

void TokenTrie::find(std::string_view word, Alphabet alphabet, TokensInWord& found) const {
  found.marked.assign(word);
  if (alphabet.end_of_word) found.marked += kEndOfWord;
  found.size = word.size();
  found.longest.resize(found.marked.size());
  uint32_t at = 0;
  for (size_t i = found.marked.size(); i-- > 0;) {
    may_interrupt(i);
    at = step(at, found.marked[i]);
    found.longest[i] = nodes_[at].place != 0 ? at : nodes_[at].shorter;
  }
}

}  // namespace mt_scaffold
