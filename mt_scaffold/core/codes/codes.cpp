#include "codes/codes.hpp"

#include <algorithm>
#include <utility>

#include "errors.hpp"
#include "memory/interner.hpp"
#include "text/lines.hpp"
#include "text/notation.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

namespace {

constexpr std::string_view kScaffoldMark = "scaffold";
constexpr std::string_view kSplit = "split";
constexpr size_t kFirstMergeLine = 2;

// Lines without the CR of a CR LF file and, except for the first, without trailing spaces.
class CodesLines {
 public:
  explicit CodesLines(std::string_view text) : lines_(text) {}

  bool next(std::string_view& line) {
    if (!lines_.next(line)) return false;
    // The first line decides: in an LF file a merge may itself end in a CR.
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

// The merged tokens in the vocabulary after each line of PickyBPE codes.
class CurrentVocabulary {
 public:
  explicit CurrentVocabulary(Alphabet alphabet) : alphabet_(alphabet) {}

  // Both return what is wrong with the line, or an empty string.
  std::string add(const Merge& merge, const std::string& token) {
    // Such tokens would be ambiguous in splits.
    if (is_marked(merge.left, alphabet_) ||
        (is_marked(token, alphabet_) && (!is_marked(merge.right, alphabet_) || merge.right == kEndOfWord)))
      return "a merge that ends a word in its middle, or spells out '" + std::string(kEndOfWord) +
             "', which PickyBPE never learns";
    has(token) = true;
    return "";
  }

  std::string remove(const Split& split) {
    if (is_base_symbol(split.token, alphabet_)) return "a base symbol cannot be split";
    if (!contains(split.token))
      return "'" + shown_token(split.token, alphabet_.bytes) + "' is split, but is not in the vocabulary here";
    has(split.token) = false;
    std::string joined;
    for (size_t i = 0; i < split.pieces.size(); ++i) {
      const std::string& piece = split.pieces[i];
      const bool final = i + 1 == split.pieces.size() && is_marked(split.token, alphabet_);
      if (!contains(piece) || is_marked(piece, alphabet_) != final)
        return "'" + shown_token(piece, alphabet_.bytes) +
               "' is neither a base symbol nor a token that can appear here";
      joined += piece;
    }
    if (joined != split.token) return "the pieces do not make '" + shown_token(split.token, alphabet_.bytes) + "'";
    return "";
  }

  bool contains(const std::string& token) { return is_base_symbol(token, alphabet_) || has(token); }

 private:
  std::vector<bool>::reference has(const std::string& token) {
    const auto number = static_cast<size_t>(tokens_.intern(token));
    if (number == has_.size()) has_.push_back(false);
    return has_[number];
  }

  const Alphabet alphabet_;
  Interner tokens_;
  std::vector<bool> has_;
};

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
  const bool notation = !alphabet.end_of_word, picky = codes.header.picky;
  Interner tokens;
  CurrentVocabulary vocabulary(alphabet);
  std::vector<size_t> first_line;  // by token: the line of its first merge
  std::string token;
  std::vector<std::string_view> fields;
  const auto read = [&](std::string_view field, std::string& symbol) {
    if (!notation) {
      symbol = field;
    } else if (!append_from_notation(symbol, field)) {
      throw fail("'" + std::string(field) +
                 "' is not in GPT-2's notation of bytes, which codes with a pre-tokeniser use");
    }
  };
  while (lines.next(line)) {
    fields.clear();
    for (size_t start = 0; start <= line.size();) {
      size_t end = line.find(' ', start);
      if (end == std::string_view::npos) end = line.size();
      fields.push_back(line.substr(start, end - start));
      start = end + 1;
    }
    const bool splits = picky && fields.size() > 3 && fields[0] == kSplit;
    if (limit >= 0 && merges.size() >= static_cast<size_t>(limit) && !splits) break;
    const bool raw = alphabet.bytes && !notation;
    if (const size_t bad = first_invalid_byte(line); !raw && bad != line.size())
      throw fail("byte " + std::to_string(bad + 1) + " of the line is not UTF-8");
    const bool empty = std::find(fields.begin(), fields.end(), std::string_view()) != fields.end();
    if (picky && (empty || (fields.size() != 2 && !splits)))
      throw fail("expected 'LEFT RIGHT' or 'split TOKEN PIECE PIECE ...'");
    if (splits) {
      Split split{merges.size(), "", {}};
      read(fields[1], split.token);
      for (size_t i = 2; i < fields.size(); ++i) read(fields[i], split.pieces.emplace_back());
      if (const std::string problem = vocabulary.remove(split); !problem.empty()) throw fail(problem);
      codes.splits.push_back(std::move(split));
      continue;
    }
    if (fields.size() < 2 || fields.size() > 3 || empty) throw fail("expected 'LEFT RIGHT' or 'LEFT RIGHT scaffold'");
    if (fields.size() == 3 && fields[2] != kScaffoldMark)
      throw fail("the third field must be 'scaffold', not '" + shown_token(fields[2], raw) + "'");
    Merge merge{"", "", fields.size() == 3};
    read(fields[0], merge.left);
    read(fields[1], merge.right);
    token.assign(merge.left).append(merge.right);
    if (merge.scaffold && is_base_symbol(token, alphabet)) throw fail("a base symbol cannot be scaffold");
    if (picky) {
      if (const std::string problem = vocabulary.add(merge, token); !problem.empty()) throw fail(problem);
      merges.push_back(std::move(merge));
      continue;
    }
    const auto number = static_cast<size_t>(tokens.intern(token));
    if (number == first_line.size()) {
      first_line.push_back(lines.number());
    } else if (merges[first_line[number] - kFirstMergeLine].scaffold != merge.scaffold) {
      throw fail("'" + shown_token(token, alphabet.bytes) + "' is " + (merge.scaffold ? "" : "not ") +
                 "scaffold here but " + (merge.scaffold ? "not " : "") + "on line " +
                 std::to_string(first_line[number]));
    }
    merges.push_back(std::move(merge));
  }
  if (picky)
    for (Merge& merge : merges) merge.scaffold = !vocabulary.contains(merge.left + merge.right);
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
  auto split = codes.splits.begin();
  for (size_t i = 0; i < codes.merges.size(); ++i) {
    const Merge& merge = codes.merges[i];
    append(merge.left);
    text += ' ';
    append(merge.right);
    if (merge.scaffold && !codes.header.picky) text.append(1, ' ').append(kScaffoldMark);
    text += '\n';
    for (; split != codes.splits.end() && split->after <= i + 1; ++split) {
      text += kSplit;
      text += ' ';
      append(split->token);
      for (const std::string& piece : split->pieces) {
        text += ' ';
        append(piece);
      }
      text += '\n';
    }
  }
  return text;
}

std::string shown_token(std::string_view token, bool bytes) { return bytes ? notation_of(token) : std::string(token); }

}  // namespace mt_scaffold
