// mt_scaffold._core: what Python sees of the native core. Only conversion happens here.

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cerrno>
#include <cstring>

#include "applier.hpp"
#include "codes.hpp"
#include "learner.hpp"
#include "segmenter.hpp"
#include "word_counter.hpp"

namespace py = pybind11;
using namespace mt_scaffold;

namespace {

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
    if (view.size() > size) throw std::length_error("read() returned more than was asked for");
    std::memcpy(into, view.data(), view.size());
    return view.size();
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
      // What gives no number has taken all; a raw stream may take a part.
      const size_t count = taken.is_none() ? size : std::min(py::cast<size_t>(taken), size);
      data += count;
      size -= count;
    }
  }

 private:
  py::object write_;
};

// An input is (name, file descriptor | bytes | object with read).
BlockReader make_reader(const std::vector<std::pair<std::string, py::object>>& inputs) {
  std::vector<std::unique_ptr<Source>> sources;
  for (const auto& [name, input] : inputs) {
    if (py::isinstance<py::int_>(input)) {
      sources.push_back(std::make_unique<FileSource>(py::cast<int>(input), name));
    } else if (py::isinstance<py::bytes>(input)) {
      sources.push_back(std::make_unique<MemorySource>(py::cast<std::string_view>(input), name));
    } else {
      sources.push_back(std::make_unique<PythonSource>(input, name));
    }
  }
  return BlockReader(std::move(sources));
}

// Looks for Ctrl-C, and reports progress where that is wanted.
Tick make_tick(py::object progress) {
  return [progress = std::move(progress)](uint64_t bytes) {
    py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!progress.is_none()) progress(bytes);
  };
}

struct PyWordCounts {
  WordCounts counts;
  bool taken = false;

  const WordCounts& get() const {
    if (taken) throw py::value_error("these counts have been handed to a learner");
    return counts;
  }
};

py::str decode(std::string_view text) { return py::str(text.data(), text.size()); }

std::vector<WordCount> by_frequency(const WordCounts& counts) {
  std::vector<WordCount> entries = counts.in_order();
  std::stable_sort(entries.begin(), entries.end(),
                   [](const WordCount& a, const WordCount& b) { return a.count > b.count; });
  return entries;
}

py::bytes format_vocabulary(const PyWordCounts& counts) {
  std::string text;
  {
    py::gil_scoped_release released;
    for (const WordCount& entry : by_frequency(counts.get())) {
      text.append(entry.word).append(1, ' ').append(std::to_string(entry.count)).append(1, '\n');
    }
  }
  return py::bytes(text);
}

// The padded copy of a line that the core can read past the end of.
std::string_view padded(std::string_view line, std::string& copy) {
  copy.assign(line).append(kPadding, '\0');
  return {copy.data(), line.size()};
}

// The counts of the subwords of counted words, in the order in which a reader of the segmented text would meet them.
std::unique_ptr<PyWordCounts> count_subwords(const PyWordCounts& counts, Applier& applier) {
  auto result = std::make_unique<PyWordCounts>();
  py::gil_scoped_release released;
  const auto worker = applier.make_worker({});
  OutputBuffer output;
  uint64_t position = 0;
  std::string copy;
  for (const WordCount& entry : counts.get().in_order()) {
    output.clear();
    const std::string_view word = padded(entry.word, copy);
    applier.segment_line(*worker, word, {0, 0}, 0, output);
    output.append("", 0);
    const std::string_view pieces = output.view();
    for_each_word(pieces.data(), pieces.data() + pieces.size(),
                  [&](std::string_view piece) { result->counts.add(hash_word(piece), entry.count, position++); });
  }
  return result;
}

struct PyApplier {
  std::shared_ptr<Applier> applier;
  // Workers between two calls, with the room that each has in the table of words; only while the GIL is held.
  std::vector<Applier::WorkerPointer> idle;

  Applier::WorkerPointer take_worker(const Dropout& dropout) {
    if (idle.empty()) return applier->make_worker(dropout);
    Applier::WorkerPointer worker = std::move(idle.back());
    idle.pop_back();
    Applier::set_dropout(*worker, dropout);
    return worker;
  }
};

[[noreturn]] void throw_not_utf8(size_t line, size_t position) {
  throw InputError("line " + std::to_string(line + 1) + ", byte offset " + std::to_string(position) + ": not UTF-8");
}

// The parts of words are remembered: Python's regular expressions are slow.
Isolate make_isolate(py::object isolate) {
  if (isolate.is_none()) return nullptr;
  struct Memory {
    std::mutex mutex;
    std::unordered_map<std::string, std::vector<WordPart>> parts;
  };
  // The callable may go when no thread holds the GIL.
  auto callable = std::shared_ptr<py::object>(new py::object(std::move(isolate)), [](py::object* object) {
    py::gil_scoped_acquire gil;
    delete object;
  });
  return [callable, memory = std::make_shared<Memory>()](std::string_view word) {
    const std::string key(word);
    const bool remembered = key.size() <= kLongestRememberedWord;
    if (remembered) {
      std::lock_guard lock(memory->mutex);
      const auto found = memory->parts.find(key);
      if (found != memory->parts.end()) return found->second;
    }
    std::vector<WordPart> parts;
    {
      py::gil_scoped_acquire gil;
      for (const auto& part : py::cast<py::list>((*callable)(decode(word)))) {
        const auto pair = py::cast<py::tuple>(part);
        const auto text = py::cast<std::string>(pair[0]);
        parts.push_back({static_cast<uint32_t>(text.size()), py::cast<bool>(pair[1])});
      }
    }
    if (!remembered) return parts;
    std::lock_guard lock(memory->mutex);
    if (memory->parts.size() >= size_t{1} << 18) memory->parts.clear();
    memory->parts.emplace(key, parts);
    return parts;
  };
}

py::bytes int_bytes(const void* data, size_t bytes) { return py::bytes(static_cast<const char*>(data), bytes); }

py::object error_type(const char* name) { return py::module_::import("mt_scaffold.errors").attr(name); }

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The native core of mt_scaffold: learning and applying BPE and Scaffold-BPE.";

  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const InputError& error) {
      py::set_error(error_type("MTScaffoldError"), error.what());
    } catch (const SystemError& error) {
      errno = error.code;
      PyErr_SetFromErrnoWithFilename(PyExc_OSError, error.what());
    }
  });

  py::class_<PyWordCounts>(module, "WordCounts")
      .def(py::init<>())
      .def("__len__", [](const PyWordCounts& counts) { return counts.get().size(); })
      .def("total",
           [](const PyWordCounts& counts) {
             uint64_t total = 0;
             counts.get().for_each([&](const WordCount& entry) { total += entry.count; });
             return total;
           })
      .def("lines", [](const PyWordCounts& counts) { return counts.get().lines; })
      .def("word_bytes",
           [](const PyWordCounts& counts) {
             uint64_t total = 0;
             counts.get().for_each([&](const WordCount& entry) { total += entry.word.size() * entry.count; });
             return total;
           })
      .def("items",
           [](const PyWordCounts& counts) {
             py::list items;
             for (const WordCount& entry : counts.get().in_order())
               items.append(py::make_tuple(decode(entry.word), entry.count));
             return items;
           })
      .def("add", [](PyWordCounts& counts, const PyWordCounts& other) { counts.counts.merge(other.get()); })
      .def("format_vocabulary", &format_vocabulary);

  module.def(
      "count_words",
      [](const std::vector<std::pair<std::string, py::object>>& inputs, unsigned workers, py::object progress) {
        BlockReader reader = make_reader(inputs);
        const Tick tick = make_tick(std::move(progress));
        auto counts = std::make_unique<PyWordCounts>();
        {
          py::gil_scoped_release released;
          counts->counts = count_words(reader, workers, tick);
        }
        return counts;
      },
      py::arg("inputs"), py::arg("workers") = 1, py::arg("progress") = py::none());

  module.def(
      "read_word_counts",
      [](const std::vector<std::pair<std::string, py::object>>& inputs, py::object progress) {
        BlockReader reader = make_reader(inputs);
        const Tick tick = make_tick(std::move(progress));
        auto counts = std::make_unique<PyWordCounts>();
        {
          py::gil_scoped_release released;
          counts->counts = read_word_counts(reader, tick);
        }
        return counts;
      },
      py::arg("inputs"), py::arg("progress") = py::none());

  py::class_<Learner>(module, "Learner")
      .def(py::init([](PyWordCounts& counts) {
        counts.get();
        counts.taken = true;
        py::gil_scoped_release released;
        return std::make_unique<Learner>(std::move(counts.counts));
      }))
      .def_property_readonly("internal_symbols", &Learner::internal_symbols)
      .def_property_readonly("final_symbols", &Learner::final_symbols)
      .def(
          "learn",
          [](Learner& learner, bool scaffold, uint64_t symbols, int64_t min_frequency, py::object on_merge,
             py::object progress) {
            LearnOptions options{scaffold ? Algorithm::kScaffold : Algorithm::kBpe, symbols, min_frequency};
            Learner::OnMerge report;
            if (!on_merge.is_none()) {
              report = [&](uint64_t index, const std::string& left, const std::string& right, int64_t count) {
                py::gil_scoped_acquire gil;
                on_merge(index, left, right, count);
              };
            }
            uint64_t merges = 0;
            const Tick tick = make_tick(std::move(progress));
            LearnResult result;
            std::string codes;
            {
              py::gil_scoped_release released;
              result = learner.learn(options, report, [&] { tick(merges += 256); });
              codes = format_codes(result.merges);
            }
            size_t scaffolds = 0;
            std::unordered_set<std::string> tokens;
            for (const Merge& merge : result.merges)
              scaffolds += merge.scaffold && tokens.insert(merge.left + merge.right).second;
            py::dict learned;
            learned["codes"] = py::bytes(codes);
            learned["merges"] = result.merges.size();
            learned["scaffold"] = scaffolds;
            learned["restored"] = result.restored;
            learned["exhausted"] = result.exhausted;
            return learned;
          },
          py::arg("scaffold"), py::arg("symbols"), py::arg("min_frequency"), py::arg("on_merge") = py::none(),
          py::arg("progress") = py::none());

  module.def(
      "parse_codes",
      [](std::string_view text, const std::string& name, int64_t merges) {
        py::list result;
        for (const Merge& merge : parse_codes(text, name, merges))
          result.append(py::make_tuple(decode(merge.left), decode(merge.right), merge.scaffold));
        return result;
      },
      py::arg("text"), py::arg("name") = "codes", py::arg("merges") = -1,
      "The merges of a codes file as (left, right, scaffold).");

  module.def(
      "format_codes",
      [](const std::vector<std::tuple<std::string, std::string, bool>>& merges) {
        std::vector<Merge> list;
        for (const auto& [left, right, scaffold] : merges) list.push_back({left, right, scaffold});
        return py::bytes(format_codes(list));
      },
      "The text of a codes file.");

  py::class_<Segmenter, std::shared_ptr<Segmenter>>(module, "Segmenter")
      .def(py::init([](std::string_view codes, const std::string& name, int64_t merges, std::string separator,
                       std::optional<std::unordered_set<std::string>> vocabulary) {
             py::gil_scoped_release released;
             return std::make_shared<Segmenter>(parse_codes(codes, name, merges), std::move(separator),
                                                vocabulary ? &*vocabulary : nullptr);
           }),
           py::arg("codes"), py::arg("name") = "codes", py::arg("merges") = -1, py::arg("separator") = "@@",
           py::arg("vocabulary") = py::none())
      .def("surface_forms", [](const Segmenter& segmenter) {
        py::list forms;
        for (const std::string& form : segmenter.surface_forms()) forms.append(decode(form));
        return forms;
      });

  py::class_<PyApplier>(module, "Applier")
      .def(py::init([](std::shared_ptr<Segmenter> segmenter, py::object isolate, std::optional<Dictionary> dictionary,
                       int32_t unknown, size_t max_words, size_t max_bytes) {
             std::shared_ptr<const Dictionary> shared;
             if (dictionary) shared = std::make_shared<const Dictionary>(std::move(*dictionary));
             auto applier = std::make_shared<Applier>(std::move(segmenter), make_isolate(std::move(isolate)),
                                                      TableLimits{max_words, max_bytes}, shared, unknown);
             return PyApplier{std::move(applier), {}};
           }),
           py::arg("segmenter"), py::arg("isolate") = py::none(), py::arg("dictionary") = py::none(),
           py::arg("unknown") = 0, py::arg("max_words") = TableLimits().max_words,
           py::arg("max_bytes") = TableLimits().max_bytes)
      .def(
          "apply",
          [](PyApplier& self, const std::pair<std::string, py::object>& input,
             const std::pair<std::string, py::object>& output, unsigned workers, double p, uint64_t seed,
             uint64_t epoch, py::object progress) {
            BlockReader reader = make_reader({input});
            std::unique_ptr<Sink> sink;
            if (py::isinstance<py::int_>(output.second)) {
              sink = std::make_unique<FileSink>(py::cast<int>(output.second), output.first);
            } else {
              sink = std::make_unique<PythonSink>(output.second);
            }
            const Tick tick = make_tick(std::move(progress));
            py::gil_scoped_release released;
            self.applier->apply(reader, *sink, workers, {p, seed, epoch}, tick);
          },
          py::arg("input"), py::arg("output"), py::arg("workers") = 1, py::arg("dropout") = 0.0, py::arg("seed") = 0,
          py::arg("epoch") = 0, py::arg("progress") = py::none())
      .def(
          "segment_line",
          [](PyApplier& self, std::string_view line, bool keep_margins, double p, uint64_t seed, uint64_t epoch,
             uint64_t sentence) {
            std::string copy;
            const std::string_view text = padded(line, copy);
            OutputBuffer output;
            output.append("", 0);
            const Margins margins = keep_margins ? line_margins(text.data(), text.data() + text.size()) : Margins{0, 0};
            auto worker = self.take_worker({p, seed, epoch});
            const size_t bad = self.applier->segment_line(*worker, text, margins, sentence, output);
            self.idle.push_back(std::move(worker));
            if (bad != Applier::kValid) throw_not_utf8(0, bad);
            return decode(output.view());
          },
          py::arg("line"), py::arg("keep_margins") = true, py::arg("dropout") = 0.0, py::arg("seed") = 0,
          py::arg("epoch") = 0, py::arg("sentence") = 0)
      .def(
          "ids",
          [](PyApplier& self, const std::vector<std::string>& lines, const std::vector<uint64_t>& sentences, double p,
             uint64_t seed, uint64_t epoch) {
            OutputBuffer output;
            std::vector<int64_t> offsets = {0};
            auto worker = self.take_worker({p, seed, epoch});
            {
              py::gil_scoped_release released;
              output.append("", 0);
              std::string copy;
              for (size_t i = 0; i < lines.size(); ++i) {
                std::string_view line = lines[i];
                if (line.ends_with('\n')) line.remove_suffix(1);
                const std::string_view text = padded(line, copy);
                const uint64_t sentence = sentences.empty() ? i : sentences[i];
                const Margins margins = line_margins(text.data(), text.data() + text.size());
                const size_t bad = self.applier->segment_line(*worker, text, margins, sentence, output);
                if (bad != Applier::kValid) throw_not_utf8(i, bad);
                offsets.push_back(static_cast<int64_t>(output.size() / sizeof(int32_t)));
              }
            }
            self.idle.push_back(std::move(worker));
            return py::make_tuple(int_bytes(output.view().data(), output.size()),
                                  int_bytes(offsets.data(), offsets.size() * sizeof(int64_t)));
          },
          py::arg("lines"), py::arg("sentences") = std::vector<uint64_t>(), py::arg("dropout") = 0.0,
          py::arg("seed") = 0, py::arg("epoch") = 0)
      .def("count_subwords",
           [](PyApplier& self, const PyWordCounts& counts) { return count_subwords(counts, *self.applier); });
}
