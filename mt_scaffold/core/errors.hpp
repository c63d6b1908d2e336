// The core's exceptions, which the bindings translate for Python.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

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
  explicit InputError(std::string message) : std::runtime_error(without_nul(std::move(message))) {}

 private:
  // what() would end there. Python escapes other characters.
  static std::string without_nul(std::string message) {
    for (size_t at; (at = message.find('\0')) != std::string::npos;) message.replace(at, 1, "\\x00");
    return message;
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
