#include "common/evidence/canonical_json.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace plumbline {
namespace {

using nlohmann::json;

// Exponents outside [-4, 16) are written as such.
constexpr int kLeastPlainExponent = -4;
constexpr int kEndOfPlainExponents = 16;

// Whatever needs no layout. The library throws at invalid UTF-8 unless told what to do with it.
std::string Plain(const json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

class Writer {
 public:
  explicit Writer(int broken_levels) : broken_levels_(broken_levels) {}

  void Write(const json& value, int level) {
    if (value.is_object()) {
      WriteMembers(value, level, '{', '}', [&](const auto& member) {
        absl::StrAppend(&text_, Plain(member.key()), broken_levels_ > 0 ? ": " : ":");
      });
    } else if (value.is_array()) {
      WriteMembers(value, level, '[', ']', [](const auto&) {});
    } else if (value.is_number_float()) {
      text_ += CanonicalDouble(value.get<double>());
    } else {
      text_ += Plain(value);
    }
  }

  std::string Take() { return std::move(text_); }

 private:
  template <typename WriteKey>
  void WriteMembers(const json& value, int level, char open, char close, WriteKey write_key) {
    const bool broken = level < broken_levels_ && !value.empty();
    const absl::string_view separator = broken_levels_ > 0 && !broken ? ", " : ",";
    text_ += open;
    bool first = true;
    for (const auto& member : value.items()) {
      if (!first) absl::StrAppend(&text_, separator);
      first = false;
      if (broken) NewLine(level + 1);
      write_key(member);
      Write(member.value(), level + 1);
    }
    if (broken) NewLine(level);
    text_ += close;
  }

  void NewLine(int level) {
    text_ += '\n';
    text_.append(2 * level, ' ');
  }

  const int broken_levels_;
  std::string text_;
};

}  // namespace

std::string CanonicalDouble(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char buffer[32];
  const std::to_chars_result written =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  absl::string_view text(buffer, written.ptr - buffer);  // "-1.25e-05"
  std::string result;
  if (text.front() == '-') {
    result = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + 1 + (text[e + 1] == '+' ? 1 : 0), text.data() + text.size(),
                  exponent);
  if (exponent < kLeastPlainExponent || exponent >= kEndOfPlainExponents) {
    return absl::StrCat(result, text);
  }
  std::string digits(text.substr(0, 1));
  if (e > 2) absl::StrAppend(&digits, text.substr(2, e - 2));
  if (exponent < 0) return absl::StrCat(result, "0.", std::string(-exponent - 1, '0'), digits);
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const std::string fraction = digits.size() > whole ? digits.substr(whole) : "0";
  return absl::StrCat(result, digits.substr(0, whole), ".", fraction);
}

std::string CanonicalJson(const json& value) {
  Writer writer(/*broken_levels=*/0);
  writer.Write(value, 0);
  return writer.Take();
}

std::string ReadableJson(const json& value, int levels) {
  Writer writer(levels);
  writer.Write(value, 0);
  return writer.Take() + "\n";
}

}  // namespace plumbline
