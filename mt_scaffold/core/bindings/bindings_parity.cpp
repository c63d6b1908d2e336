#include "bindings/bindings_parity.hpp"

#include "bindings/bindings_codes.hpp"
#include "bindings/bindings_common.hpp"
#include "bindings/bindings_counts.hpp"
#include "bindings/bindings_gil.hpp"
#include "learn/parity.hpp"

namespace mt_scaffold {

namespace {

std::vector<WordCounts> take_all(const nb::list& counts) {
  std::vector<WordCounts> words;
  for (const auto& each : counts) words.push_back(nb::cast<PyWordCounts&>(each).take());
  return words;
}

}  // namespace

void bind_parity(nb::module_& module) {
  module.def(
      "learn_parity",
      [](const nb::list& training, const nb::list& development, uint64_t symbols, int64_t min_frequency,
         nb::object on_step, nb::object progress, const PyHeader& given_header, uint64_t global_merges, uint64_t window,
         uint64_t most_chosen) {
        const CodesHeader header = header_of(given_header);
        const bool bytes = header.bytes;
        const auto shown = [bytes](std::string_view token) { return decode(shown_token(token, bytes)); };
        OnParityStep report;
        if (!on_step.is_none()) {
          report = [&](const ParityStep& step) {
            const HoldGil gil;
            on_step(shown(step.left), shown(step.right), step.frequency, step.language, step.lengths);
          };
        }
        const Tick tick = make_tick(std::move(progress));
        std::vector<WordCounts> words = take_all(training), compared = take_all(development);
        const ParityOptions options{header.alphabet(), symbols, min_frequency, global_merges, window, most_chosen};
        ParityResult result =
            without_gil([&] { return learn_parity(std::move(words), std::move(compared), options, report, tick); });
        nb::dict learned;
        learned["codes"] = to_bytes(format_codes({header, std::move(result.merges)}));
        learned["exhausted"] = result.exhausted;
        learned["limited"] = result.limited;
        learned["language"] = result.language;
        return learned;
      },
      nb::arg("training"), nb::arg("development"), nb::arg("symbols"), nb::arg("min_frequency"),
      nb::arg("on_step") = nb::none(), nb::arg("progress") = nb::none(),
      nb::arg("header") = PyHeader(false, "spaces", false), nb::arg("global_merges") = 0, nb::arg("window") = 0,
      nb::arg("most_chosen") = 0);
}

}  // namespace mt_scaffold
