// What several parts of the bindings need: inputs, outputs and progress of Python in the core.
#pragma once

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "tick.hpp"

namespace mt_scaffold {

namespace py = pybind11;

// A Python object with read(size) -> bytes, such as a gzip stream.
class PythonSource : public Source {
 public:
  PythonSource(py::object stream, std::string name) : read_(stream.attr("read")) { this->name = std::move(name); }
  ~PythonSource() override {
    py::gil_scoped_acquire gil;
    read_ = py::object();
  }
  size_t read(char* into, size_t size, const std::atomic<bool>&) override {
    py::gil_scoped_acquire gil;
    const auto data = py::cast<py::bytes>(read_(size));
    const std::string_view view = data;
    if (view.size() > size) throw std::length_error("read() returned more bytes than requested");
    std::memcpy(into, view.data(), view.size());
    return view.size();
  }

 private:
  py::object read_;
};

// A Python object with read_documents() -> list of bytes, None at the end.
class PythonDocuments : public Source {
 public:
  PythonDocuments(py::object documents, std::string name) : read_(documents.attr("read_documents")) {
    this->name = std::move(name);
  }
  ~PythonDocuments() override {
    py::gil_scoped_acquire gil;
    read_ = py::object();
  }
  size_t read(char*, size_t, const std::atomic<bool>&) override { return 0; }
  bool has_documents() const override { return true; }
  bool read_documents(std::string& text, std::vector<size_t>& ends) override {
    py::gil_scoped_acquire gil;
    const py::object documents = read_();
    if (documents.is_none()) return false;
    for (const auto& document : py::cast<py::list>(documents)) {
      text.append(py::cast<std::string_view>(document));
      ends.push_back(text.size());
    }
    return true;
  }

 private:
  py::object read_;
};

class PythonSink : public Sink {
 public:
  explicit PythonSink(py::object stream) : write_(stream.attr("write")) {}
  ~PythonSink() override {
    py::gil_scoped_acquire gil;
    write_ = py::object();
  }
  void write(const char* data, size_t size, const std::atomic<bool>&) override {
    py::gil_scoped_acquire gil;
    while (size > 0) {
      const py::object taken = write_(py::bytes(data, size));
      // A raw stream may write a part only; one that returns None wrote all.
      const size_t count = taken.is_none() ? size : std::min(py::cast<size_t>(taken), size);
      data += count;
      size -= count;
    }
  }

 private:
  py::object write_;
};

using NamedObject = std::pair<std::string, py::object>;

// An input is (name, file descriptor | bytes | object with read or read_documents).
inline std::unique_ptr<Source> make_source(const NamedObject& given) {
  const auto& [name, input] = given;
  if (py::isinstance<py::int_>(input)) return std::make_unique<FileSource>(py::cast<int>(input), name);
  if (py::isinstance<py::bytes>(input)) return std::make_unique<MemorySource>(py::cast<std::string_view>(input), name);
  if (py::hasattr(input, "read_documents")) return std::make_unique<PythonDocuments>(input, name);
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
  if (py::isinstance<py::int_>(object)) return std::make_unique<FileSink>(py::cast<int>(object), name);
  return std::make_unique<PythonSink>(object);
}

// Checks for Ctrl-C, and reports progress unless that is None.
inline Tick make_tick(py::object progress) {
  return [progress = std::move(progress)](uint64_t done) {
    py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!progress.is_none()) progress(done);
  };
}

template <typename Work>
auto without_gil(Work&& work) {
  py::gil_scoped_release released;
  return work();
}

}  // namespace mt_scaffold
