#include "bindings/bindings_counts.hpp"

#include "bindings/bindings.hpp"
#include "bindings/bindings_codes.hpp"
#include "bindings/bindings_common.hpp"
#include "count/count_file.hpp"
#include "count/count_words.hpp"
#include "count/counted_words.hpp"
#include "learn/prune.hpp"
#include "text/pretokeniser.hpp"

namespace mt_scaffold {

namespace {

// Words counted by the core or read from count files.
struct PyCountedWords {
  CountedWords words;
  bool in_use = false;

  // Refuses calls from other threads, which may get the GIL during one.
  class Use {
   public:
    explicit Use(PyCountedWords& words) : in_use_(words.in_use) {
      if (std::exchange(in_use_, true)) throw nb::value_error("these counted words are in use by another thread");
    }
    Use(const Use&) = delete;
    ~Use() { in_use_ = false; }

   private:
    bool& in_use_;
  };
};

// The words by first occurrence, made by `to_python`, with their counts.
template <auto to_python>
auto items(PyWordCounts& self) {
  const std::shared_ptr<const WordCounts> counts = self.shared();
  std::vector<std::pair<decltype(to_python({})), uint64_t>> items;
  for (const WordCount& entry : counts->in_order()) items.emplace_back(to_python(entry.word), entry.count);
  return items;
}

}  // namespace

void bind_counts(nb::module_& module) {
  nb::class_<PyWordCounts>(module, "WordCounts")
      .def(nb::init<>())
      .def("__len__", [](PyWordCounts& self) { return self.get().size(); })
      .def("total", [](PyWordCounts& self) { return self.get().total(); })
      .def("lines", [](PyWordCounts& self) { return self.get().lines; })
      .def("word_bytes", [](PyWordCounts& self) { return self.get().word_bytes(); })
      .def(
          "base_symbols",
          [](PyWordCounts& self, bool bytes, bool end_of_word) {
            const BaseSymbols symbols = self.get().base_symbols({bytes, end_of_word});
            return std::pair(symbols.internal, symbols.final);
          },
          nb::arg("bytes") = false, nb::arg("end_of_word") = true)
      .def("items", &items<decode>)
      .def("byte_items", &items<to_bytes>)
      .def(
          "add", [](PyWordCounts& self, PyWordCounts& other) { self.to_change().merge(other.get()); }, nb::arg("other"))
      .def("format_vocabulary", [](PyWordCounts& self) {
        const std::shared_ptr<const WordCounts> counts = self.shared();
        return to_bytes(without_gil([&] { return format_vocabulary(*counts); }));
      });

  nb::class_<PyCountedWords>(module, "CountedWords")
      .def(
          "__init__",
          [](PyCountedWords* self, uint64_t max_memory, std::string folder) {
            new (self) PyCountedWords{CountedWords({max_memory, std::move(folder)})};
          },
          nb::arg("max_memory"), nb::arg("folder"))
      .def("bytes_on_disk",
           [](PyCountedWords& self) {
             const PyCountedWords::Use use(self);
             return self.words.bytes_on_disk();
           })
      // The files must stay open until one of the calls below uses them up.
      .def(
          "open",
          [](PyCountedWords& self, const std::vector<NamedObject>& inputs) {
            const PyCountedWords::Use use(self);
            std::vector<PyHeader> headers;
            for (const NamedObject& input : inputs) {
              std::unique_ptr<Source> source = make_source(input);
              auto file = without_gil([&] { return std::make_unique<CountFileReader>(std::move(source)); });
              const CodesHeader& header = file->header();
              headers.emplace_back(header.bytes, header.pretokeniser, header.split_digits);
              self.words.add(std::move(file));
            }
            return headers;
          },
          nb::arg("inputs"))
      .def(
          "set_aside",
          [](PyCountedWords& self, nb::object progress) {
            const PyCountedWords::Use use(self);
            const Tick tick = make_tick(std::move(progress));
            without_gil([&] { self.words.set_aside(tick); });
          },
          nb::arg("progress") = nb::none())
      .def(
          "write",
          [](PyCountedWords& self, const NamedObject& output, const PyHeader& header, nb::object progress) {
            const PyCountedWords::Use use(self);
            const std::unique_ptr<Sink> sink = make_sink(output);
            const Tick tick = make_tick(std::move(progress));
            const CountTotals totals =
                without_gil([&] { return write_count_file(*self.words.sorted(), header_of(header), *sink, tick); });
            return std::pair(totals.types, totals.occurrences);
          },
          nb::arg("output"), nb::arg("header"), nb::arg("progress") = nb::none())
      // Uses up the words; returns the kept ones and, of the dropped ones, types, occurrences and the error of a pair.
      .def(
          "load",
          [](PyCountedWords& self, const PyHeader& header, uint64_t prune, uint64_t max_memory, nb::object progress) {
            const PyCountedWords::Use use(self);
            const Tick tick = make_tick(std::move(progress));
            const Loading loading{prune, max_memory, header_of(header).alphabet()};
            Loaded loaded = without_gil([&] { return load(self.words, loading, tick); });
            const Dropped& dropped = loaded.dropped;
            return std::pair(PyWordCounts(std::move(loaded.words)),
                             std::tuple(dropped.types, dropped.occurrences, dropped.pair_error));
          },
          nb::arg("header"), nb::arg("prune") = 1, nb::arg("max_memory") = 0, nb::arg("progress") = nb::none());

  nb::class_<WordEndings>(module, "WordEndings")
      .def(nb::init<std::string>(), nb::arg("separator"))
      .def_prop_ro("count", [](const WordEndings& self) { return self.found().count; })
      .def_prop_ro("first", [](const WordEndings& self) { return decode(self.found().first); });

  module.def(
      "count_words",
      [](const std::vector<NamedObject>& inputs, unsigned workers, nb::object progress,
         const Pretokeniser* pretokeniser, bool any_bytes, bool whole_inputs, WordEndings* endings, uint64_t max_memory,
         std::string folder) {
        BlockReader reader = make_reader(inputs);
        const Tick tick = make_tick(std::move(progress));
        const Counting counting{pretokeniser, any_bytes, whole_inputs, endings};
        const MemoryLimit limit{max_memory, std::move(folder)};
        return PyCountedWords{without_gil([&] { return count_words(reader, workers, counting, limit, tick); })};
      },
      nb::arg("inputs"), nb::arg("workers") = 1, nb::arg("progress") = nb::none(), nb::arg("pretokeniser") = nb::none(),
      nb::arg("any_bytes") = false, nb::arg("whole_inputs") = false, nb::arg("endings") = nb::none(),
      nb::arg("max_memory") = 0, nb::arg("folder") = "");

  module.def(
      "read_word_counts",
      [](const std::vector<NamedObject>& inputs, nb::object progress, bool any_bytes) {
        BlockReader reader = make_reader(inputs);
        const Tick tick = make_tick(std::move(progress));
        return PyWordCounts(without_gil([&] { return read_word_counts(reader, any_bytes, tick); }));
      },
      nb::arg("inputs"), nb::arg("progress") = nb::none(), nb::arg("any_bytes") = false);
}

}  // namespace mt_scaffold
