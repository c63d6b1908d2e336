// The tokens that each merged token is printed as: demolished if scaffold, split if not in the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inference/merge_table.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

// Empty: the token itself.
using Expansion = std::vector<int32_t>;

// By token.
struct Expansions {
  std::vector<Expansion> inner;
  std::vector<Expansion> last;  // at the end of a word; empty: as `inner`
};

// A null or empty vocabulary filters nothing.
Expansions expand(const MergeTable& table, const std::string& separator, const StringSet* vocabulary);

}  // namespace mt_scaffold
