#include "common/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline {
namespace {

using nlohmann::json;

// Builds the value from the parser's events. The library's own builder would keep the last of two
// equal keys without a word and know no limits; here every event may refuse. An exception thrown
// by the library ends in parse_error().
class LimitedBuilder final : public nlohmann::json_sax<json> {
 public:
  explicit LimitedBuilder(const JsonLimits& limits) : limits_(limits) {}

  json TakeValue() { return std::move(root_); }
  const std::string& error() const { return error_; }
  // Byte at which the text is malformed, counted from 1; 0 where a limit or a key was refused.
  size_t error_position() const { return error_position_; }

  bool null() override { return Add(nullptr) != nullptr; }
  bool boolean(bool value) override { return Add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return Add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return Add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return Add(value) != nullptr;
  }
  bool string(string_t& value) override { return Add(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return Refuse("binary values are not JSON"); }
  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    const auto [position, inserted] = open_.back()->emplace(name, nullptr);
    if (!inserted) return Refuse(absl::StrCat("key ", Quoted(name), " appears twice"));
    member_ = &*position;
    return true;
  }

  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception& exception) override {
    error_position_ = std::max<size_t>(position, 1);
    // 406: a number too large for a double. All others are syntax or encoding.
    return Refuse(absl::StrCat(exception.id == 406 ? "number out of range" : "not valid JSON",
                               " at ", Quoted(token)));
  }

 private:
  // Puts a value where the text has it; null if it is one too many.
  json* Add(json value) {
    if (++values_ > limits_.max_values) {
      Refuse(absl::StrCat("more than ", limits_.max_values, " values"));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *member_ = std::move(value);
    return member_;
  }

  bool Open(json container) {
    if (static_cast<int>(open_.size()) >= limits_.max_depth) {
      return Refuse(absl::StrCat("nested deeper than ", limits_.max_depth, " levels"));
    }
    json* const added = Add(std::move(container));
    if (added == nullptr) return false;
    // A parent's array cannot grow, and so move this element, before this element is closed.
    open_.push_back(added);
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  bool Refuse(std::string error) {
    error_ = std::move(error);
    return false;
  }

  const JsonLimits limits_;
  json root_;
  std::vector<json*> open_;  // The containers around the current place, outermost first.
  json* member_ = nullptr;   // Value of the key last seen.
  size_t values_ = 0;
  std::string error_;
  size_t error_position_ = 0;
};

std::string LineAndColumn(absl::string_view text, size_t position) {
  const absl::string_view before = text.substr(0, position - 1);
  const size_t line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n');
  const size_t column =
      line_start == absl::string_view::npos ? position : before.size() - line_start;
  return absl::StrCat("line ", line, ", column ", column);
}

absl::Status Error(absl::string_view where, absl::string_view field, absl::string_view description,
                   absl::string_view accepted) {
  return FieldError(absl::StrCat(where, ": ", field), description, accepted);
}

std::string Describe(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return "is an object";
    case json::value_t::array:
      return "is an array";
    case json::value_t::string:
      return absl::StrCat("is ", Quoted(value.get_ref<const std::string&>()));
    default:
      return absl::StrCat("is ", value.dump());
  }
}

// The member, or null where `object` has none.
const json* Find(const json& object, absl::string_view field) {
  if (!object.is_object()) return nullptr;
  const auto position = object.find(std::string(field));
  return position == object.end() ? nullptr : &*position;
}

std::string IntRange(int64_t min, int64_t max) {
  if (max == std::numeric_limits<int64_t>::max()) {
    return min == std::numeric_limits<int64_t>::min()
               ? "an integer of 64 bits"
               : absl::StrCat("an integer of at least ", min);
  }
  return absl::StrCat("an integer from ", min, " to ", max);
}

bool ToInt(const json& value, int64_t min, int64_t max, int64_t* result) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return false;
  }
  *result = value.get<int64_t>();
  return min <= *result && *result <= max;
}

}  // namespace

absl::StatusOr<json> ParseJson(absl::string_view text, absl::string_view where,
                               const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": ", text.size(), " bytes; accepted: at most ", limits.max_bytes, " bytes"));
  }
  // The library takes a NUL for the end of the text and would not look at what follows.
  if (const size_t nul = text.find('\0'); nul != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": NUL byte at ", LineAndColumn(text, nul + 1)));
  }
  LimitedBuilder builder(limits);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": ", builder.error(),
                     builder.error_position() == 0
                         ? ""
                         : absl::StrCat(", ", LineAndColumn(text, builder.error_position()))));
  }
  return builder.TakeValue();
}

absl::StatusOr<int64_t> GetInt(const json& object, absl::string_view where, absl::string_view field,
                               int64_t min, int64_t max) {
  const json* value = Find(object, field);
  if (value == nullptr) return Error(where, field, "is missing", IntRange(min, max));
  int64_t result = 0;
  if (!ToInt(*value, min, max, &result)) {
    return Error(where, field, Describe(*value), IntRange(min, max));
  }
  return result;
}

absl::StatusOr<double> GetDouble(const json& object, absl::string_view where,
                                 absl::string_view field, double min, double max) {
  const std::string accepted =
      min == std::numeric_limits<double>::lowest() && max == std::numeric_limits<double>::max()
          ? "a finite number"
          : absl::StrCat("a number from ", min, " to ", max);
  const json* value = Find(object, field);
  if (value == nullptr) return Error(where, field, "is missing", accepted);
  if (!value->is_number()) return Error(where, field, Describe(*value), accepted);
  const double result = value->get<double>();
  if (!(min <= result && result <= max)) return Error(where, field, Describe(*value), accepted);
  return result;
}

absl::StatusOr<bool> GetBool(const json& object, absl::string_view where, absl::string_view field) {
  const json* value = Find(object, field);
  if (value == nullptr) return Error(where, field, "is missing", "true, false");
  if (!value->is_boolean()) return Error(where, field, Describe(*value), "true, false");
  return value->get<bool>();
}

absl::StatusOr<std::string> GetString(const json& object, absl::string_view where,
                                      absl::string_view field) {
  const json* value = Find(object, field);
  if (value == nullptr) return Error(where, field, "is missing", "a string");
  if (!value->is_string()) return Error(where, field, Describe(*value), "a string");
  return value->get<std::string>();
}

absl::StatusOr<std::vector<int64_t>> GetIntArray(const json& object, absl::string_view where,
                                                 absl::string_view field, size_t min_size,
                                                 size_t max_size, int64_t min, int64_t max) {
  const std::string size =
      min_size == max_size ? absl::StrCat(min_size) : absl::StrCat(min_size, " to ", max_size);
  const std::string accepted =
      absl::StrCat("an array of ", size, " values, each ", IntRange(min, max));
  const json* value = Find(object, field);
  if (value == nullptr) return Error(where, field, "is missing", accepted);
  if (!value->is_array()) return Error(where, field, Describe(*value), accepted);
  if (value->size() < min_size || value->size() > max_size) {
    return Error(where, field, absl::StrCat("has ", value->size(), " values"), accepted);
  }
  std::vector<int64_t> result(value->size());
  for (size_t i = 0; i < result.size(); ++i) {
    if (!ToInt((*value)[i], min, max, &result[i])) {
      return Error(where, absl::StrCat(field, "[", i, "]"), Describe((*value)[i]),
                   IntRange(min, max));
    }
  }
  return result;
}

}  // namespace plumbline
