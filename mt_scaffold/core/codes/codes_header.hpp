// The first line of a codes file: what its symbols are, how text became words before merging, and what merging was.
#pragma once

#include <string>
#include <string_view>

#include "text/alphabet.hpp"

namespace mt_scaffold {

struct CodesHeader {
  bool bytes = false;
  std::string pretokeniser = "spaces";  // a name, or the pattern itself
  bool split_digits = false;
  bool picky = false;  // whether merges and splits are to be followed in order

  Alphabet alphabet() const { return {bytes, pretokeniser == "spaces"}; }
};

// Parses the first line without its LF. Throws InputError with what is wrong, but for the place.
CodesHeader parse_header(std::string_view line);

// The first line without its LF.
std::string format_header(const CodesHeader& header);

}  // namespace mt_scaffold
