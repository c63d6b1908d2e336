#include "text/notation.hpp"

#include <array>
#include <cstdint>

#include "text/text.hpp"

namespace mt_scaffold {

namespace {

constexpr uint32_t kFirstSubstitute = 0x100;
constexpr uint32_t kSubstitutes = 68;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

struct Notation {
  char text[2] = {};
  size_t length = 0;
};

constexpr std::array<Notation, 256> make_notations() {
  std::array<Notation, 256> notations;
  uint32_t substitute = kFirstSubstitute;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t c = stands_for_itself(byte) ? byte : substitute++;
    if (c < 0x80) {
      notations[byte] = {{static_cast<char>(c)}, 1};
    } else {
      notations[byte] = {{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))}, 2};
    }
  }
  return notations;
}

constexpr std::array<unsigned char, kSubstitutes> make_substituted() {
  std::array<unsigned char, kSubstitutes> bytes{};
  size_t next = 0;
  for (uint32_t byte = 0; byte < 256; ++byte)
    if (!stands_for_itself(byte)) bytes[next++] = static_cast<unsigned char>(byte);
  return bytes;
}

constexpr std::array<Notation, 256> kNotations = make_notations();
constexpr std::array<unsigned char, kSubstitutes> kSubstituted = make_substituted();

}  // namespace

void append_notation(std::string& text, std::string_view bytes) {
  for (const char byte : bytes) {
    const Notation& notation = kNotations[static_cast<unsigned char>(byte)];
    text.append(notation.text, notation.length);
  }
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
    if (c >= kFirstSubstitute && c < kFirstSubstitute + kSubstitutes) {
      bytes += static_cast<char>(kSubstituted[c - kFirstSubstitute]);
    } else if (c < 256 && stands_for_itself(c)) {
      bytes += static_cast<char>(c);
    } else {
      known = false;
    }
  });
  if (!known) bytes.resize(before);
  return known;
}

}  // namespace mt_scaffold
