#include "bindings/bindings_batches.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <variant>

#include "bindings/bindings_text.hpp"
#include "io/blocks.hpp"
#include "memory/huge_pages.hpp"
#include "text/find_tokens.hpp"

namespace mt_scaffold {

namespace {

std::vector<std::u32string> as_code_points(const nb::list& strings) {
  std::vector<std::u32string> result;
  for (const auto& string : strings) {
    PyObject* const object = nb::cast<nb::str>(string).ptr();
    std::u32string points;
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(object); ++i) points += PyUnicode_READ_CHAR(object, i);
    result.push_back(std::move(points));
  }
  return result;
}

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

struct Characters {
  int kind;
  const void* data;
  size_t size;
};

nb::list find_tokens(const nb::list& given_texts, const nb::list& given, unsigned workers) {
  const std::vector<std::u32string> tokens = as_code_points(given);
  const TokenFinder<uint8_t> narrow(tokens);
  const TokenFinder<uint16_t> wider(tokens);
  const TokenFinder<uint32_t> widest(tokens);
  // Calls `use` with the finder for a text and with its characters.
  const auto visit = [&](const Characters& text, auto&& use) {
    switch (text.kind) {
      case PyUnicode_1BYTE_KIND:
        return use(narrow, static_cast<const uint8_t*>(text.data));
      case PyUnicode_2BYTE_KIND:
        return use(wider, static_cast<const uint16_t*>(text.data));
      default:
        return use(widest, static_cast<const uint32_t*>(text.data));
    }
  };
  std::vector<nb::str> held;  // other threads may change the list meanwhile
  std::vector<Characters> texts;
  size_t characters = 0;
  for (const auto& each : given_texts) {
    PyObject* const text = held.emplace_back(nb::cast<nb::str>(each)).ptr();
    texts.push_back({PyUnicode_KIND(text), PyUnicode_DATA(text), static_cast<size_t>(PyUnicode_GET_LENGTH(text))});
    characters += texts.back().size;
  }
  // Which texts have any, as few do.
  std::vector<std::atomic<bool>> any(texts.size());
  const auto search = [&](size_t begin, size_t end) {
    size_t start = 0;  // of the text, among the characters of all
    for (size_t i = 0; i < texts.size() && start < end; start += texts[i++].size) {
      const size_t from = std::max(begin, start), to = std::min(end, start + texts[i].size);
      if (from >= to || any[i]) continue;
      const auto found = [&, i](const auto& finder, const auto* data) {
        return finder.any(data, from - start, to - start, texts[i].size);
      };
      if (visit(texts[i], found)) any[i] = true;
    }
  };
  {
    nb::gil_scoped_release released;
    in_parts(characters, workers, search);
  }
  nb::list result;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!any[i]) continue;
    const auto found = [&](size_t place, size_t token) { result.append(nb::make_tuple(i, place, token)); };
    visit(texts[i], [&](const auto& finder, const auto* data) { finder.find(data, texts[i].size, found); });
  }
  return result;
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

// Raises ValueError for offsets that go back or beyond `count` values.
void check(const Offsets& offsets, size_t count) {
  const int64_t* const starts = offsets.data();
  int64_t last = 0;
  for (size_t i = 0; i < offsets.shape(0); last = starts[i++])
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

Matrix fill_rows(size_t width, const std::variant<int64_t, Values>& values, const Offsets& offsets,
                 const std::vector<int64_t>& before, const std::vector<int64_t>& after, int64_t fill, bool left,
                 unsigned workers) {
  if (offsets.shape(0) == 0) throw std::invalid_argument("there is one more offset than there are rows");
  const size_t rows = offsets.shape(0) - 1, size = rows * width;
  if (width > PTRDIFF_MAX / sizeof(int64_t) / (rows + 1)) throw std::bad_alloc();
  const int64_t* const starts = offsets.data();
  const Values* const array = std::get_if<Values>(&values);
  check(offsets, array ? array->shape(0) : INT64_MAX);
  for (size_t row = 0; row < rows; ++row)
    if (static_cast<size_t>(starts[row + 1] - starts[row]) + before.size() + after.size() > width)
      throw std::invalid_argument("a row is too long");
  auto result = std::make_unique<NewMatrix>(rows, width);
  int64_t* const matrix = result->data();
  // Writes the elements from `begin` to `end`, row after row.
  const auto write = [&](size_t begin, size_t end, auto&& copy_values) {
    for (size_t row = width ? begin / width : 0; row * width < end; ++row) {
      size_t at = row * width;
      const auto put = [&](size_t count, auto&& copy) {
        const size_t from = std::max(at, begin), to = std::min(at + count, end);
        if (from < to) copy(from - at, to - from, matrix + from);
        at += count;
      };
      const auto pad = [&](size_t, size_t count, int64_t* to) { std::fill_n(to, count, fill); };
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
  };
  const auto write_all = [&](auto&& copy_values) {
    nb::gil_scoped_release released;
    in_parts(size, workers, [&](size_t begin, size_t end) { write(begin, end, copy_values); });
  };
  if (array) {
    visit(*array, [&](const auto* data) {
      write_all([data](size_t from, size_t count, int64_t* to) { std::copy_n(data + from, count, to); });
    });
  } else {
    const int64_t value = std::get<int64_t>(values);
    write_all([value](size_t, size_t count, int64_t* to) { std::fill_n(to, count, value); });
  }
  return NewMatrix::as_array(std::move(result));
}

// Python's integers, one object for all that are equal.
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

nb::list list_rows(const Values& values, const Offsets& offsets, const std::vector<int64_t>& before,
                   const std::vector<int64_t>& after) {
  check(offsets, values.shape(0));
  Integers integers;
  nb::list result;
  visit(values, [&](const auto* data) {
    for (size_t row = 0; row + 1 < offsets.shape(0); ++row) {
      const auto *const begin = data + offsets.data()[row], *const end = data + offsets.data()[row + 1];
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
  module.def("find_tokens", &find_tokens, nb::arg("texts"), nb::arg("tokens"), nb::arg("workers"));
  // The signatures are Python, as nanobind's own of arrays are not.
  module.def("fill_rows", &fill_rows, nb::arg("width"), nb::arg("values"), nb::arg("offsets"), nb::arg("before"),
             nb::arg("after"), nb::arg("fill"), nb::arg("left"), nb::arg("workers"),
             nb::sig("def fill_rows(width: int, values: object, offsets: object, before: Sequence[int], "
                     "after: Sequence[int], fill: int, left: bool, workers: int) -> object"));
  module.def("list_rows", &list_rows, nb::arg("values"), nb::arg("offsets"), nb::arg("before"), nb::arg("after"),
             nb::sig("def list_rows(values: object, offsets: object, before: Sequence[int], after: Sequence[int]) "
                     "-> list[list[int]]"));
}

}  // namespace mt_scaffold
