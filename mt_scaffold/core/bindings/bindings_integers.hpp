// Ids as Python integers.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mt_scaffold {

namespace nb = nanobind;

// Makes Python integers, one object for equal ids below 2^20.
class Integers {
 public:
  PyObject* operator()(int64_t value) {
    constexpr int64_t kMost = 1 << 20;
    if (value < 0 || value >= kMost) return made(value).release().ptr();
    const auto at = static_cast<size_t>(value);
    if (at >= known_.size()) known_.resize(std::max(at + 1, 2 * known_.size()));
    if (!known_[at].is_valid()) known_[at] = made(value);
    return Py_NewRef(known_[at].ptr());
  }

 private:
  static nb::object made(int64_t value) {
    auto result = nb::steal(PyLong_FromLongLong(value));
    if (!result.is_valid()) throw nb::python_error();
    return result;
  }

  std::vector<nb::object> known_;
};

}  // namespace mt_scaffold
