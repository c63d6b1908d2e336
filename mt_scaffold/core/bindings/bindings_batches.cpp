#include "bindings/bindings_batches.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <tuple>
#include <variant>
#include <vector>

#include "bindings/bindings_integers.hpp"
#include "bindings/bindings_text.hpp"
#include "io/blocks.hpp"
#include "memory/huge_pages.hpp"

namespace mt_scaffold {

namespace {

// What is too little to begin a thread for.
constexpr size_t kPerThread = 1 << 18;

// Calls `work(begin, end)` for equal parts of `size` elements, on threads if these are many.
template <typename Work>
void in_parts(size_t size, unsigned workers, const Work& work) {
  const size_t parts = std::clamp<size_t>(size / kPerThread, 1, std::max(1u, workers));
  if (parts == 1) return work(0, size);
  in_parallel(static_cast<unsigned>(parts),
              [&](unsigned part) { work(size * part / parts, size * (part + 1) / parts); });
}

using Matrix = nb::ndarray<nb::numpy, int64_t, nb::ndim<2>, nb::c_contig>;
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

// A copy, because another thread may change the array once it is checked.
std::vector<int64_t> starts_of(const Offsets& offsets) { return {offsets.data(), offsets.data() + offsets.shape(0)}; }

// Raises ValueError for offsets that go back or beyond `count` values.
void check(const std::vector<int64_t>& starts, size_t count) {
  int64_t last = 0;
  for (size_t i = 0; i < starts.size(); last = starts[i++])
    if (starts[i] < last || starts[i] > static_cast<int64_t>(count))
      throw std::invalid_argument("offsets do not fit the values");
}

// An array in huge pages: the pages of a new one take longer than what is written there.
class NewMatrix {
 public:
  NewMatrix(size_t rows, size_t width) : rows_(rows), width_(width), data_(Allocator().allocate(size() + 1)) {}
  ~NewMatrix() { Allocator().deallocate(data_, size() + 1); }
  NewMatrix(const NewMatrix&) = delete;
  NewMatrix& operator=(const NewMatrix&) = delete;

  size_t size() const { return rows_ * width_; }
  int64_t* data() { return data_; }
  static Matrix as_array(std::unique_ptr<NewMatrix> matrix) {
    const nb::capsule owner(matrix.get(), [](void* p) noexcept { delete static_cast<NewMatrix*>(p); });
    NewMatrix& held = *matrix.release();
    return {held.data_, {held.rows_, held.width_}, owner};
  }

 private:
  using Allocator = HugePageAllocator<int64_t>;

  const size_t rows_, width_;
  int64_t* const data_;
};

// What one matrix holds: the values of each row, or one in place of all of them, between `before` and `after`.
using Layer = std::tuple<std::variant<int64_t, Values>, std::vector<int64_t>, std::vector<int64_t>, int64_t>;

// Writes the elements of a matrix from `begin` to `end`, row after row. `copy_values(from, count, to)` writes values.
template <typename CopyValues>
void write_rows(const Layer& layer, size_t width, const int64_t* starts, bool left, size_t begin, size_t end,
                int64_t* matrix, CopyValues&& copy_values) {
  const auto& [values, before, after, fill] = layer;
  for (size_t row = width ? begin / width : 0; row * width < end; ++row) {
    size_t at = row * width;
    const auto put = [&, begin, end](size_t count, auto&& copy) {
      const size_t from = std::max(at, begin), to = std::min(at + count, end);
      if (from < to) copy(from - at, to - from, matrix + from);
      at += count;
    };
    const auto pad = [fill = fill](size_t, size_t count, int64_t* to) { std::fill_n(to, count, fill); };
    const auto copy_of = [](const std::vector<int64_t>& ids) {
      return [&ids](size_t from, size_t count, int64_t* to) { std::copy_n(ids.data() + from, count, to); };
    };
    const auto first = static_cast<size_t>(starts[row]), count = static_cast<size_t>(starts[row + 1]) - first;
    const size_t padding = width - count - before.size() - after.size();
    put(left ? padding : 0, pad);
    put(before.size(), copy_of(before));
    put(count, [&](size_t from, size_t some, int64_t* to) { copy_values(first + from, some, to); });
    put(after.size(), copy_of(after));
    put(left ? 0 : padding, pad);
  }
}

std::vector<Matrix> fill_rows(size_t width, const Offsets& offsets, const std::vector<Layer>& layers, bool left,
                              unsigned workers) {
  if (offsets.shape(0) == 0) throw std::invalid_argument("there is one more offset than there are rows");
  const size_t rows = offsets.shape(0) - 1;
  if (width > PTRDIFF_MAX / sizeof(int64_t) / (rows + 1)) throw std::bad_alloc();
  const std::vector<int64_t> copied = starts_of(offsets);
  const int64_t* const starts = copied.data();
  // Writes a part of each matrix.
  std::vector<std::function<void(size_t, size_t)>> writers;
  std::vector<std::unique_ptr<NewMatrix>> matrices;
  for (const Layer& layer : layers) {
    const auto& [values, before, after, fill] = layer;
    const Values* const array = std::get_if<Values>(&values);
    check(copied, array ? array->shape(0) : INT64_MAX);
    for (size_t row = 0; row < rows; ++row)
      if (static_cast<size_t>(starts[row + 1] - starts[row]) + before.size() + after.size() > width)
        throw std::invalid_argument("a row is too long");
    int64_t* const matrix = matrices.emplace_back(std::make_unique<NewMatrix>(rows, width))->data();
    const auto add = [&, matrix, starts](auto&& copy_values) {
      writers.emplace_back([&layer, width, starts, left, matrix, copy_values](size_t begin, size_t end) {
        write_rows(layer, width, starts, left, begin, end, matrix, copy_values);
      });
    };
    if (array) {
      visit(*array, [&](const auto* data) {
        add([data](size_t from, size_t count, int64_t* to) { std::copy_n(data + from, count, to); });
      });
    } else {
      add([value = std::get<int64_t>(values)](size_t, size_t count, int64_t* to) { std::fill_n(to, count, value); });
    }
  }
  {
    nb::gil_scoped_release released;
    in_parts(rows * width, workers, [&](size_t begin, size_t end) {
      for (const auto& write : writers) write(begin, end);
    });
  }
  std::vector<Matrix> result;
  for (auto& matrix : matrices) result.push_back(NewMatrix::as_array(std::move(matrix)));
  return result;
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
  // The signatures are Python, as nanobind's own of arrays are not.
  module.def("fill_rows", &fill_rows, nb::arg("width"), nb::arg("offsets"), nb::arg("layers"), nb::arg("left"),
             nb::arg("workers"),
             nb::sig("def fill_rows(width: int, offsets: object, "
                     "layers: Sequence[tuple[object, Sequence[int], Sequence[int], int]], left: bool, workers: int) "
                     "-> list[object]"));
  module.def("list_rows", &list_rows, nb::arg("values"), nb::arg("offsets"), nb::arg("before"), nb::arg("after"),
             nb::sig("def list_rows(values: object, offsets: object, before: Sequence[int], after: Sequence[int]) "
                     "-> list[list[int]]"));
}

}  // namespace mt_scaffold
