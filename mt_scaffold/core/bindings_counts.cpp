#include "bindings_counts.hpp"

#include "bindings_common.hpp"
#include "count_file.hpp"
#include "counted_words.hpp"
#include "pretokeniser.hpp"
#include "prune.hpp"

namespace mt_scaffold {

void bind_counts(py::module_& module) {
  py::class_<PyWordCounts>(module, "WordCounts")
      .def(py::init<>())
      .def("__len__", [](PyWordCounts& self) { return self.get().size(); })
      .def("total", [](PyWordCounts& self) { return self.get().total(); })
      .def("lines", [](PyWordCounts& self) { return self.get().lines; })
      .def("word_bytes", [](PyWordCounts& self) { return self.get().word_bytes(); })
      .def(
          "base_symbols",
          [](PyWordCounts& self, bool bytes, bool end_of_word) {
            const BaseSymbols symbols = self.get().base_symbols({bytes, end_of_word});
            return py::make_tuple(symbols.internal, symbols.final);
          },
          py::arg("bytes") = false, py::arg("end_of_word") = true)
      .def("items",
           [](PyWordCounts& self) {
             py::list items;
             for (const WordCount& entry : self.get().in_order())
               items.append(py::make_tuple(decode(entry.word), entry.count));
             return items;
           })
      .def("byte_items",
           [](PyWordCounts& self) {
             py::list items;
             for (const WordCount& entry : self.get().in_order())
               items.append(py::make_tuple(py::bytes(entry.word.data(), entry.word.size()), entry.count));
             return items;
           })
      .def("add", [](PyWordCounts& self, PyWordCounts& other) { self.get().merge(other.get()); })
      .def("format_vocabulary", [](PyWordCounts& self) {
        const WordCounts& counts = self.get();
        return py::bytes(without_gil([&] { return format_vocabulary(counts); }));
      });

  module.def(
      "count_words",
      [](const std::vector<NamedObject>& inputs, unsigned workers, py::object progress,
         const Pretokeniser* pretokeniser, bool any_bytes, bool whole_inputs) {
        BlockReader reader = make_reader(inputs);
        const Tick tick = make_tick(std::move(progress));
        const Counting counting{pretokeniser, any_bytes, whole_inputs};
        return PyWordCounts(without_gil([&] { return count_words(reader, workers, counting, tick); }));
      },
      py::arg("inputs"), py::arg("workers") = 1, py::arg("progress") = py::none(), py::arg("pretokeniser") = py::none(),
      py::arg("any_bytes") = false, py::arg("whole_inputs") = false);

  module.def(
      "read_word_counts",
      [](const std::vector<NamedObject>& inputs, py::object progress, bool any_bytes) {
        BlockReader reader = make_reader(inputs);
        const Tick tick = make_tick(std::move(progress));
        return PyWordCounts(without_gil([&] { return read_word_counts(reader, any_bytes, tick); }));
      },
      py::arg("inputs"), py::arg("progress") = py::none(), py::arg("any_bytes") = false);
}

}  // namespace mt_scaffold
