#include "codes/codes_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "errors.hpp"
#include "text/notation.hpp"

namespace mt_scaffold {

namespace {

constexpr std::string_view kVersion = "#version:";
constexpr std::string_view kCodePointLine = "#version: 0.2";
constexpr std::string_view kByteLine = "#version: 0.2 byte";
constexpr std::string_view kPretokenisedLine = "#version: 0.3 bytes";
constexpr std::string_view kPickyLine = "#version: 0.4 picky";
constexpr std::string_view kByte = "byte", kBytes = "bytes";
constexpr std::string_view kSplitDigits = "split-digits";
constexpr std::string_view kPattern = "pattern=";
constexpr std::array<std::string_view, 5> kPretokenisers = {"gpt2", "cl100k", "o200k", "metaspace", "metaspace-runs"};

bool is_published(std::string_view pretokeniser) {
  return std::find(kPretokenisers.begin(), kPretokenisers.end(), pretokeniser) != kPretokenisers.end();
}

// Text of a file for a message, in GPT-2's notation of bytes if it is not UTF-8.
std::string shown(std::string_view text) {
  return first_invalid_byte(text) == text.size() ? std::string(text) : notation_of(text);
}

// Takes a word and the space after it off the front of `rest`.
std::string_view take_word(std::string_view& rest) {
  const size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

// Takes `start` and a space after it off the front of `line`; false if it starts otherwise.
bool take(std::string_view& line, std::string_view start) {
  if (!line.starts_with(start) || (line.size() > start.size() && line[start.size()] != ' ')) return false;
  line.remove_prefix(std::min(start.size() + 1, line.size()));
  return true;
}

// Whether the line names a version after 0.3, other than 0.4 picky.
bool is_newer(std::string_view line) {
  std::string_view rest = line.substr(kVersion.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::string_view version = take_word(rest);
  unsigned major = 0, minor = 0;
  const char* const end = version.data() + version.size();
  const auto [point, bad_major] = std::from_chars(version.data(), end, major);
  if (bad_major != std::errc() || point == end || *point != '.') return false;
  const auto [after, bad_minor] = std::from_chars(point + 1, end, minor);
  return bad_minor == std::errc() && after == end && (major > 0 || minor > 3);
}

// Parses what follows the kind of symbols in codes with a pre-tokeniser.
void parse_words(std::string_view rest, CodesHeader& header) {
  header.bytes = true;
  header.pretokeniser.clear();
  while (!rest.empty()) {
    if (header.pretokeniser.empty() && rest.starts_with(kPattern)) {
      header.pretokeniser = rest.substr(kPattern.size());
      if (first_invalid_byte(header.pretokeniser) != header.pretokeniser.size())
        throw InputError("the pattern is not UTF-8");
      if (header.pretokeniser.empty() || header.pretokeniser == "spaces" || is_published(header.pretokeniser))
        throw InputError("expected a regular expression after 'pattern='");
      break;
    }
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    if (rest.empty()) break;
    const std::string_view word = take_word(rest);
    if (word == kSplitDigits && !header.split_digits) {
      header.split_digits = true;
    } else if (is_published(word) && header.pretokeniser.empty()) {
      header.pretokeniser = word;
    } else {
      throw InputError("'" + shown(word) + "' is not " +
                       (header.pretokeniser.empty() ? "a pre-tokeniser" : "an option") +
                       " that this mt-scaffold knows; expected '" + std::string(kPretokenisedLine) +
                       "', then gpt2, cl100k, o200k, metaspace, metaspace-runs or pattern=..., perhaps with "
                       "split-digits before a pattern or after "
                       "a name; update mt-scaffold, or learn the codes again");
    }
  }
  if (header.pretokeniser.empty())
    throw InputError(
        "a pre-tokeniser is missing; expected gpt2, cl100k, o200k, metaspace, metaspace-runs or pattern=...");
}

}  // namespace

CodesHeader parse_header(std::string_view line) {
  CodesHeader header;
  header.picky = take(line, kPickyLine);
  if (take(line, header.picky ? kBytes : kPretokenisedLine)) {
    parse_words(line, header);
    return header;
  }
  while (line.ends_with(' ')) line.remove_suffix(1);
  header.bytes = line == (header.picky ? kByte : kByteLine);
  if (header.bytes || line == (header.picky ? "" : kCodePointLine)) return header;
  if (header.picky)
    throw InputError("'" + shown(line) + "' is not a kind of PickyBPE codes that this mt-scaffold knows; expected '" +
                     std::string(kPickyLine) + "', perhaps with 'byte' or 'bytes' and a pre-tokeniser; update it");
  if (!line.starts_with(kVersion))
    throw InputError("expected '#version: 0.2'; if this is a codes file of format 0.1, learn the codes again");
  if (is_newer(line))
    throw InputError("'" + shown(line) +
                     "' is newer than this mt-scaffold, which reads versions 0.2, 0.3 and 0.4 picky; update it");
  throw InputError("unsupported version of the codes file; learn the codes again, which gives '#version: 0.2'");
}

std::string format_header(const CodesHeader& header) {
  const std::string picky(kPickyLine);
  if (header.alphabet().end_of_word) {
    if (header.picky) return header.bytes ? picky + " " + std::string(kByte) : picky;
    return std::string(header.bytes ? kByteLine : kCodePointLine);
  }
  const std::string digits = header.split_digits ? " " + std::string(kSplitDigits) : "";
  const std::string line = header.picky ? picky + " " + std::string(kBytes) : std::string(kPretokenisedLine);
  if (is_published(header.pretokeniser)) return line + " " + header.pretokeniser + digits;
  return line + digits + " " + std::string(kPattern) + header.pretokeniser;
}

}  // namespace mt_scaffold
