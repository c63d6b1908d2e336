// The text in a line of JSONL, without Python in the clear cases.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "memory/output_buffer.hpp"

namespace mt_scaffold {

// Finds one field of the JSON object in a line. It accepts no line that json.loads refuses and returns the same string;
// it leaves rare cases (escapes in keys, lone surrogates, NaN, numbers of hundreds of digits, deep nesting) and errors
// to Python.
class JsonField {
 public:
  enum class Found { kText, kBlank, kUnsure };

  explicit JsonField(std::string name) : name_(std::move(name)) {}

  // `line`: without its LF; an LF or kPadding zeros follow it, and it is readable for kPadding bytes past its end.
  // kText: `text` is the field's value in UTF-8, readable for kPadding bytes more. kBlank: there is only whitespace.
  Found find(std::string_view line, OutputBuffer& text) const;

 private:
  const std::string name_;
};

}  // namespace mt_scaffold
