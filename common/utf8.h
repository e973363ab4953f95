#ifndef PLUMBLINE_COMMON_UTF8_H_
#define PLUMBLINE_COMMON_UTF8_H_

#include <string>

// Strings of the API are UTF-8: a message with another one cannot be decoded by whoever gets it.

namespace plumbline {

// `text` with U+FFFD in the place of bytes that are no UTF-8.
std::string ToUtf8(std::string text);
bool IsUtf8(const std::string& text);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_UTF8_H_
