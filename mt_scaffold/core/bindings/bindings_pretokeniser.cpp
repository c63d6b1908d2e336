#include <string>
#include <string_view>

#include "bindings/bindings.hpp"
#include "bindings/bindings_gil.hpp"
#include "bindings/bindings_text.hpp"
#include "text/pretokeniser.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

namespace {

Pretokeniser::Split make_split(nb::object split) {
  return [callable = shared_object(std::move(split))](std::string_view document) {
    auto ends = with_gil([&] { return nb::cast<std::vector<size_t>>((*callable)(to_bytes(document))); });
    size_t before = 0;
    for (const size_t end : ends) {
      if (end <= before || end > document.size()) throw nb::value_error("the ends of words must ascend");
      before = end;
    }
    if (before != document.size()) throw nb::value_error("the last word must end where the document does");
    return ends;
  };
}

}  // namespace

void bind_pretokeniser(nb::module_& module) {
  // `split` returns where the words of a document end; without it, `name` is one of the core's.
  nb::class_<Pretokeniser>(module, "Pretokeniser")
      .def(
          "__init__",
          [](Pretokeniser* self, std::string_view name, bool split_digits, nb::object split) {
            if (split.is_none())
              new (self) Pretokeniser(name, split_digits);
            else
              new (self) Pretokeniser(make_split(std::move(split)), split_digits);
          },
          nb::arg("name"), nb::arg("split_digits") = false, nb::arg("split") = nb::none())
      .def(
          "split",
          [](const Pretokeniser& self, std::string_view document) {
            std::string padded(document);
            padded.append(kPadding, '\0');
            nb::typed<nb::list, nb::bytes> words;
            self.for_each_word(padded.data(), padded.data() + document.size(),
                               [&](std::string_view word) { words.append(to_bytes(word)); });
            return words;
          },
          nb::arg("document"))
      .def("last_certain_cut", &Pretokeniser::last_certain_cut, nb::arg("text"), nb::arg("searched") = 0);
}

}  // namespace mt_scaffold
