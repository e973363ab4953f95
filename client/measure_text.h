#ifndef PLUMBLINE_CLIENT_MEASURE_TEXT_H_
#define PLUMBLINE_CLIENT_MEASURE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/timestamp.pb.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "proto/plumbline/v1/job.pb.h"
#include "proto/plumbline/v1/layout.pb.h"

// Single figures and words as tables and sentences show them.

namespace plumbline::client {

// "0", "1.23e-04", "nan", "inf": at most 9 characters.
std::string MeasureText(double value);
// "0.98", "12.3", "1.2e+04"; "-" for what is no number.
std::string RatioText(double value);
// "1,234,567".
std::string CountText(int64_t value);
// "512 B", "1.5 kB", "3.2 GB".
std::string BytesText(int64_t bytes);
// "1.23 ms", "4.56 s".
std::string MillisecondsText(double milliseconds);
// "2024-05-01 12:00:00" in UTC, "-" where it is unset.
std::string TimeText(const google::protobuf::Timestamp& time);
// "row 131 of batch 1 (video: frame 0, y 3, x 2)".
std::string RowText(const v1::RowLocation& row);
// "(1, 53, 128)".
std::string ShapeText(const v1::TensorComparison& comparison);

// The words of the API's names, e.g. "block-replay", "queued", "passed".
std::string JobKindText(v1::JobKind kind);
std::string JobStateText(v1::JobState state);
std::string OutcomeText(v1::Outcome outcome);

// The last part of a resource's name; "jobs/" before it is what commands take either way.
std::string JobName(absl::string_view written);
std::string WorkerName(absl::string_view written);
// "a1b2" for "workers/a1b2"; "-" for none, as in evidence.
std::string WorkerId(absl::string_view worker);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_MEASURE_TEXT_H_
