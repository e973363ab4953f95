#ifndef PLUMBLINE_COMMON_COMMAND_ERRORS_H_
#define PLUMBLINE_COMMON_COMMAND_ERRORS_H_

#include <cstdint>
#include <string>

#include "CLI/CLI.hpp"

// What a program says of words that it does not take, for all programs alike: which flag, what was
// given, what is accepted, and where help is.

namespace plumbline {

// Parses as app->parse does, and throws what that throws. Besides, "--flag=" without a value and a
// flag where another one's value is due are errors: CLI11 takes the next word for the value.
void ParseCommandWords(CLI::App* app, int argc, const char* const* argv);

// What `error`, which parsing with `app` threw, says to who typed the words, e.g.
//   plumbline submit block-replay: --block: "x" is not a whole number, 0 or more
//   See plumbline submit block-replay --help
// No newline at its end.
std::string ParseErrorText(const CLI::App& app, const CLI::ParseError& error);

// What an option's value must be, for transform(); CLI11's own checks speak of conversions.
// A whole number in decimal digits, whatever zeros it begins with; the limits are those of int32_t
// unless others are given.
CLI::Validator WholeNumber(int64_t least = INT32_MIN, int64_t most = INT32_MAX);
CLI::Validator Number(double least, double most);
// Bytes as byte_size.h reads them, or 0; the option gets the number.
CLI::Validator Bytes();

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_COMMAND_ERRORS_H_
