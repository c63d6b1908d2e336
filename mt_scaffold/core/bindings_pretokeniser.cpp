#include "bindings_pretokeniser.hpp"

#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <string_view>

#include "pretokeniser.hpp"
#include "text.hpp"

namespace py = pybind11;

namespace mt_scaffold {

namespace {

Pretokeniser::Split make_split(py::object split) {
  // The last copy may be destroyed on a thread that does not hold the GIL.
  auto callable = std::shared_ptr<py::object>(new py::object(std::move(split)), [](py::object* object) {
    py::gil_scoped_acquire gil;
    delete object;
  });
  return [callable](std::string_view document) {
    py::gil_scoped_acquire gil;
    auto ends = py::cast<std::vector<size_t>>((*callable)(py::bytes(document.data(), document.size())));
    size_t before = 0;
    for (const size_t end : ends) {
      if (end <= before || end > document.size()) throw py::value_error("the ends of words must ascend");
      before = end;
    }
    if (before != document.size()) throw py::value_error("the last word must end where the document does");
    return ends;
  };
}

}  // namespace

void bind_pretokeniser(py::module_& module) {
  py::class_<Pretokeniser, std::shared_ptr<Pretokeniser>>(module, "Pretokeniser")
      .def(py::init([](std::string_view name, bool split_digits, py::object split) {
             if (split.is_none()) return std::make_shared<Pretokeniser>(name, split_digits);
             return std::make_shared<Pretokeniser>(make_split(std::move(split)), split_digits);
           }),
           py::arg("name"), py::arg("split_digits") = false, py::arg("split") = py::none())
      .def(
          "split",
          [](const Pretokeniser& self, std::string_view document) {
            std::string padded(document);
            padded.append(kPadding, '\0');
            py::list words;
            self.for_each_word(padded.data(), padded.data() + document.size(),
                               [&](std::string_view word) { words.append(py::bytes(word.data(), word.size())); });
            return words;
          },
          py::arg("document"))
      .def(
          "last_certain_cut",
          [](const Pretokeniser& self, std::string_view text, size_t searched) {
            return self.last_certain_cut(text, searched);
          },
          py::arg("text"), py::arg("searched") = 0);
}

}  // namespace mt_scaffold
