// mt_scaffold._core.Ids: converts texts and ids between Python and the native core.

#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "bindings/bindings.hpp"
#include "bindings/bindings_common.hpp"
#include "bindings/bindings_draw.hpp"
#include "segment/encode_documents.hpp"
#include "segment/imported_spaces.hpp"
#include "segment/token_ids.hpp"

namespace mt_scaffold {

namespace {

nb::builtin_exception type_error(const std::string& message) { return nb::type_error(message.c_str()); }

// A view of a str, in Python's own representation, or of bytes.
GivenText given_text(nb::handle text) {
  PyObject* const object = text.ptr();
  if (PyBytes_Check(object))
    return std::string_view(PyBytes_AS_STRING(object), static_cast<size_t>(PyBytes_GET_SIZE(object)));
  if (!PyUnicode_Check(object))
    throw type_error("a text is a str or bytes, not " + std::string(Py_TYPE(object)->tp_name));
  const auto kind = PyUnicode_IS_ASCII(object)                       ? GivenText::Kind::kUtf8
                    : PyUnicode_KIND(object) == PyUnicode_1BYTE_KIND ? GivenText::Kind::kLatin1
                    : PyUnicode_KIND(object) == PyUnicode_2BYTE_KIND ? GivenText::Kind::kUcs2
                                                                     : GivenText::Kind::kUcs4;
  return {PyUnicode_DATA(object), static_cast<size_t>(PyUnicode_GET_LENGTH(object)), kind};
}

// The buffer of a Python object, held until destruction.
struct Buffer : Py_buffer {
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), this, PyBUF_RECORDS_RO) != 0) throw nb::python_error();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(this); }
};

// Ids from a list, a tuple or any buffer of integers.
class GivenIds {
 public:
  explicit GivenIds(nb::handle ids) {
    if (PyObject_CheckBuffer(ids.ptr())) {
      buffer_.emplace(ids);
      if (buffer_->ndim != 1) throw type_error("ids have one dimension, not " + std::to_string(buffer_->ndim));
      const std::string given = buffer_->format ? buffer_->format : "B";
      std::string_view format = given;
      const bool big = format.starts_with('>') || format.starts_with('!'), little = format.starts_with('<');
      if (big || little || format.starts_with('=') || format.starts_with('@')) format.remove_prefix(1);
      const char kind = format.size() == 1 ? format[0] : '?';
      signed_ = std::string_view("bhilqn").find(kind) != std::string_view::npos;
      const bool whole = signed_ || std::string_view("BHILQN").find(kind) != std::string_view::npos;
      if (!whole) throw type_error("ids are integers, not of the format '" + given + "'");
      constexpr bool little_here = std::endian::native == std::endian::little;
      if (buffer_->itemsize > 1 && (little_here ? big : little))
        throw type_error("ids are in another byte order ('" + given +
                         "'); convert them: ids.astype(ids.dtype.newbyteorder('='))");
      count_ = static_cast<size_t>(buffer_->shape[0]);
      return;
    }
    const auto items = nb::steal<nb::object>(PySequence_Fast(ids.ptr(), "ids are a sequence of integers"));
    if (!items.is_valid()) throw nb::python_error();
    values_.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(items.ptr())));
    // An __index__() may change the list, or let another thread do so.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.ptr(), i);
      int overflow = 0;
      int64_t value = PyLong_Check(item) ? PyLong_AsLongLongAndOverflow(item, &overflow) : as_index(item, overflow);
      // No id has 63 bits, so an integer that overflows is as invalid as the limit.
      if (overflow != 0) value = overflow < 0 ? INT64_MIN : INT64_MAX;
      values_.push_back(value);
    }
    count_ = values_.size();
  }

  // Calls `use(count, id_at)` without the GIL.
  template <typename Use>
  void visit(Use&& use) const {
    const ReleaseGil released;
    if (!buffer_) {
      use(count_, [this](size_t i) { return values_[i]; });
      return;
    }
    const char* data = static_cast<const char*>(buffer_->buf);
    const Py_ssize_t stride = buffer_->strides ? buffer_->strides[0] : buffer_->itemsize;
    const auto as = [&](auto example) {
      using Int = decltype(example);
      use(count_, [data, stride](size_t i) {
        Int value;
        std::memcpy(&value, data + static_cast<Py_ssize_t>(i) * stride, sizeof value);
        if constexpr (std::is_same_v<Int, uint64_t>) value = std::min(value, uint64_t{INT64_MAX});
        return static_cast<int64_t>(value);
      });
    };
    switch (buffer_->itemsize) {
      case 1:
        return signed_ ? as(int8_t()) : as(uint8_t());
      case 2:
        return signed_ ? as(int16_t()) : as(uint16_t());
      case 4:
        return signed_ ? as(int32_t()) : as(uint32_t());
      default:
        return signed_ ? as(int64_t()) : as(uint64_t());
    }
  }

 private:
  static int64_t as_index(PyObject* item, int& overflow) {
    const auto number = nb::steal<nb::object>(PyNumber_Index(item));
    if (!number.is_valid()) throw nb::python_error();
    return PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  }

  std::optional<Buffer> buffer_;
  bool signed_ = false;
  size_t count_ = 0;
  std::vector<int64_t> values_;
};

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

// Returns NumPy's C function table, whose layout has not changed since NumPy 1: a call through Python takes longer than
// encoding a sentence. Imports NumPy and passes on its exceptions.
void** numpy_table() {
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

Uint32Array numpy_array(const int32_t* ids, size_t count) {
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

// The ids of codes with a pre-tokeniser.
struct Ids {
  std::shared_ptr<const TokenIds> tokens;
  std::unique_ptr<IdEncoder> encoder;
  Integers integers;
};

// A byte for each, a value of Python's Special.
std::vector<Special> specials(const std::string& states) {
  std::vector<Special> result;
  for (const char state : states) result.push_back(static_cast<Special>(state));
  return result;
}

// Encoding up to this many characters takes less time than releasing the GIL may cost.
constexpr size_t kShort = 1024;

// Calls `result(ids, count)` with the ids of a text; `special`: null refuses all special tokens.
template <typename Result>
auto encode_one(const Ids& self, nb::handle given, const std::vector<Special>* special, const Draw& draw,
                uint64_t index, Result&& result) {
  const GivenText text = given_text(given);
  char room[Applier::kMargin + (size_t{1} << 13)];
  OutputBuffer output(room, sizeof room);
  {
    const Interruptible interruptible(handle_signals);
    std::optional<ReleaseGil> released;
    if (text.size > kShort) released.emplace();
    self.encoder->encode_one(text, special, index, draw, output);
  }
  return result(reinterpret_cast<const int32_t*>(output.view().data()), output.size() / sizeof(int32_t));
}

auto as_list(Ids& self) {
  return [&self](const int32_t* ids, size_t count) {
    auto result = nb::steal<nb::typed<nb::list, int>>(PyList_New(static_cast<Py_ssize_t>(count)));
    if (!result.is_valid()) throw nb::python_error();
    for (size_t i = 0; i < count; ++i) PyList_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), self.integers(ids[i]));
    return result;
  };
}

using Array = nb::ndarray<nb::memview, uint8_t, nb::ndim<1>>;

std::pair<Array, nb::bytearray> encode_batch(Ids& self, nb::handle given, const std::string& special,
                                             const std::vector<uint64_t>& indices, const Draw& draw, unsigned workers,
                                             size_t width, int32_t append) {
  const auto items = nb::steal<nb::object>(PySequence_Fast(given.ptr(), "texts are a sequence"));
  if (!items.is_valid()) throw nb::python_error();
  const nb::tuple kept(items);  // a list may change meanwhile
  std::vector<GivenText> texts;
  texts.reserve(kept.size());
  for (const nb::handle text : kept) texts.push_back(given_text(text));
  const auto name_of = [](size_t number) { return "text " + std::to_string(number); };
  EncodedDocuments encoded = without_gil([&] {
    return self.encoder->encode(texts, specials(special), indices, width, append, draw, workers, name_of,
                                [](uint64_t) { handle_signals(); });
  });
  const std::vector<int64_t>& starts = encoded.offsets;
  auto ids = std::make_unique<ReservedMemory>(std::move(encoded.ids));
  auto* const data = reinterpret_cast<uint8_t*>(ids->data());
  const size_t bytes = static_cast<size_t>(starts.back()) * width;
  const nb::capsule owner(ids.get(), [](void* memory) noexcept { delete static_cast<ReservedMemory*>(memory); });
  ids.release();
  return {Array(data, {bytes}, owner), nb::bytearray(starts.data(), starts.size() * sizeof(int64_t))};
}

nb::bytes decode_ids(const Ids& self, nb::handle given) {
  const GivenIds ids(given);
  OutputBuffer output;
  ids.visit([&](size_t count, auto&& id_at) { self.tokens->decode(count, id_at, [](size_t) {}, output); });
  return to_bytes(output.view());
}

std::pair<nb::bytes, std::vector<size_t>> decode_with_starts(const Ids& self, nb::handle given) {
  const GivenIds ids(given);
  OutputBuffer output;
  std::vector<size_t> starts;
  ids.visit([&](size_t count, auto&& id_at) {
    starts.reserve(count);
    self.tokens->decode(count, id_at, [&](size_t start) { starts.push_back(start); }, output);
  });
  return {to_bytes(output.view()), std::move(starts)};
}

// Returns the text of several documents, each without a final id `strip` and followed by `end`. Error messages count
// documents from `number`.
nb::bytes decode_documents(const Ids& self, nb::handle given, const std::vector<uint64_t>& sizes,
                           const std::string& end, int64_t strip, uint64_t number) {
  const GivenIds ids(given);
  OutputBuffer output;
  ids.visit([&](size_t count, auto&& id_at) {
    size_t from = 0;
    for (const uint64_t size : sizes) {
      if (size > count - from) throw InputError("the index has more ids than there are");
      const size_t kept = size > 0 && strip >= 0 && id_at(from + size - 1) == strip ? size - 1 : size;
      try {
        self.tokens->decode(kept, [&](size_t i) { return id_at(from + i); }, [](size_t) {}, output);
      } catch (const InputError& error) {
        throw InputError("document " + std::to_string(number) + ": " + error.what());
      }
      output.append(end.data(), end.size());
      from += size;
      ++number;
    }
  });
  return to_bytes(output.view());
}

// Batches of ids for the tokenizers of other libraries.
using Values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::list list_rows(const Values& values, const Offsets& offsets, const std::vector<int64_t>& before,
                   const std::vector<int64_t>& after) {
  // A copy, because another thread may change the array after the check.
  const std::vector<int64_t> starts(offsets.data(), offsets.data() + offsets.shape(0));
  const auto available = static_cast<int64_t>(values.shape(0));
  if (!starts.empty() && (starts.front() < 0 || starts.back() > available || !std::ranges::is_sorted(starts)))
    throw std::invalid_argument("offsets do not fit the values");
  Integers integers;
  nb::list result;
  const auto append_rows = [&](const auto* data) {
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
  };
  if (values.dtype() == nb::dtype<uint32_t>()) {
    append_rows(static_cast<const uint32_t*>(values.data()));
  } else if (values.dtype() == nb::dtype<int64_t>()) {
    append_rows(static_cast<const int64_t*>(values.data()));
  } else {
    throw nb::type_error("values are uint32 or int64");
  }
  return result;
}

}  // namespace

void bind_ids(nb::module_& module) {
  module.def(
      "with_spaces",
      [](const nb::bytes& text, unsigned prefix) {
        Numbering numbering;
        numbering.metaspace = true;
        numbering.prefix = static_cast<Numbering::Prefix>(prefix);
        return to_bytes(ImportedSpaces(numbering)({text.c_str(), text.size()}, true));
      },
      nb::arg("text"), nb::arg("prefix"));
  nb::class_<Ids>(module, "Ids")
      .def(
          "__init__",
          [](Ids* self, std::shared_ptr<Segmenter> segmenter, std::shared_ptr<Pretokeniser> pretokeniser,
             std::vector<std::string> special, uint32_t multiple, std::vector<int32_t> numbers,
             std::vector<std::pair<int32_t, nb::bytes>> others, int32_t unknown, bool metaspace, unsigned prefix,
             bool prefix_each, std::vector<int32_t> after_prefix) {
            Numbering numbering{
                std::move(numbers),     {}, unknown, metaspace, static_cast<Numbering::Prefix>(prefix), prefix_each,
                std::move(after_prefix)};
            for (const auto& [id, bytes] : others)
              numbering.others.emplace_back(id, std::string(bytes.c_str(), bytes.size()));
            const Numbering* const given = numbering.ids.empty() ? nullptr : &numbering;
            const ReleaseGil released;
            auto tokens =
                std::make_shared<const TokenIds>(segmenter->merged_tokens(), std::move(special), multiple, given);
            auto dictionary = std::make_shared<const Dictionary>(tokens->dictionary());
            auto applier = std::make_shared<Applier>(segmenter, nullptr, pretokeniser, TableLimits(),
                                                     WordIds(*segmenter, std::move(dictionary), WordIds::kSpellOut));
            auto encoder = std::make_unique<IdEncoder>(applier, tokens, pretokeniser);
            new (self) Ids{std::move(tokens), std::move(encoder), {}};
          },
          nb::arg("segmenter"), nb::arg("pretokeniser"), nb::arg("special_tokens") = std::vector<std::string>(),
          nb::arg("multiple") = 1, nb::arg("numbers") = std::vector<int32_t>(),
          nb::arg("others") = std::vector<std::pair<int32_t, nb::bytes>>(), nb::arg("unknown") = -1,
          nb::arg("metaspace") = false, nb::arg("prefix") = 0, nb::arg("prefix_each") = false,
          nb::arg("after_prefix") = std::vector<int32_t>())
      .def_prop_ro("n_vocab", [](const Ids& self) { return self.tokens->n_vocab(); })
      .def_prop_ro("special_ids", [](const Ids& self) { return self.tokens->special_ids(); })
      .def("tokens",
           [](const Ids& self) {
             std::vector<nb::bytes> tokens;
             for (size_t id = 0; id < self.tokens->n_vocab(); ++id)
               tokens.push_back(to_bytes(self.tokens->bytes_of(id)));
             return tokens;
           })
      .def(
          "encode_plain",
          [](Ids& self, nb::handle text) { return encode_one(self, text, nullptr, Draw(), 0, as_list(self)); },
          nb::arg().none())
      .def(
          "encode_plain_array",
          [](const Ids& self, nb::handle text) { return encode_one(self, text, nullptr, Draw(), 0, numpy_array); },
          nb::arg().none())
      .def(
          "encode_array",
          [](const Ids& self, nb::handle text, const std::string& special, const Draw& draw, uint64_t index) {
            const std::vector<Special> states = specials(special);
            return encode_one(self, text, &states, draw, index, numpy_array);
          },
          nb::arg("text").none(), nb::arg("special"), nb::arg("draw") = nb::none(), nb::arg("index") = 0)
      .def(
          "encode",
          [](Ids& self, nb::handle text, const std::string& special, const Draw& draw, uint64_t index) {
            const std::vector<Special> states = specials(special);
            return encode_one(self, text, &states, draw, index, as_list(self));
          },
          nb::arg("text").none(), nb::arg("special"), nb::arg("draw") = nb::none(), nb::arg("index") = 0)
      .def("encode_batch", &encode_batch, nb::arg("texts"), nb::arg("special"),
           nb::arg("indices") = std::vector<uint64_t>(), nb::arg("draw") = nb::none(), nb::arg("workers") = 1,
           nb::arg("width") = 4, nb::arg("append") = -1)
      .def(
          "encode_lines",
          [](Ids& self, const NamedObject& input, const NamedObject& ids, const NamedObject& sizes,
             const std::string& special, uint64_t first, size_t width, int32_t append, const Draw& draw,
             unsigned workers, nb::object progress) {
            BlockReader reader = make_reader({input});
            const std::unique_ptr<Sink> ids_sink = make_sink(ids), sizes_sink = make_sink(sizes);
            const Tick tick = make_tick(std::move(progress));
            const EncodedLines done = without_gil([&] {
              return self.encoder->encode_lines(reader, *ids_sink, *sizes_sink, specials(special), first, width, append,
                                                draw, workers, tick);
            });
            return std::tuple(done.lines, done.ids, done.bytes);
          },
          nb::arg("input"), nb::arg("ids"), nb::arg("sizes"), nb::arg("special"), nb::arg("first") = 0,
          nb::arg("width") = 4, nb::arg("append") = -1, nb::arg("draw") = nb::none(), nb::arg("workers") = 1,
          nb::arg("progress") = nb::none())
      .def("decode", &decode_ids, nb::arg("ids").none())
      .def("decode_with_starts", &decode_with_starts, nb::arg("ids").none())
      .def("decode_documents", &decode_documents, nb::arg("ids"), nb::arg("sizes"), nb::arg("end") = "\n",
           nb::arg("strip") = -1, nb::arg("number") = 1);

  // nanobind's own signatures of arrays are not valid Python.
  module.def("list_rows", &list_rows, nb::arg("values"), nb::arg("offsets"), nb::arg("before"), nb::arg("after"),
             nb::sig("def list_rows(values: object, offsets: object, before: Sequence[int], after: Sequence[int]) "
                     "-> list[list[int]]"));
}

}  // namespace mt_scaffold
