// Uniform sampling: a segmentation drawn from all that a vocabulary allows, each equally likely (Cognetta et al. 2024).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "inference/dropout.hpp"
#include "inference/token_trie.hpp"
#include "text/alphabet.hpp"

namespace mt_scaffold {

class UniformSampler {
 public:
  explicit UniformSampler(Alphabet alphabet) : alphabet_(alphabet) {}

  // A token of several symbols; single symbols need not be added.
  void add(std::string_view token) { tokens_.add(token, TokenTrie::place_of(token, alphabet_)); }

  struct Scratch;

  // Call it after the last add().
  void link() { tokens_.link(); }

  // Draws a segmentation, with the end of each subword in `scratch.ends`.
  void draw(std::string_view word, RandomStream& random, Scratch& scratch) const;

 private:
  // Puts the end of each possible subword from `begin` on into `scratch.targets`, the shortest first.
  void collect_targets(uint32_t begin, Scratch& scratch) const;

  const Alphabet alphabet_;
  TokenTrie tokens_;
};

struct UniformSampler::Scratch {
  std::vector<uint32_t> ends;

  // By position in the word, in bytes.
  struct Node {
    double paths;  // the segmentations of the rest of the word, divided by 2^(512 * scale)
    uint32_t scale;
    uint32_t next;  // the end of the symbol that begins here
  };
  TokensInWord tokens;
  std::vector<uint32_t> starts, targets;
  std::vector<Node> nodes;
};

}  // namespace mt_scaffold
