// Counted words as Python sees them.
#pragma once

#include "bindings/bindings_text.hpp"
#include "count/word_counts.hpp"

namespace mt_scaffold {

class PyWordCounts {
 public:
  PyWordCounts() = default;
  explicit PyWordCounts(WordCounts counts) : counts_(std::move(counts)) {}
  PyWordCounts(PyWordCounts&&) = default;

  WordCounts& get() {
    if (taken_) throw nb::value_error("these counts were used up by learning; count the words again");
    return counts_;
  }
  WordCounts take() {
    WordCounts taken = std::move(get());
    taken_ = true;
    return taken;
  }

 private:
  WordCounts counts_;
  bool taken_ = false;
};

void bind_counts(nb::module_& module);

}  // namespace mt_scaffold
