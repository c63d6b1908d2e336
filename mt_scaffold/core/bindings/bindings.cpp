// mt_scaffold._core: converts between Python and the native core.

#include "bindings/bindings.hpp"

#include <cerrno>

#include "bindings/bindings_codes.hpp"
#include "bindings/bindings_common.hpp"
#include "bindings/bindings_counts.hpp"
#include "bindings/bindings_draw.hpp"
#include "bindings/bindings_gil.hpp"
#include "codes/codes.hpp"
#include "count/word_counts.hpp"
#include "errors.hpp"
#include "io/blocks.hpp"
#include "learn/learner.hpp"
#include "learn/merge_queue.hpp"
#include "segment/applier.hpp"
#include "segment/segmenter.hpp"
#include "segment/token_ids.hpp"
#include "text/pretokeniser.hpp"

using namespace mt_scaffold;

namespace {

// Raises an exception of mt_scaffold.errors in Python.
void set_error(const char* name, const std::exception& error) {
  const nb::module_ errors = nb::module_::import_("mt_scaffold.errors");
  PyErr_SetObject(errors.attr(name).ptr(), errors.attr("in_one_line")(nb::str(error.what())).ptr());
}

// A LearnResult with the text of its codes.
struct PyLearned {
  nb::bytes codes;
  uint64_t restored;
  bool exhausted, limited;
};

// The pre-tokeniser of these codes; null if spaces separate words.
std::shared_ptr<const Pretokeniser> pretokeniser_of(const CodesHeader& header, std::shared_ptr<Pretokeniser> given) {
  if (header.alphabet().end_of_word) return nullptr;
  if (given) return given;
  return std::make_shared<const Pretokeniser>(header.pretokeniser, header.split_digits);
}

Isolate make_isolate(nb::object isolate, bool bytes) {
  if (isolate.is_none()) return nullptr;
  return remembering([callable = shared_object(std::move(isolate)), bytes](std::string_view word) {
    std::vector<WordPart> parts;
    with_gil([&] {
      const nb::object argument = bytes ? nb::object(to_bytes(word)) : nb::object(decode(word));
      for (const auto& part : nb::cast<nb::list>((*callable)(argument))) {
        const auto pair = nb::cast<nb::tuple>(part);
        const auto text = nb::cast<std::string>(pair[0]);
        parts.push_back({static_cast<uint32_t>(text.size()), nb::cast<bool>(pair[1])});
      }
    });
    return parts;
  });
}

nb::str segment_line(Applier& self, std::string_view line, bool keep_margins, const Draw& draw, uint64_t index) {
  const Interruptible interruptible(handle_signals);
  char room[size_t{1} << 13];
  OutputBuffer output(room, sizeof room);
  self.segment_line(line, keep_margins, draw, index, output);
  return decode(output.view());
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "The native core of mt_scaffold: learning and applying BPE, Scaffold-BPE and PickyBPE.";
  // Objects still alive when Python exits are not leaks of ours.
  nb::set_leak_warnings(false);

  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const SpecialTokenFound& error) {
      set_error("SpecialTokenError", error);
    } catch (const UsageError& error) {
      set_error("UsageError", error);
    } catch (const InputError& error) {
      set_error("MTScaffoldError", error);
    } catch (const SystemError& error) {
      errno = error.code;
      PyErr_SetFromErrnoWithFilename(PyExc_OSError, error.what());
    }
  });

  bind_pretokeniser(module);
  bind_counts(module);
  bind_codes(module);

  nb::class_<PyLearned>(module, "Learned")
      .def_ro("codes", &PyLearned::codes)
      .def_ro("restored", &PyLearned::restored)
      .def_ro("exhausted", &PyLearned::exhausted)
      .def_ro("limited", &PyLearned::limited);

  // Uses up the counts, which frees their memory. `given`: codes whose merges and splits come first.
  module.def(
      "learn",
      [](PyWordCounts& counts, const std::string& algorithm, uint64_t symbols, int64_t min_frequency,
         nb::object on_step, nb::object progress, const PyHeader& given_header, double threshold,
         const std::optional<std::string_view>& given) {
        CodesHeader header = header_of(given_header);
        header.picky = algorithm == "picky";
        const bool bytes = header.bytes;
        LearnOptions options{header.picky              ? Algorithm::kPicky
                             : algorithm == "scaffold" ? Algorithm::kScaffold
                                                       : Algorithm::kBpe,
                             header.alphabet(), symbols, min_frequency, threshold};
        if (given) {
          Codes codes = parse_codes(*given, "codes", -1);
          options.given = std::move(codes.merges);
          options.given_splits = std::move(codes.splits);
        }
        const auto shown = [bytes](std::string_view token) { return decode(shown_token(token, bytes)); };
        OnStep report;
        if (!on_step.is_none()) {
          report = [&](const Step& step) {
            with_gil([&] {
              nb::object returned = nb::none();
              if (step.returned) returned = nb::make_tuple(shown(step.returned->text), step.returned->frequency);
              on_step(shown(step.left), shown(step.right), step.frequency, step.head, step.left_marked,
                      step.right_marked, returned);
            });
          };
        }
        const Tick tick = make_tick(std::move(progress));
        WordCounts words = counts.take();
        LearnResult result = without_gil([&] { return learn(std::move(words), options, report, tick); });
        return PyLearned{to_bytes(format_codes({header, std::move(result.merges), std::move(result.splits)})),
                         result.restored, result.exhausted, result.limited};
      },
      nb::arg("counts"), nb::arg("algorithm"), nb::arg("symbols"), nb::arg("min_frequency"),
      nb::arg("on_step") = nb::none(), nb::arg("progress") = nb::none(),
      nb::arg("header") = PyHeader(false, "spaces", false), nb::arg("threshold") = 0.9, nb::arg("given") = nb::none());

  module.attr("LONGEST_TOKEN") = MergeQueue::kLongestToken;

  nb::class_<Segmenter>(module, "Segmenter")
      .def(
          "__init__",
          [](Segmenter* self, std::string_view codes, std::string separator, const std::string& name, int64_t merges,
             const std::optional<StringSet>& vocabulary) {
            const ReleaseGil released;
            new (self)
                Segmenter(parse_codes(codes, name, merges), std::move(separator), vocabulary ? &*vocabulary : nullptr);
          },
          nb::arg("codes"), nb::arg("separator"), nb::arg("name") = "codes", nb::arg("merges") = -1,
          nb::arg("vocabulary") = nb::none())
      .def(
          "surface_forms",
          [](const Segmenter& self, bool isolates) {
            std::vector<nb::str> forms;
            const bool notation = !self.alphabet().end_of_word;
            for (const std::string& form : self.surface_forms(isolates))
              forms.push_back(decode(shown_token(form, notation)));
            return forms;
          },
          nb::arg("isolates") = false);

  nb::class_<Applier>(module, "Applier")
      .def(
          "__init__",
          [](Applier* self, std::shared_ptr<Segmenter> segmenter, nb::object isolate,
             std::optional<Dictionary> dictionary, int32_t unknown, size_t max_words, size_t max_bytes,
             std::shared_ptr<Pretokeniser> pretokeniser) {
            // The dictionary's keys (UTF-8 or bytes) are subwords, each but the last of a word followed by the
            // separator; without an end-of-word marker, the bytes of tokens, without separator. With bytes and a
            // marker, only a separator that contains a space distinguishes "a" inside a word from "a" at its end.
            Applier::Output output = WordText(*segmenter);
            if (dictionary)
              output.emplace<WordIds>(*segmenter, std::make_shared<const Dictionary>(std::move(*dictionary)), unknown);
            auto split = pretokeniser_of(segmenter->header(), std::move(pretokeniser));
            const bool bytes = segmenter->alphabet().bytes;
            new (self) Applier(std::move(segmenter), make_isolate(std::move(isolate), bytes), std::move(split),
                               TableLimits{max_words, max_bytes}, std::move(output));
          },
          nb::arg("segmenter"), nb::arg("isolate") = nb::none(), nb::arg("dictionary") = nb::none(),
          nb::arg("unknown") = 0, nb::arg("max_words") = TableLimits().max_words,
          nb::arg("max_bytes") = TableLimits().max_bytes, nb::arg("pretokeniser") = nb::none())
      .def(
          "apply",
          [](Applier& self, const NamedObject& input, const NamedObject& output, unsigned workers, const Draw& draw,
             nb::object progress, WordEndings* endings) {
            BlockReader reader = make_reader({input});
            const std::unique_ptr<Sink> sink = make_sink(output);
            const Tick tick = make_tick(std::move(progress));
            without_gil([&] { self.apply(reader, *sink, workers, draw, tick, endings); });
          },
          nb::arg("input"), nb::arg("output"), nb::arg("workers") = 1, nb::arg("draw") = nb::none(),
          nb::arg("progress") = nb::none(), nb::arg("endings") = nb::none())
      .def("segment_plain", [](Applier& self, std::string_view line,
                               bool keep_margins) { return segment_line(self, line, keep_margins, Draw(), 0); })
      .def("segment_line", &segment_line, nb::arg("line"), nb::arg("keep_margins") = true, nb::arg("draw") = nb::none(),
           nb::arg("index") = 0)
      .def(
          "segment_words",
          [](Applier& self, const std::vector<std::string>& words, const Draw& draw) {
            return decode(self.segment_words(words, draw));
          },
          nb::arg("words"), nb::arg("draw") = nb::none())
      .def(
          "ids",
          [](Applier& self, const std::vector<std::string>& lines, const std::vector<uint64_t>& indices,
             const Draw& draw) {
            const Applier::Ids result = without_gil([&] { return self.encode(lines, indices, draw); });
            const auto* offsets = reinterpret_cast<const char*>(result.offsets.data());
            return std::pair(to_bytes(result.ids.view()), nb::bytes(offsets, result.offsets.size() * sizeof(int64_t)));
          },
          nb::arg("lines"), nb::arg("indices") = std::vector<uint64_t>(), nb::arg("draw") = nb::none())
      .def(
          "count_subwords",
          [](Applier& self, PyWordCounts& counts) {
            const std::shared_ptr<const WordCounts> words = counts.shared();
            return PyWordCounts(without_gil([&] { return self.count_subwords(*words); }));
          },
          nb::arg("counts"))
      .def(
          "reachable",
          [](const Applier& self, PyWordCounts& counts, const Draw& draw) {
            const std::shared_ptr<const WordCounts> words = counts.shared();
            const std::vector<std::string> found = without_gil([&] { return self.reachable(*words, draw); });
            std::vector<nb::str> forms;
            for (const std::string& form : found) forms.push_back(decode(form));
            return forms;
          },
          nb::arg("counts"), nb::arg("draw") = nb::none());
  bind_ids(module);
}
