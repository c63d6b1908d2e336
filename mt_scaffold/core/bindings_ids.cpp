// mt_scaffold._core.Ids: converts texts and ids between Python and the native core.

#include "bindings_ids.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <type_traits>

#include "bindings_common.hpp"
#include "encode_ids.hpp"
#include "token_ids.hpp"

namespace mt_scaffold {

namespace {

py::object error_class(const char* name) { return py::module_::import("mt_scaffold.errors").attr(name); }

// The UTF-8 of texts and bytes, with what keeps it alive.
class Texts {
 public:
  // `number` is named by an error unless negative.
  void add(py::handle text, py::ssize_t number) {
    if (PyBytes_Check(text.ptr())) {
      views_.emplace_back(PyBytes_AS_STRING(text.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(text.ptr())));
      kept_.push_back(py::reinterpret_borrow<py::object>(text));
      return;
    }
    if (!PyUnicode_Check(text.ptr()))
      throw py::type_error("a text is a str or bytes, not " + std::string(Py_TYPE(text.ptr())->tp_name));
    if (PyUnicode_IS_COMPACT_ASCII(text.ptr())) {
      views_.emplace_back(static_cast<const char*>(PyUnicode_DATA(text.ptr())),
                          static_cast<size_t>(PyUnicode_GET_LENGTH(text.ptr())));
      kept_.push_back(py::reinterpret_borrow<py::object>(text));
      return;
    }
    // Its own copy, because the one that Python keeps would stay as long as the text does.
    PyObject* encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape");
    if (!encoded) {
      PyErr_Clear();
      const std::string place = number < 0 ? "the text" : "text " + std::to_string(number);
      py::set_error(error_class("MTScaffoldError"),
                    (place + " holds a lone surrogate, which is not a character; remove it, or pass bytes").c_str());
      throw py::error_already_set();
    }
    kept_.push_back(py::reinterpret_steal<py::object>(encoded));
    views_.emplace_back(PyBytes_AS_STRING(encoded), static_cast<size_t>(PyBytes_GET_SIZE(encoded)));
  }

  const std::vector<std::string_view>& views() const { return views_; }

 private:
  std::vector<std::string_view> views_;
  std::vector<py::object> kept_;
};

// Ids from a list, a tuple or any buffer of integers.
class GivenIds {
 public:
  explicit GivenIds(py::handle ids) {
    if (PyObject_CheckBuffer(ids.ptr())) {
      buffer_ = py::reinterpret_borrow<py::buffer>(ids).request();
      if (buffer_->ndim != 1) throw py::type_error("ids have one dimension, not " + std::to_string(buffer_->ndim));
      std::string_view format = buffer_->format;
      const bool big = format.starts_with('>') || format.starts_with('!'), little = format.starts_with('<');
      if (big || little || format.starts_with('=') || format.starts_with('@')) format.remove_prefix(1);
      const char kind = format.size() == 1 ? format[0] : '?';
      signed_ = std::string_view("bhilqn").find(kind) != std::string_view::npos;
      const bool whole = signed_ || std::string_view("BHILQN").find(kind) != std::string_view::npos;
      if (!whole) throw py::type_error("ids are integers, not of the format '" + buffer_->format + "'");
      constexpr bool little_here = std::endian::native == std::endian::little;
      if (buffer_->itemsize > 1 && (little_here ? big : little))
        throw py::type_error("ids are in another byte order ('" + buffer_->format +
                             "'); convert them: ids.astype(ids.dtype.newbyteorder('='))");
      count_ = static_cast<size_t>(buffer_->shape[0]);
      return;
    }
    const auto items = py::reinterpret_steal<py::object>(PySequence_Fast(ids.ptr(), "ids are a sequence of integers"));
    if (!items) throw py::error_already_set();
    count_ = static_cast<size_t>(PySequence_Fast_GET_SIZE(items.ptr()));
    values_.reserve(count_);
    for (size_t i = 0; i < count_; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.ptr(), static_cast<py::ssize_t>(i));
      int overflow = 0;
      int64_t value = PyLong_Check(item) ? PyLong_AsLongLongAndOverflow(item, &overflow) : as_index(item, overflow);
      // No id has 63 bits, so an integer that does not fit is as wrong as the largest that does.
      if (overflow != 0) value = overflow < 0 ? INT64_MIN : INT64_MAX;
      values_.push_back(value);
    }
  }

  // Calls `use(count, id_at)` without Python's lock.
  template <typename Use>
  void visit(Use&& use) const {
    py::gil_scoped_release released;
    if (!buffer_) {
      use(count_, [this](size_t i) { return values_[i]; });
      return;
    }
    const char* data = static_cast<const char*>(buffer_->ptr);
    const py::ssize_t stride = buffer_->strides.empty() ? buffer_->itemsize : buffer_->strides[0];
    const auto as = [&](auto example) {
      using Int = decltype(example);
      use(count_, [data, stride](size_t i) {
        Int value;
        std::memcpy(&value, data + static_cast<py::ssize_t>(i) * stride, sizeof value);
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
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(item));
    if (!number) throw py::error_already_set();
    return PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  }

  std::optional<py::buffer_info> buffer_;
  bool signed_ = false;
  size_t count_ = 0;
  std::vector<int64_t> values_;
};

// Codes of bytes with their ids.
struct Ids {
  std::shared_ptr<const TokenIds> tokens;
  std::unique_ptr<IdEncoder> encoder;
};

std::vector<Special> specials(const std::string& states) {
  std::vector<Special> result;
  for (const char state : states) result.push_back(static_cast<Special>(state - '0'));
  return result;
}

py::list encode_text(Ids& self, py::handle text, const std::string& special, double p, uint64_t seed, uint64_t epoch,
                     uint64_t index) {
  Texts texts;
  texts.add(text, -1);
  std::vector<int32_t> ids;
  {
    py::gil_scoped_release released;
    const EncodedDocuments encoded = self.encoder->encode(texts.views(), specials(special), {index}, -1,
                                                          {p, seed, epoch}, 1, [](size_t) { return std::string(); });
    ids.resize(static_cast<size_t>(encoded.offsets.back()));
    encoded.copy(reinterpret_cast<char*>(ids.data()), sizeof(int32_t), 1);
  }
  py::list result(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    PyList_SET_ITEM(result.ptr(), static_cast<py::ssize_t>(i), PyLong_FromLong(ids[i]));
  return result;
}

py::bytearray room(size_t bytes) {
  PyObject* array = PyByteArray_FromStringAndSize(nullptr, static_cast<py::ssize_t>(bytes));
  if (!array) throw py::error_already_set();
  return py::reinterpret_steal<py::bytearray>(array);
}

py::tuple encode_batch(Ids& self, py::handle given, const std::string& special, const std::vector<uint64_t>& indices,
                       double p, uint64_t seed, uint64_t epoch, unsigned workers, size_t width, int32_t append) {
  const py::tuple items = py::tuple(py::reinterpret_borrow<py::object>(given));
  Texts texts;
  for (py::ssize_t i = 0; i < static_cast<py::ssize_t>(items.size()); ++i) texts.add(items[i], i);
  std::optional<EncodedDocuments> encoded;
  {
    py::gil_scoped_release released;
    encoded = self.encoder->encode(texts.views(), specials(special), indices, append, {p, seed, epoch}, workers,
                                   [](size_t number) { return "text " + std::to_string(number) + ": "; });
  }
  const size_t bytes = static_cast<size_t>(encoded->offsets.back()) * width;
  py::bytearray ids = room(bytes), offsets = room(encoded->offsets.size() * sizeof(int64_t));
  char* const into = PyByteArray_AS_STRING(ids.ptr());
  std::memcpy(PyByteArray_AS_STRING(offsets.ptr()), encoded->offsets.data(), encoded->offsets.size() * sizeof(int64_t));
  py::gil_scoped_release released;
  encoded->copy(into, width, workers);
  encoded.reset();
  py::gil_scoped_acquire acquired;
  return py::make_tuple(std::move(ids), std::move(offsets));
}

py::bytes decode_ids(const Ids& self, py::handle given) {
  const GivenIds ids(given);
  OutputBuffer output;
  ids.visit([&](size_t count, auto&& id_at) { self.tokens->decode(count, id_at, [](size_t) {}, output); });
  return py::bytes(output.view());
}

py::tuple decode_with_starts(const Ids& self, py::handle given) {
  const GivenIds ids(given);
  OutputBuffer output;
  std::vector<size_t> starts;
  ids.visit([&](size_t count, auto&& id_at) {
    starts.reserve(count);
    self.tokens->decode(count, id_at, [&](size_t start) { starts.push_back(start); }, output);
  });
  return py::make_tuple(py::bytes(output.view()), std::move(starts));
}

// The text of several documents, each followed by `end`, without the id `strip` at its end. Errors number the first one
// `number`.
py::bytes decode_documents(const Ids& self, py::handle given, const std::vector<uint64_t>& sizes,
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
  return py::bytes(output.view());
}

}  // namespace

void bind_ids(py::module_& module) {
  py::class_<Ids>(module, "Ids")
      .def(py::init([](std::shared_ptr<Segmenter> segmenter, std::shared_ptr<Pretokeniser> pretokeniser,
                       std::vector<std::string> special, uint32_t multiple) {
             py::gil_scoped_release released;
             const bool end_of_word = segmenter->alphabet().end_of_word;
             auto tokens = std::make_shared<const TokenIds>(end_of_word, segmenter->merged_tokens(), std::move(special),
                                                            multiple);
             auto dictionary = std::make_shared<const Dictionary>(tokens->dictionary(segmenter->separator()));
             auto applier = std::make_shared<Applier>(segmenter, nullptr, pretokeniser, TableLimits(),
                                                      std::move(dictionary), Applier::kSpellOut);
             auto encoder = std::make_unique<IdEncoder>(applier, tokens, pretokeniser);
             return std::make_unique<Ids>(Ids{std::move(tokens), std::move(encoder)});
           }),
           py::arg("segmenter"), py::arg("pretokeniser"), py::arg("special_tokens") = std::vector<std::string>(),
           py::arg("multiple") = 1)
      .def_property_readonly("n_vocab", [](const Ids& self) { return self.tokens->n_vocab(); })
      .def_property_readonly("first_special", [](const Ids& self) { return self.tokens->first_special(); })
      .def("tokens",
           [](const Ids& self) {
             py::list tokens;
             for (size_t id = 0; id < self.tokens->n_vocab(); ++id) tokens.append(py::bytes(self.tokens->bytes_of(id)));
             return tokens;
           })
      .def("encode", &encode_text, py::arg("text"), py::arg("special"), py::arg("dropout") = 0.0, py::arg("seed") = 0,
           py::arg("epoch") = 0, py::arg("index") = 0)
      .def("encode_batch", &encode_batch, py::arg("texts"), py::arg("special"),
           py::arg("indices") = std::vector<uint64_t>(), py::arg("dropout") = 0.0, py::arg("seed") = 0,
           py::arg("epoch") = 0, py::arg("workers") = 1, py::arg("width") = 4, py::arg("append") = -1)
      .def(
          "encode_lines",
          [](Ids& self, const NamedObject& input, const NamedObject& ids, const NamedObject& sizes,
             const std::string& special, uint64_t first, size_t width, int32_t append, double p, uint64_t seed,
             uint64_t epoch, unsigned workers, py::object progress) {
            BlockReader reader = make_reader({input});
            const std::unique_ptr<Sink> ids_sink = make_sink(ids), sizes_sink = make_sink(sizes);
            const Tick tick = make_tick(std::move(progress));
            py::gil_scoped_release released;
            self.encoder->encode_lines(reader, *ids_sink, *sizes_sink, specials(special), first, width, append,
                                       {p, seed, epoch}, workers, tick);
          },
          py::arg("input"), py::arg("ids"), py::arg("sizes"), py::arg("special"), py::arg("first") = 0,
          py::arg("width") = 4, py::arg("append") = -1, py::arg("dropout") = 0.0, py::arg("seed") = 0,
          py::arg("epoch") = 0, py::arg("workers") = 1, py::arg("progress") = py::none())
      .def("decode", &decode_ids, py::arg("ids"))
      .def("decode_with_starts", &decode_with_starts, py::arg("ids"))
      .def("decode_documents", &decode_documents, py::arg("ids"), py::arg("sizes"), py::arg("end") = "\n",
           py::arg("strip") = -1, py::arg("number") = 1);
}

}  // namespace mt_scaffold
