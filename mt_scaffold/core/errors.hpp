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

// Malformed input; the message gives the place and the remedy.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message) : std::runtime_error(without_nul(message)) {}

 private:
  // what() would end there. Python escapes other characters.
  static std::string without_nul(const std::string& message) {
    std::string shown;
    for (const char c : message) c == '\0' ? shown += "\\x00" : shown += c;
    return shown;
  }
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
