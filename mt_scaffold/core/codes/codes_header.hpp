// The first line of a codes file: its kind of symbols, its pre-tokeniser and its method.
#pragma once

#include <string>
#include <string_view>

#include "text/alphabet.hpp"

namespace mt_scaffold {

struct CodesHeader {
  bool bytes = false;
  std::string pretokeniser = "spaces";  // a name, or the pattern itself
  bool split_digits = false;
  bool picky = false;  // PickyBPE: merges and splits are applied in order

  Alphabet alphabet() const { return {bytes, pretokeniser == "spaces"}; }
};

// Parses the first line without its LF. Throws InputError, to which the caller adds the file and the line.
CodesHeader parse_header(std::string_view line);

// The first line without its LF.
std::string format_header(const CodesHeader& header);

}  // namespace mt_scaffold
