// Codes as Python sees them.
#pragma once

#include <string>
#include <tuple>

#include "bindings/bindings_text.hpp"
#include "codes/codes.hpp"

namespace mt_scaffold {

// (whether symbols are bytes, the pre-tokeniser's name or pattern, whether digits are split).
using PyHeader = std::tuple<bool, std::string, bool>;

inline CodesHeader header_of(const PyHeader& header) {
  return {std::get<0>(header), std::get<1>(header), std::get<2>(header)};
}

}  // namespace mt_scaffold
