// mt_scaffold._core: converts between Python and the native core.

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "applier.hpp"
#include "bindings_codes.hpp"
#include "bindings_common.hpp"
#include "bindings_counts.hpp"
#include "bindings_ids.hpp"
#include "bindings_pretokeniser.hpp"
#include "blocks.hpp"
#include "codes.hpp"
#include "errors.hpp"
#include "learner.hpp"
#include "pretokeniser.hpp"
#include "segmenter.hpp"
#include "token_ids.hpp"
#include "word_counts.hpp"

using namespace mt_scaffold;

namespace {

// What cuts text into words for these codes; null for words between spaces.
std::shared_ptr<const Pretokeniser> pretokeniser_of(const CodesHeader& header, std::shared_ptr<Pretokeniser> given) {
  if (header.alphabet().end_of_word) return nullptr;
  if (given) return given;
  return std::make_shared<const Pretokeniser>(header.pretokeniser, header.split_digits);
}

Isolate make_isolate(py::object isolate, bool bytes) {
  if (isolate.is_none()) return nullptr;
  // The last copy may be destroyed on a thread that does not hold the GIL.
  auto callable = std::shared_ptr<py::object>(new py::object(std::move(isolate)), [](py::object* object) {
    py::gil_scoped_acquire gil;
    delete object;
  });
  return remembering([callable, bytes](std::string_view word) {
    py::gil_scoped_acquire gil;
    std::vector<WordPart> parts;
    const py::object argument = bytes ? py::object(py::bytes(word.data(), word.size())) : py::object(decode(word));
    for (const auto& part : py::cast<py::list>((*callable)(argument))) {
      const auto pair = py::cast<py::tuple>(part);
      const auto text = py::cast<std::string>(pair[0]);
      parts.push_back({static_cast<uint32_t>(text.size()), py::cast<bool>(pair[1])});
    }
    return parts;
  });
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The native core of mt_scaffold: learning and applying BPE and Scaffold-BPE.";

  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const SpecialTokenFound& error) {
      py::set_error(py::module_::import("mt_scaffold.errors").attr("SpecialTokenError"), error.what());
    } catch (const InputError& error) {
      py::set_error(py::module_::import("mt_scaffold.errors").attr("MTScaffoldError"), error.what());
    } catch (const SystemError& error) {
      errno = error.code;
      PyErr_SetFromErrnoWithFilename(PyExc_OSError, error.what());
    }
  });

  bind_pretokeniser(module);
  bind_counts(module);
  bind_codes(module);

  module.def(
      "learn",
      [](PyWordCounts& counts, bool scaffold, uint64_t symbols, int64_t min_frequency, py::object on_step,
         py::object progress, const PyHeader& given_header) {
        const CodesHeader header = header_of(given_header);
        const bool bytes = header.bytes;
        const LearnOptions options{scaffold ? Algorithm::kScaffold : Algorithm::kBpe, header.alphabet(), symbols,
                                   min_frequency};
        const auto shown = [bytes](std::string_view token) { return decode(shown_token(token, bytes)); };
        OnStep report;
        if (!on_step.is_none()) {
          report = [&](const Step& step) {
            py::gil_scoped_acquire gil;
            py::object returned = py::none();
            if (step.returned) returned = py::make_tuple(shown(step.returned->text), step.returned->frequency);
            on_step(shown(step.left), shown(step.right), step.frequency, step.head, step.left_marked, step.right_marked,
                    returned);
          };
        }
        const Tick tick = make_tick(std::move(progress));
        WordCounts words = counts.take();
        LearnResult result = without_gil([&] { return learn(std::move(words), options, report, tick); });
        py::dict learned;
        learned["merges"] = result.merges.size();
        learned["codes"] = py::bytes(format_codes({header, std::move(result.merges)}));
        learned["scaffold"] = result.scaffold;
        learned["restored"] = result.restored;
        learned["exhausted"] = result.exhausted;
        return learned;
      },
      py::arg("counts"), py::arg("scaffold"), py::arg("symbols"), py::arg("min_frequency"),
      py::arg("on_step") = py::none(), py::arg("progress") = py::none(),
      py::arg("header") = PyHeader(false, "spaces", false));

  py::class_<Segmenter, std::shared_ptr<Segmenter>>(module, "Segmenter")
      .def(py::init([](std::string_view codes, std::string separator, const std::string& name, int64_t merges,
                       const std::optional<std::unordered_set<std::string>>& vocabulary) {
             py::gil_scoped_release released;
             return std::make_shared<Segmenter>(parse_codes(codes, name, merges), std::move(separator),
                                                vocabulary ? &*vocabulary : nullptr);
           }),
           py::arg("codes"), py::arg("separator"), py::arg("name") = "codes", py::arg("merges") = -1,
           py::arg("vocabulary") = py::none())
      .def("surface_forms", [](const Segmenter& self) {
        py::list forms;
        const bool notation = !self.alphabet().end_of_word;
        for (const std::string& form : self.surface_forms()) forms.append(decode(shown_token(form, notation)));
        return forms;
      });

  py::class_<Applier>(module, "Applier")
      .def(
          py::init([](std::shared_ptr<Segmenter> segmenter, py::object isolate, std::optional<Dictionary> dictionary,
                      int32_t unknown, size_t max_words, size_t max_bytes, std::shared_ptr<Pretokeniser> pretokeniser) {
            // Keys are bytes, or strings in UTF-8: subwords with the separator, which is after all but a word's last.
            // Without an end-of-word marker they are the bytes of tokens, and tokens have no separator. With bytes
            // and a marker, a separator that holds a space tells "a" inside a word from "a" at its end for sure.
            std::shared_ptr<const Dictionary> shared;
            if (dictionary) shared = std::make_shared<const Dictionary>(std::move(*dictionary));
            auto split = pretokeniser_of(segmenter->header(), std::move(pretokeniser));
            const bool bytes = segmenter->alphabet().bytes;
            return std::make_unique<Applier>(std::move(segmenter), make_isolate(std::move(isolate), bytes),
                                             std::move(split), TableLimits{max_words, max_bytes}, std::move(shared),
                                             unknown);
          }),
          py::arg("segmenter"), py::arg("isolate") = py::none(), py::arg("dictionary") = py::none(),
          py::arg("unknown") = 0, py::arg("max_words") = TableLimits().max_words,
          py::arg("max_bytes") = TableLimits().max_bytes, py::arg("pretokeniser") = nullptr)
      .def(
          "apply",
          [](Applier& self, const NamedObject& input, const NamedObject& output, unsigned workers, double p,
             uint64_t seed, uint64_t epoch, py::object progress) {
            BlockReader reader = make_reader({input});
            const std::unique_ptr<Sink> sink = make_sink(output);
            const Tick tick = make_tick(std::move(progress));
            py::gil_scoped_release released;
            self.apply(reader, *sink, workers, {p, seed, epoch}, tick);
          },
          py::arg("input"), py::arg("output"), py::arg("workers") = 1, py::arg("dropout") = 0.0, py::arg("seed") = 0,
          py::arg("epoch") = 0, py::arg("progress") = py::none())
      .def(
          "segment_line",
          [](Applier& self, std::string_view line, bool keep_margins, double p, uint64_t seed, uint64_t epoch,
             uint64_t index) { return decode(self.segment_line(line, keep_margins, {p, seed, epoch}, index)); },
          py::arg("line"), py::arg("keep_margins") = true, py::arg("dropout") = 0.0, py::arg("seed") = 0,
          py::arg("epoch") = 0, py::arg("index") = 0)
      .def(
          "segment_words",
          [](Applier& self, const std::vector<std::string>& words, double p, uint64_t seed, uint64_t epoch,
             uint64_t index) { return decode(self.segment_words(words, {p, seed, epoch}, index)); },
          py::arg("words"), py::arg("dropout") = 0.0, py::arg("seed") = 0, py::arg("epoch") = 0, py::arg("index") = 0)
      .def(
          "ids",
          [](Applier& self, const std::vector<std::string>& lines, const std::vector<uint64_t>& indices, double p,
             uint64_t seed, uint64_t epoch) {
            const Applier::Ids result = without_gil([&] { return self.encode(lines, indices, {p, seed, epoch}); });
            const auto* offsets = reinterpret_cast<const char*>(result.offsets.data());
            return py::make_tuple(py::bytes(result.ids.view()),
                                  py::bytes(offsets, result.offsets.size() * sizeof(int64_t)));
          },
          py::arg("lines"), py::arg("indices") = std::vector<uint64_t>(), py::arg("dropout") = 0.0, py::arg("seed") = 0,
          py::arg("epoch") = 0)
      .def("count_subwords", [](Applier& self, PyWordCounts& counts) {
        const WordCounts& words = counts.get();
        return PyWordCounts(without_gil([&] { return self.count_subwords(words); }));
      });
  bind_ids(module);
}
