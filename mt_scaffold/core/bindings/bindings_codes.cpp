#include "bindings/bindings.hpp"
#include "bindings/bindings_text.hpp"
#include "codes/codes.hpp"
#include "errors.hpp"
#include "text/notation.hpp"

namespace mt_scaffold {

void bind_codes(nb::module_& module) {
  // Symbols that are bytes are in GPT-2's notation, here and in what learn() reports.
  module.def(
      "parse_codes",
      [](std::string_view text, const std::string& name, int64_t merges) {
        std::vector<std::tuple<nb::str, nb::str, bool>> result;
        const Codes codes = parse_codes(text, name, merges);
        const bool bytes = codes.header.bytes;
        for (const Merge& merge : codes.merges)
          result.emplace_back(decode(shown_token(merge.left, bytes)), decode(shown_token(merge.right, bytes)),
                              merge.scaffold);
        return result;
      },
      nb::arg("text"), nb::arg("name") = "codes", nb::arg("merges") = -1);

  // The number of merges before each split, the token and its pieces.
  module.def(
      "parse_splits",
      [](std::string_view text, const std::string& name, int64_t merges) {
        std::vector<std::tuple<uint64_t, nb::str, std::vector<nb::str>>> result;
        const Codes codes = parse_codes(text, name, merges);
        for (const Split& split : codes.splits) {
          std::vector<nb::str> pieces;
          for (const std::string& piece : split.pieces)
            pieces.push_back(decode(shown_token(piece, codes.header.bytes)));
          result.emplace_back(split.after, decode(shown_token(split.token, codes.header.bytes)), std::move(pieces));
        }
        return result;
      },
      nb::arg("text"), nb::arg("name") = "codes", nb::arg("merges") = -1);

  module.def(
      "parse_header",
      [](std::string_view text, const std::string& name) {
        const CodesHeader header = parse_codes_header(text, name);
        return std::tuple(header.bytes, header.pretokeniser, header.split_digits, header.picky);
      },
      nb::arg("text"), nb::arg("name") = "codes");

  module.def("bytes_to_notation", [](std::string_view bytes) { return decode(notation_of(bytes)); }, nb::arg("bytes"));
  module.def(
      "notation_to_bytes",
      [](std::string_view notation) {
        std::string bytes;
        if (!append_from_notation(bytes, notation))
          throw InputError("'" + std::string(notation) + "' is not in GPT-2's notation of bytes");
        return to_bytes(bytes);
      },
      nb::arg("notation"));
}

}  // namespace mt_scaffold
