#include "client/style.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace plumbline::client {
namespace {

absl::string_view AnsiCode(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return "";
    case Ink::kGood:
      return "32";
    case Ink::kBad:
      return "1;31";
    case Ink::kNotice:
      return "33";
    case Ink::kFaint:
      return "2";
    case Ink::kStrong:
      return "1";
  }
  return "";
}

}  // namespace

std::string Style::Paint(Ink ink, absl::string_view text) const {
  if (!color || ink == Ink::kPlain || text.empty()) return std::string(text);
  return absl::StrCat("\033[", AnsiCode(ink), "m", text, "\033[0m");
}

std::string Style::Rule(int width) const {
  if (!unicode) return std::string(static_cast<size_t>(width), '-');
  std::string rule;
  for (int i = 0; i < width; ++i) absl::StrAppend(&rule, "\u2500");
  return rule;
}

std::string Wrap(absl::string_view text, int first_column, int indent, int columns) {
  std::string out;
  int column = first_column;
  bool at_start = true;
  // Several spaces in a row separate too: they stay where a line goes on.
  while (!text.empty()) {
    const size_t spaces = std::min(text.find_first_not_of(' '), text.size());
    const size_t end = std::min(text.find(' ', spaces), text.size());
    const absl::string_view word = text.substr(spaces, end - spaces);
    const int width = static_cast<int>(spaces) + DisplayWidth(word);
    if (!at_start && column + width > columns) {
      absl::StrAppend(&out, "\n", std::string(static_cast<size_t>(indent), ' '), word);
      column = indent + DisplayWidth(word);
    } else {
      absl::StrAppend(&out, text.substr(0, end));
      column += width;
    }
    at_start = false;
    text.remove_prefix(end);
  }
  return out;
}

std::string Printable(absl::string_view text) {
  std::string printable;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      printable.push_back(c);
    } else {
      absl::StrAppend(&printable, "\\x", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return printable;
}

int DisplayWidth(absl::string_view text) {
  // Every byte but the continuation bytes of UTF-8 begins a character.
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

}  // namespace plumbline::client
