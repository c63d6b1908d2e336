#include "bindings/bindings_batches.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bindings/bindings_integers.hpp"
#include "bindings/bindings_text.hpp"

namespace mt_scaffold {

namespace {

using Values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Calls `use` with the values as they are stored.
template <typename Use>
void visit(const Values& values, Use&& use) {
  if (values.dtype() == nb::dtype<uint32_t>()) {
    use(static_cast<const uint32_t*>(values.data()));
  } else if (values.dtype() == nb::dtype<int64_t>()) {
    use(static_cast<const int64_t*>(values.data()));
  } else {
    throw nb::type_error("values are uint32 or int64");
  }
}

// A copy, because another thread may change the array after the check.
std::vector<int64_t> starts_of(const Offsets& offsets) { return {offsets.data(), offsets.data() + offsets.shape(0)}; }

// Raises ValueError unless the offsets ascend and lie within `count` values.
void check(const std::vector<int64_t>& starts, size_t count) {
  int64_t last = 0;
  for (size_t i = 0; i < starts.size(); last = starts[i++])
    if (starts[i] < last || starts[i] > static_cast<int64_t>(count))
      throw std::invalid_argument("offsets do not fit the values");
}

nb::list list_rows(const Values& values, const Offsets& offsets, const std::vector<int64_t>& before,
                   const std::vector<int64_t>& after) {
  const std::vector<int64_t> starts = starts_of(offsets);
  check(starts, values.shape(0));
  Integers integers;
  nb::list result;
  visit(values, [&](const auto* data) {
    for (size_t row = 0; row + 1 < starts.size(); ++row) {
      const auto *const begin = data + starts[row], *const end = data + starts[row + 1];
      const auto count = static_cast<size_t>(end - begin) + before.size() + after.size();
      auto list = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(count)));
      if (!list.is_valid()) throw nb::python_error();
      Py_ssize_t at = 0;
      const auto put = [&](int64_t value) { PyList_SET_ITEM(list.ptr(), at++, integers(value)); };
      std::for_each(before.begin(), before.end(), put);
      std::for_each(begin, end, put);
      std::for_each(after.begin(), after.end(), put);
      result.append(std::move(list));
    }
  });
  return result;
}

}  // namespace

void bind_batches(nb::module_& module) {
  // nanobind's own signatures of arrays are not valid Python.
  module.def("list_rows", &list_rows, nb::arg("values"), nb::arg("offsets"), nb::arg("before"), nb::arg("after"),
             nb::sig("def list_rows(values: object, offsets: object, before: Sequence[int], after: Sequence[int]) "
                     "-> list[list[int]]"));
}

}  // namespace mt_scaffold
