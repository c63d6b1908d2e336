#include "inference/token_trie.hpp"

namespace mt_scaffold {

void TokenTrie::add(std::string_view token, Place place) {
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

}  // namespace mt_scaffold
