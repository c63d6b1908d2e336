// The core's exceptions, which the bindings translate for Python.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace mt_scaffold {

// "0xFF", to name a byte in a message.
inline std::string hex_byte(char byte) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  return {'0', 'x', kDigits[value >> 4], kDigits[value & 15]};
}

// Escapes control characters and line separators (beyond ASCII: U+0080 to U+009F, U+2028 and U+2029) in a message: the
// CR of a Windows line would hide what precedes it.
inline std::string printable(const std::string& message) {
  std::string text;
  for (size_t i = 0; i < message.size(); ++i) {
    const char byte = message[i];
    const auto value = static_cast<unsigned char>(byte);
    const auto next = [&](size_t k) { return i + k < message.size() ? static_cast<unsigned char>(message[i + k]) : 0; };
    if (value == 0xC2 && next(1) >= 0x80 && next(1) <= 0x9F) {
      text += "\\x" + hex_byte(message[++i]).substr(2);
    } else if (value == 0xE2 && next(1) == 0x80 && (next(2) == 0xA8 || next(2) == 0xA9)) {
      text += next(2) == 0xA8 ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (value >= 0x20 && value != 0x7F) {
      text += byte;
    } else {
      text += byte == '\r' ? "\\r" : byte == '\t' ? "\\t" : byte == '\n' ? "\\n" : "\\x" + hex_byte(byte).substr(2);
    }
  }
  return text;
}

// Malformed input; the message gives the place and the remedy.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message) : std::runtime_error(printable(message)) {}
};

// Incompatible or unknown options.
class UsageError : public InputError {
 public:
  using InputError::InputError;
};

// A failed system call: its errno and the file's name.
class SystemError : public std::runtime_error {
 public:
  SystemError(int code, const std::string& name) : std::runtime_error(name), code(code) {}
  const int code;
};

// Unwinds a thread because another one failed or the user interrupted the run.
class Stopped : public std::exception {};

}  // namespace mt_scaffold
