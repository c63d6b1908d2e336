// Codes as Python sees them.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <tuple>

#include "codes.hpp"

namespace mt_scaffold {

// Bytes that are not UTF-8 become lone surrogates, as in file names.
inline pybind11::str decode(std::string_view text) {
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (!decoded) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(decoded);
}

// A header is (whether symbols are bytes, the pre-tokeniser's name or pattern, whether digits are split).
using PyHeader = std::tuple<bool, std::string, bool>;

inline CodesHeader header_of(const PyHeader& header) {
  return {std::get<0>(header), std::get<1>(header), std::get<2>(header)};
}

void bind_codes(pybind11::module_& module);

}  // namespace mt_scaffold
