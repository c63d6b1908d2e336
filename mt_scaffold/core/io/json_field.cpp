#include "io/json_field.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

#include "text/text.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace mt_scaffold {

namespace {

constexpr size_t kLongestNumber = 300;  // Python refuses integers of thousands of digits
constexpr size_t kDeepest = 64;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number of plain characters at `p`, up to 16: those before a quote, a backslash or a control character, which no
// string may contain.
inline size_t plain_bytes(const char* p) {
#if defined(__SSE2__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), control = _mm_set1_epi8(0x1F);
  const __m128i special =
      _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))),
                   _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
  return static_cast<size_t>(std::countr_zero(static_cast<unsigned>(_mm_movemask_epi8(special)) | 1u << 16));
#else
  size_t i = 0;
  while (i < 16 && p[i] != '"' && p[i] != '\\' && static_cast<unsigned char>(p[i]) > 0x1F) ++i;
  return i;
#endif
}

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = p + text.size();
  uint32_t ignored;
  while (p < end) {
#if defined(__SSE2__)
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto wide = static_cast<unsigned>(_mm_movemask_epi8(bytes));
    p += std::countr_zero(wide | 1u << 16);
    if (wide == 0) continue;
    if (p >= end) break;
#endif
    const size_t length = decode_code_point(p, static_cast<size_t>(end - p), ignored);
    if (length == 0) return false;
    p += length;
  }
  return true;
}

// Reads one line. Its methods other than tests return false if Python must decide.
class Reader {
 public:
  explicit Reader(std::string_view line) : p_(line.data()), end_(line.data() + line.size()) {}

  void skip_space() {
    while (p_ < end_ && is_space(*p_)) ++p_;
  }
  bool at_end() const { return p_ >= end_; }
  bool next_is(char c) const { return p_ < end_ && *p_ == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++p_;
    return true;
  }
  bool skip_value();
  bool skip_string();
  // A string without escapes.
  bool take_key(std::string_view& key);
  // The opening quote has been seen.
  bool take_string(OutputBuffer& text);

 private:
  bool take_scalar();
  bool take_digits();
  bool take_hex(uint32_t& value);
  // Reads an escape after its backslash; writes its UTF-8 to `to`, which it advances.
  bool take_escape(char*& to);

  const char* p_;
  const char* const end_;
};

bool Reader::take_key(std::string_view& key) {
  if (!take('"')) return false;
  const char* const begin = p_;
  size_t plain;
  do p_ += plain = plain_bytes(p_);
  while (plain == 16);
  key = {begin, static_cast<size_t>(p_ - begin)};
  return take('"');
}

bool Reader::skip_string() {
  if (!take('"')) return false;
  while (true) {
    const size_t plain = plain_bytes(p_);
    p_ += plain;
    if (plain == 16) continue;
    if (take('"')) return true;
    char ignored[4], *to = ignored;
    if (!take('\\') || !take_escape(to)) return false;
  }
}

bool Reader::take_string(OutputBuffer& text) {
  if (!take('"')) return false;
  text.clear();
  // An escape is longer than what it stands for.
  char* const begin = text.reserve(static_cast<size_t>(end_ - p_));
  char* to = begin;
  while (true) {
    const size_t plain = plain_bytes(p_);
    std::memcpy(to, p_, 16);
    p_ += plain;
    to += plain;
    if (plain == 16) continue;
    if (take('"')) break;
    if (!take('\\') || !take_escape(to)) return false;
  }
  text.advance(static_cast<size_t>(to - begin));
  return true;
}

bool Reader::take_hex(uint32_t& value) {
  if (end_ - p_ < 4) return false;
  value = 0;
  for (const char* const stop = p_ + 4; p_ < stop; ++p_) {
    const char small = static_cast<char>(*p_ | 0x20);
    if (!is_digit(*p_) && !(small >= 'a' && small <= 'f')) return false;
    value = value << 4 | static_cast<uint32_t>(is_digit(*p_) ? *p_ - '0' : small - 'a' + 10);
  }
  return true;
}

bool Reader::take_escape(char*& to) {
  if (p_ >= end_) return false;
  const char c = *p_++;
  if (c != 'u') {
    constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    const size_t found = kNames.find(c);
    if (found == std::string_view::npos) return false;
    *to++ = kValues[found];
    return true;
  }
  uint32_t value;
  if (!take_hex(value)) return false;
  if (value >= 0xD800 && value < 0xE000) {
    uint32_t low;
    if (value >= 0xDC00 || !take('\\') || !take('u') || !take_hex(low) || low < 0xDC00 || low >= 0xE000) return false;
    value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
  }
  to = write_code_point(value, to);
  return true;
}

bool Reader::take_digits() {
  const char* const begin = p_;
  while (p_ < end_ && is_digit(*p_)) ++p_;
  return p_ > begin && static_cast<size_t>(p_ - begin) <= kLongestNumber;
}

// A number, true, false or null.
bool Reader::take_scalar() {
  const std::string_view rest(p_, static_cast<size_t>(end_ - p_));
  for (const std::string_view name : {"true", "false", "null"}) {
    if (!rest.starts_with(name)) continue;
    p_ += name.size();
    return true;
  }
  take('-');
  if (!take('0') && !take_digits()) return false;
  if (take('.') && !take_digits()) return false;
  if (!take('e') && !take('E')) return true;
  if (!take('+')) take('-');
  return take_digits();
}

bool Reader::skip_value() {
  uint64_t objects = 0;  // a bit per level of nesting, the innermost the lowest: whether it is an object
  size_t depth = 0;
  while (true) {
    // A value, or the end of an empty array or object.
    if (next_is('[') || next_is('{')) {
      if (++depth > kDeepest) return false;
      const bool object = take('{');
      objects = objects << 1 | object;
      if (!object) ++p_;
      skip_space();
      if (!next_is(object ? '}' : ']')) {
        if (!object) continue;
        if (!skip_string()) return false;
        skip_space();
        if (!take(':')) return false;
        skip_space();
        continue;
      }
    } else if (!(next_is('"') ? skip_string() : take_scalar())) {
      return false;
    }
    // What follows a value.
    while (true) {
      if (depth == 0) return true;
      skip_space();
      if (take(',')) break;
      if (!take(objects & 1 ? '}' : ']')) return false;
      objects >>= 1;
      --depth;
    }
    skip_space();
    if (objects & 1) {
      if (!skip_string()) return false;
      skip_space();
      if (!take(':')) return false;
      skip_space();
    }
  }
}

}  // namespace

JsonField::Found JsonField::find(std::string_view line, OutputBuffer& text) const {
  Reader reader(line);
  reader.skip_space();
  if (reader.at_end()) return Found::kBlank;
  if (!reader.take('{')) return Found::kUnsure;
  bool found = false;
  do {
    reader.skip_space();
    std::string_view key;
    if (!reader.take_key(key)) return Found::kUnsure;
    reader.skip_space();
    if (!reader.take(':')) return Found::kUnsure;
    reader.skip_space();
    const bool wanted = key == name_;
    // Of several fields of this name, the last one counts.
    if (wanted) found = reader.next_is('"');
    if (!(wanted && found ? reader.take_string(text) : reader.skip_value())) return Found::kUnsure;
    reader.skip_space();
  } while (reader.take(','));
  if (!found || !reader.take('}')) return Found::kUnsure;
  reader.skip_space();
  return reader.at_end() && is_utf8(line) ? Found::kText : Found::kUnsure;
}

}  // namespace mt_scaffold
