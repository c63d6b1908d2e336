// Counted words as Python sees them.
#pragma once

#include <pybind11/pybind11.h>

#include "word_counts.hpp"

namespace mt_scaffold {

namespace py = pybind11;

class PyWordCounts {
 public:
  PyWordCounts() = default;
  explicit PyWordCounts(WordCounts counts) : counts_(std::move(counts)) {}
  PyWordCounts(PyWordCounts&&) = default;

  WordCounts& get() {
    if (taken_) throw py::value_error("these counts were used up by learning; count the words again");
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

void bind_counts(py::module_& module);

}  // namespace mt_scaffold
