// A target for libFuzzer: valid codes survive writing and reading, and their subwords concatenate to the word.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "codes/codes.hpp"
#include "errors.hpp"
#include "segment/segmenter.hpp"

using namespace mt_scaffold;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Codes codes;
  try {
    codes = parse_codes(text, "codes", -1);
  } catch (const InputError&) {
    return 0;
  }
  const Codes again = parse_codes(format_codes(codes), "codes", -1);
  if (again.merges.size() != codes.merges.size()) std::abort();
  for (size_t i = 0; i < codes.merges.size(); ++i)
    if (again.merges[i].left != codes.merges[i].left || again.merges[i].right != codes.merges[i].right ||
        again.merges[i].scaffold != codes.merges[i].scaffold)
      std::abort();
  const Segmenter segmenter(codes, "@@", nullptr);
  const auto scratch = segmenter.make_scratch();
  std::vector<std::string> words{"banana", "a", "a</w>", "\xE6\x97\xA5\xC3\xA4", std::string(60, 'a')};
  for (const Merge& merge : codes.merges) {
    std::string word = merge.left + merge.right;
    if (codes.header.alphabet().end_of_word && word.ends_with("</w>")) word.resize(word.size() - 4);
    if (!word.empty() && words.size() < 40) words.push_back(std::move(word));
  }
  for (const std::string& word : words) {
    std::vector<Piece> pieces;
    segmenter.segment(word, pieces, *scratch, nullptr);
    uint32_t end = 0;
    for (const Piece& piece : pieces) {
      if (piece.begin != end || piece.end <= piece.begin) std::abort();
      end = piece.end;
    }
    if (end != word.size()) std::abort();
  }
  return 0;
}
