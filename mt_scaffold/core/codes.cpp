#include "codes.hpp"

#include <utility>

#include "errors.hpp"
#include "interner.hpp"
#include "lines.hpp"
#include "notation.hpp"
#include "text.hpp"

namespace mt_scaffold {

namespace {

constexpr std::string_view kScaffoldMark = "scaffold";
constexpr size_t kFirstMergeLine = 2;

// Lines without their CR (in a CR LF file) and, but for the first, trailing spaces.
class CodesLines {
 public:
  explicit CodesLines(std::string_view text) : lines_(text) {}

  bool next(std::string_view& line) {
    if (!lines_.next(line)) return false;
    // The first line decides: in an LF file a merge may end in a CR of its own.
    if (++number_ == 1) cr_lf_ = line.ends_with('\r');
    if (cr_lf_ && line.ends_with('\r')) line.remove_suffix(1);
    // A pattern on the first line may end in a space.
    while (number_ > 1 && line.ends_with(' ')) line.remove_suffix(1);
    return true;
  }

  size_t number() const { return number_; }

 private:
  Lines lines_;
  size_t number_ = 0;
  bool cr_lf_ = false;
};

CodesHeader read_header(CodesLines& lines, const std::string& name) {
  std::string_view line;
  if (!lines.next(line)) throw InputError(name + ": the codes file is empty; write one with learn-bpe");
  try {
    return parse_header(line);
  } catch (const InputError& error) {
    throw InputError(name + ": line 1: " + error.what());
  }
}

// A symbol as the file writes it, into memory; false if it is not in the file's notation.
bool read_symbol(std::string_view field, bool notation, std::string& symbol) {
  symbol.clear();
  if (notation) return append_from_notation(symbol, field);
  symbol = field;
  return true;
}

}  // namespace

Codes parse_codes(std::string_view text, const std::string& name, int64_t limit) {
  CodesLines lines(text);
  std::string_view line;
  const auto fail = [&](const std::string& what) {
    return InputError(name + ": line " + std::to_string(lines.number()) + ": " + what);
  };
  Codes codes{read_header(lines, name), {}};
  std::vector<Merge>& merges = codes.merges;
  const Alphabet alphabet = codes.header.alphabet();
  const bool notation = !alphabet.end_of_word;
  Interner tokens;
  std::vector<size_t> marked_by;  // by token: the line of its first merge
  std::string token;
  while (lines.next(line)) {
    if (limit >= 0 && merges.size() >= static_cast<size_t>(limit)) break;
    const bool raw = alphabet.bytes && !notation;
    if (const size_t bad = first_invalid_byte(line); !raw && bad != line.size())
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
      throw fail("the third field must be 'scaffold', not '" + shown_token(fields[2], raw) + "'");
    Merge merge{"", "", count == 3};
    for (const auto& [field, symbol] : {std::pair(fields[0], &merge.left), std::pair(fields[1], &merge.right)})
      if (!read_symbol(field, notation, *symbol))
        throw fail("'" + std::string(field) +
                   "' is not in GPT-2's notation of bytes, which codes with a pre-tokeniser are written in");
    token.assign(merge.left).append(merge.right);
    if (merge.scaffold && is_base_symbol(token, alphabet)) throw fail("a base symbol cannot be scaffold");
    const auto number = static_cast<size_t>(tokens.intern(token));
    if (number == marked_by.size()) {
      marked_by.push_back(lines.number());
    } else if (merges[marked_by[number] - kFirstMergeLine].scaffold != merge.scaffold) {
      throw fail("'" + shown_token(token, alphabet.bytes) + "' is " + (merge.scaffold ? "" : "not ") +
                 "scaffold here but " + (merge.scaffold ? "not " : "") + "on line " +
                 std::to_string(marked_by[number]));
    }
    merges.push_back(std::move(merge));
  }
  return codes;
}

CodesHeader parse_codes_header(std::string_view text, const std::string& name) {
  CodesLines lines(text);
  return read_header(lines, name);
}

std::string format_codes(const Codes& codes) {
  const bool notation = !codes.header.alphabet().end_of_word;
  std::string text = format_header(codes.header);
  text += '\n';
  const auto append = [&](std::string_view symbol) {
    if (notation) {
      append_notation(text, symbol);
    } else {
      text += symbol;
    }
  };
  for (const Merge& merge : codes.merges) {
    append(merge.left);
    text += ' ';
    append(merge.right);
    if (merge.scaffold) text.append(1, ' ').append(kScaffoldMark);
    text += '\n';
  }
  return text;
}

std::string shown_token(std::string_view token, bool bytes) { return bytes ? notation_of(token) : std::string(token); }

}  // namespace mt_scaffold
