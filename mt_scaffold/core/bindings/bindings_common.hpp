// Shared by the bindings: Python's inputs, outputs and progress callbacks for the core.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/bindings_gil.hpp"
#include "bindings/bindings_text.hpp"
#include "io/blocks.hpp"
#include "io/interruption.hpp"

namespace mt_scaffold {

// A Python object with read(size) -> bytes, such as a gzip stream.
class PythonSource : public Source {
 public:
  PythonSource(nb::object stream, std::string name)
      : Source(std::move(name), true), read_(shared_object(stream.attr("read"))) {}
  size_t read(char* into, size_t size) override {
    return with_gil([&] {
      const nb::object data = (*read_)(size);
      if (!nb::isinstance<nb::bytes>(data)) throw nb::type_error("read() must return bytes");
      const auto view = nb::cast<std::string_view>(data);
      if (view.size() > size) throw std::length_error("read() returned more bytes than requested");
      std::memcpy(into, view.data(), view.size());
      return view.size();
    });
  }

 private:
  const std::shared_ptr<nb::object> read_;
};

// A Python object with read_documents() -> list of bytes, None at the end.
class PythonDocuments : public Source {
 public:
  PythonDocuments(nb::object documents, std::string name)
      : Source(std::move(name), true), read_(shared_object(documents.attr("read_documents"))) {}
  size_t read(char*, size_t) override { return 0; }
  bool has_documents() const override { return true; }
  bool read_documents(OutputBuffer& text, std::vector<size_t>& ends) override {
    return with_gil([&] {
      const nb::object documents = (*read_)();
      if (documents.is_none()) return false;
      for (const auto& document : nb::cast<nb::list>(documents)) {
        const auto view = nb::cast<std::string_view>(document);
        text.append(view.data(), view.size());
        ends.push_back(text.size());
      }
      return true;
    });
  }

 private:
  const std::shared_ptr<nb::object> read_;
};

class PythonSink : public Sink {
 public:
  explicit PythonSink(nb::object stream)
      : Sink(true),
        write_(shared_object(stream.attr("write"))),
        raw_(nb::isinstance(stream, nb::module_::import_("io").attr("RawIOBase"))) {}
  void write(const char* data, size_t size) override {
    with_gil([&] {
      while (size > 0) {
        const nb::object taken = (*write_)(nb::bytes(data, size));
        // A raw stream may write only a part, and returns None if it can write nothing now; for others None means all.
        size_t count = raw_ && taken.is_none() ? 0 : size;
        if (!taken.is_none() && !nb::try_cast(taken, count))
          throw nb::type_error("write() must return the number of bytes that it took, or None");
        if (count == 0) throw InputError("write() of the output accepts nothing; use a blocking stream");
        count = std::min(count, size);
        data += count;
        size -= count;
      }
    });
  }

 private:
  const std::shared_ptr<nb::object> write_;
  const bool raw_;
};

using NamedObject = std::pair<std::string, nb::object>;

// An input is (name, file descriptor | (bytes read from it, file descriptor) | bytes | object with read or
// read_documents).
inline std::unique_ptr<Source> make_source(const NamedObject& given) {
  const auto& [name, input] = given;
  if (nb::isinstance<nb::int_>(input)) return std::make_unique<FileSource>(nb::cast<int>(input), name);
  const bool begun = nb::isinstance<nb::tuple>(input);
  if (begun || nb::isinstance<nb::bytes>(input)) {
    const auto taken = nb::cast<nb::bytes>(begun ? input[0] : input);
    const int descriptor = begun ? nb::cast<int>(input[1]) : FileSource::kNone;
    return std::make_unique<FileSource>(descriptor, name, std::string_view(taken.c_str(), taken.size()),
                                        shared_object(taken));
  }
  if (nb::hasattr(input, "read_documents")) return std::make_unique<PythonDocuments>(input, name);
  return std::make_unique<PythonSource>(input, name);
}

inline BlockReader make_reader(const std::vector<NamedObject>& inputs) {
  std::vector<std::unique_ptr<Source>> sources;
  for (const NamedObject& input : inputs) sources.push_back(make_source(input));
  return BlockReader(std::move(sources));
}

// An output is (name, file descriptor | object with write).
inline std::unique_ptr<Sink> make_sink(const NamedObject& output) {
  const auto& [name, object] = output;
  if (nb::isinstance<nb::int_>(object)) return std::make_unique<FileSink>(nb::cast<int>(object), name);
  return std::make_unique<PythonSink>(object);
}

// Returns a tick that checks for Ctrl-C and calls `progress` unless it is None.
inline Tick make_tick(nb::object progress) {
  return [progress = shared_object(std::move(progress))](uint64_t done) {
    handle_signals();
    if (!progress->is_none()) with_gil([&] { (*progress)(done); });
  };
}

// Releases the GIL and lets Ctrl-C end a call in the thread that made it.
template <typename Work>
auto without_gil(Work&& work) {
  const Interruptible interruptible(handle_signals);
  const ReleaseGil released;
  return work();
}

}  // namespace mt_scaffold
