#include "codes.hpp"

#include "errors.hpp"
#include "interner.hpp"
#include "lines.hpp"
#include "text.hpp"

namespace mt_scaffold {

namespace {

constexpr std::string_view kVersionLine = "#version: 0.2";
constexpr std::string_view kScaffoldMark = "scaffold";
constexpr size_t kFirstMergeLine = 2;

// Lines without their CR (in a CR LF file) and trailing spaces.
class CodesLines {
 public:
  explicit CodesLines(std::string_view text) : lines_(text) {}

  bool next(std::string_view& line) {
    if (!lines_.next(line)) return false;
    // The first line decides: in an LF file a merge may end in a CR of its own.
    if (++number_ == 1) cr_lf_ = line.ends_with('\r');
    if (cr_lf_ && line.ends_with('\r')) line.remove_suffix(1);
    while (line.ends_with(' ')) line.remove_suffix(1);
    return true;
  }

  size_t number() const { return number_; }

 private:
  Lines lines_;
  size_t number_ = 0;
  bool cr_lf_ = false;
};

}  // namespace

bool is_base_symbol(std::string_view token) {
  uint32_t ignored;
  const size_t length = decode_code_point(reinterpret_cast<const unsigned char*>(token.data()), token.size(), ignored);
  return token.size() == length || token.substr(length) == kEndOfWord;
}

std::vector<Merge> parse_codes(std::string_view text, const std::string& name, int64_t limit) {
  CodesLines lines(text);
  std::string_view line;
  const auto fail = [&](const std::string& what) {
    return InputError(name + ": line " + std::to_string(lines.number()) + ": " + what);
  };
  if (!lines.next(line)) throw InputError(name + ": the codes file is empty; write one with learn-bpe");
  if (line != kVersionLine) {
    throw fail(line.starts_with("#version:")
                   ? "unsupported version of the codes file; learn the codes again, which gives '#version: 0.2'"
                   : "expected '#version: 0.2'; if this is a codes file of format 0.1, learn the codes again");
  }
  std::vector<Merge> merges;
  Interner tokens;
  std::vector<size_t> marked_by;  // by token: the line of its first merge
  std::string token;
  while (lines.next(line)) {
    if (limit >= 0 && merges.size() >= static_cast<size_t>(limit)) break;
    if (const size_t bad = first_invalid_byte(line); bad != line.size())
      throw fail("byte " + std::to_string(bad + 1) + " of the line is not UTF-8");
    std::string_view fields[3];
    size_t count = 0;
    for (size_t start = 0; start <= line.size();) {
      size_t end = line.find(' ', start);
      if (end == std::string_view::npos) end = line.size();
      if (count < 3) fields[count] = line.substr(start, end - start);
      ++count;
      start = end + 1;
    }
    if (count < 2 || count > 3 || fields[0].empty() || fields[1].empty())
      throw fail("expected 'LEFT RIGHT' or 'LEFT RIGHT scaffold'");
    if (count == 3 && fields[2] != kScaffoldMark)
      throw fail("the third field must be 'scaffold', not '" + std::string(fields[2]) + "'");
    const bool scaffold = count == 3;
    token.assign(fields[0]).append(fields[1]);
    if (scaffold && is_base_symbol(token)) throw fail("a base symbol cannot be scaffold");
    const auto number = static_cast<size_t>(tokens.intern(token));
    if (number == marked_by.size()) {
      marked_by.push_back(lines.number());
    } else if (merges[marked_by[number] - kFirstMergeLine].scaffold != scaffold) {
      throw fail("'" + token + "' is " + (scaffold ? "" : "not ") + "scaffold here but " + (scaffold ? "not " : "") +
                 "on line " + std::to_string(marked_by[number]));
    }
    merges.push_back({std::string(fields[0]), std::string(fields[1]), scaffold});
  }
  return merges;
}

std::string format_codes(const std::vector<Merge>& merges) {
  std::string text(kVersionLine);
  text += '\n';
  for (const Merge& merge : merges) {
    text.append(merge.left).append(1, ' ').append(merge.right);
    if (merge.scaffold) text.append(1, ' ').append(kScaffoldMark);
    text += '\n';
  }
  return text;
}

}  // namespace mt_scaffold
