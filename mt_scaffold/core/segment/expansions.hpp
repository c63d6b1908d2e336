// The tokens that each merged token is printed as: demolished if scaffold, split if the vocabulary lacks it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "memory/interner.hpp"
#include "text/alphabet.hpp"

namespace mt_scaffold {

// One pair that makes a token.
struct Derivation {
  int32_t left, right, token;
  int32_t rank, last_mention;  // the first and the last line with this pair
};

// Empty: the token itself.
using Expansion = std::vector<int32_t>;

// By token.
struct Expansions {
  std::vector<Expansion> inner;
  std::vector<Expansion> last;  // at the end of a word; empty: as `inner`
};

// `lines` has a derivation for each line of the codes file; a null or empty vocabulary filters nothing.
Expansions expand(const Interner& texts, Alphabet alphabet, const std::vector<bool>& scaffold,
                  const std::vector<Derivation>& lines, const std::string& separator,
                  const std::unordered_set<std::string>* vocabulary);

}  // namespace mt_scaffold
