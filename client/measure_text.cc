#include "client/measure_text.h"

#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace plumbline::client {
namespace {

// What each number of a coordinate counts, by kind of row.
std::vector<absl::string_view> CoordinateNames(v1::RowKind kind) {
  switch (kind) {
    case v1::ROW_KIND_TEXT:
      return {""};
    case v1::ROW_KIND_KEYFRAME:
      return {"keyframe ", "y ", "x "};
    case v1::ROW_KIND_AUDIO:
      return {"channel ", "latent "};
    case v1::ROW_KIND_VIDEO:
      return {"frame ", "y ", "x "};
    default:
      return {};
  }
}

// "JOB_STATE_QUEUED" as "queued", "JOB_KIND_BLOCK_REPLAY" as "block-replay".
std::string EnumWord(absl::string_view name, absl::string_view prefix) {
  absl::ConsumePrefix(&name, prefix);
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", "-"}});
}

std::string WithCollection(absl::string_view written, absl::string_view collection) {
  return absl::StartsWith(written, collection) ? std::string(written)
                                               : absl::StrCat(collection, written);
}

}  // namespace

std::string MeasureText(double value) {
  if (value == 0) return "0";
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return absl::StrFormat("%.2e", value);
}

std::string RatioText(double value) {
  if (!std::isfinite(value)) return "-";
  if (std::fabs(value) < 99.995) return absl::StrFormat("%.2f", value);
  if (std::fabs(value) < 9999.5) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.0e", value);
}

std::string CountText(int64_t value) {
  std::string digits = absl::StrCat(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string BytesText(int64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string MillisecondsText(double milliseconds) {
  if (milliseconds >= 1000) return absl::StrFormat("%.2f s", milliseconds / 1000);
  return absl::StrFormat("%.2f ms", milliseconds);
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0 && time.nanos() == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

std::string RowText(const v1::RowLocation& row) {
  std::string text = absl::StrCat("row ", row.row());
  if (row.batch() > 0) absl::StrAppend(&text, " of batch ", row.batch());
  const std::vector<absl::string_view> names = CoordinateNames(row.kind());
  if (names.empty()) return text;
  std::vector<std::string> parts;
  for (int i = 0; i < row.coordinate_size(); ++i) {
    const absl::string_view name = static_cast<size_t>(i) < names.size() ? names[i] : "";
    parts.push_back(absl::StrCat(name, row.coordinate(i)));
  }
  return absl::StrCat(text, " (", EnumWord(v1::RowKind_Name(row.kind()), "ROW_KIND_"), ": ",
                      absl::StrJoin(parts, ", "), ")");
}

std::string ShapeText(const v1::TensorComparison& comparison) {
  return absl::StrCat("(", absl::StrJoin(comparison.shape(), ", "), ")");
}

std::string JobKindText(v1::JobKind kind) { return EnumWord(v1::JobKind_Name(kind), "JOB_KIND_"); }

std::string JobStateText(v1::JobState state) {
  return EnumWord(v1::JobState_Name(state), "JOB_STATE_");
}

std::string OutcomeText(v1::Outcome outcome) {
  return EnumWord(v1::Outcome_Name(outcome), "OUTCOME_");
}

std::string JobName(absl::string_view written) { return WithCollection(written, "jobs/"); }

std::string WorkerName(absl::string_view written) { return WithCollection(written, "workers/"); }

std::string WorkerId(absl::string_view worker) {
  absl::ConsumePrefix(&worker, "workers/");
  return worker.empty() ? "-" : std::string(worker);
}

}  // namespace plumbline::client
