// GPT-2's printable notation of bytes: each byte as one character, so that any token can be written as text.
#pragma once

#include <string>
#include <string_view>

namespace mt_scaffold {

// Appends the notation of `bytes`, in UTF-8. Printable ASCII stands for itself, and so do the printable bytes from 161
// up, as the code points of their values; the other 68 bytes are U+0100 and the next ones, in order.
void append_notation(std::string& text, std::string_view bytes);
std::string notation_of(std::string_view bytes);

// Appends the bytes that `notation` stands for; false, having appended nothing, if it is not a notation of bytes.
bool append_from_notation(std::string& bytes, std::string_view notation);

}  // namespace mt_scaffold
