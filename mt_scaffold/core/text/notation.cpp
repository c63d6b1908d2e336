#include "text/notation.hpp"

#include <array>
#include <cstdint>

#include "text/text.hpp"

namespace mt_scaffold {

namespace {

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

// The code point of each byte.
constexpr auto kNotations = [] {
  std::array<uint16_t, 256> notations{};
  uint16_t substitute = 0x100;
  for (uint16_t byte = 0; byte < 256; ++byte) notations[byte] = stands_for_itself(byte) ? byte : substitute++;
  return notations;
}();

// The byte of each code point, or -1.
constexpr auto kBytes = [] {
  std::array<int16_t, 0x100 + 68> bytes{};
  bytes.fill(-1);
  for (int16_t byte = 0; byte < 256; ++byte) bytes[kNotations[static_cast<size_t>(byte)]] = byte;
  return bytes;
}();

}  // namespace

void append_notation(std::string& text, std::string_view bytes) {
  for (const char byte : bytes) append_code_point(text, kNotations[static_cast<unsigned char>(byte)]);
}

std::string notation_of(std::string_view bytes) {
  std::string text;
  append_notation(text, bytes);
  return text;
}

bool append_from_notation(std::string& bytes, std::string_view notation) {
  const size_t before = bytes.size();
  if (first_invalid_byte(notation) != notation.size()) return false;
  bool known = true;
  for_each_code_point(notation, [&](uint32_t c, bool) {
    if (c < kBytes.size() && kBytes[c] >= 0) {
      bytes += static_cast<char>(kBytes[c]);
    } else {
      known = false;
    }
  });
  if (!known) bytes.resize(before);
  return known;
}

}  // namespace mt_scaffold
