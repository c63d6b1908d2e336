// Strings between Python and the core, which takes UTF-8 from a str or from bytes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/unordered_set.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>

namespace mt_scaffold {

namespace nb = nanobind;

// Views the UTF-8 of a str or bytes, valid while the object lives; false for other types and for lone surrogates.
inline bool view_of(nb::handle object, std::string_view& view) noexcept {
  if (PyBytes_Check(object.ptr())) {
    view = {PyBytes_AS_STRING(object.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(object.ptr()))};
    return true;
  }
  if (!PyUnicode_Check(object.ptr())) return false;
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (!utf8) {
    PyErr_Clear();
    return false;
  }
  view = {utf8, static_cast<size_t>(size)};
  return true;
}

inline nb::bytes to_bytes(std::string_view bytes) { return nb::bytes(bytes.data(), bytes.size()); }

// Bytes that are not UTF-8 become lone surrogates, as in file names.
inline nb::str decode(std::string_view text) {
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (!decoded) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

}  // namespace mt_scaffold

// These replace nanobind's casters, which do not accept bytes.
namespace nanobind::detail {

template <>
struct type_caster<std::string_view> {
  NB_TYPE_CASTER(std::string_view, const_name("str | bytes"))

  bool from_python(handle source, uint32_t, cleanup_list*) noexcept { return mt_scaffold::view_of(source, value); }
};

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, io_name("str | bytes", "str"))

  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    std::string_view view;
    if (!mt_scaffold::view_of(source, view)) return false;
    value.assign(view);
    return true;
  }
  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  }
};

}  // namespace nanobind::detail
