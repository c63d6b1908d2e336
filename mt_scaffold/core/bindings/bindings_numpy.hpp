// NumPy arrays through its C function table: a call through Python takes longer than encoding a sentence.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mt_scaffold {

namespace nb = nanobind;

// Returns the function table, whose layout has not changed since NumPy 1. Imports NumPy and passes on its exceptions.
inline void** numpy_table() {
  static void** table = nullptr;  // guarded by the GIL
  if (table) return table;
  nb::object module;
  try {
    module = nb::module_::import_("numpy._core._multiarray_umath");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ModuleNotFoundError)) throw;
    module = nb::module_::import_("numpy.core._multiarray_umath");
  }
  auto** const found = static_cast<void**>(PyCapsule_GetPointer(module.attr("_ARRAY_API").ptr(), nullptr));
  if (!found) throw nb::python_error();
  const unsigned version = reinterpret_cast<unsigned (*)()>(found[0])() >> 24;
  if (version != 1 && version != 2) throw nb::import_error("this version of NumPy is not supported; use lists");
  return table = found;
}

// An array of uint32.
struct Uint32Array : nb::object {
  NB_OBJECT(Uint32Array, nb::object, "numpy.typing.NDArray[numpy.uint32]", PyObject_CheckBuffer)
};

inline Uint32Array numpy_array(const int32_t* ids, size_t count) {
  using New = PyObject* (*)(PyTypeObject*, int, const intptr_t*, int, const intptr_t*, void*, int, int, PyObject*);
  struct Array {
    PyObject head;
    char* data;
  };
  constexpr size_t kArrayType = 2, kNew = 93;
  constexpr int kUint32 = 6;
  static_assert(sizeof(unsigned) == sizeof *ids);
  void** const table = numpy_table();
  const auto size = static_cast<intptr_t>(count);
  auto* const type = static_cast<PyTypeObject*>(table[kArrayType]);
  auto array = nb::steal<Uint32Array>(
      reinterpret_cast<New>(table[kNew])(type, 1, &size, kUint32, nullptr, nullptr, 0, 0, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  if (count > 0) std::memcpy(reinterpret_cast<const Array*>(array.ptr())->data, ids, count * sizeof *ids);
  return array;
}

}  // namespace mt_scaffold
