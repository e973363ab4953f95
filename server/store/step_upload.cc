#include "server/store/step_upload.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/store/artifact_files.h"

namespace plumbline::server {
namespace {

constexpr int kMaxParts = 1000;
constexpr int kMaxTensors = 10000;
constexpr int32_t kMaxSteps = 100000;
constexpr int64_t kMaxHeaderBytes = 2 << 20;
constexpr int64_t kMaxStepBytes = int64_t{512} << 20;
// An upload is given no more memory than this before its bytes come.
constexpr int64_t kMaxReservedBytes = 16 << 20;

absl::Status DigestMismatch(absl::string_view what, absl::string_view found,
                            absl::string_view expected) {
  return WithReason(absl::DataLossError(absl::StrCat(what, " has SHA-256 ", found, ", not ",
                                                     expected, " as announced")),
                    "DIGEST_MISMATCH");
}

absl::Status CheckIdentity(const v1::RunIdentity& identity) {
  PLUMBLINE_RETURN_IF_ERROR(CheckSha256(identity.sha256(), "header.identity.sha256"));
  const auto& parts = identity.parts();
  if (parts.empty() || parts.size() > kMaxParts) {
    return FieldError("header.identity.parts", absl::StrCat("are ", parts.size()),
                      absl::StrCat("1 to ", kMaxParts, " parts"));
  }
  for (int i = 0; i < parts.size(); ++i) {
    if (parts[i].name().empty() || (i > 0 && parts[i].name() <= parts[i - 1].name())) {
      return FieldError(absl::StrCat("header.identity.parts[", i, "].name"),
                        absl::StrCat(Quoted(parts[i].name()), " is empty or out of order"),
                        "names in ascending order, each once");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(const google::protobuf::RepeatedPtrField<v1::TensorDigest>& tensors,
                          const std::string& field) {
  if (tensors.empty() || tensors.size() > kMaxTensors) {
    return FieldError(field, absl::StrCat("are ", tensors.size()),
                      absl::StrCat("1 to ", kMaxTensors, " tensors"));
  }
  std::set<absl::string_view> names;
  for (int i = 0; i < tensors.size(); ++i) {
    const std::string tensor = absl::StrCat(field, "[", i, "]");
    PLUMBLINE_RETURN_IF_ERROR(CheckSha256(tensors[i].sha256(), tensor + ".sha256"));
    if (tensors[i].name().empty() || !names.insert(tensors[i].name()).second) {
      return FieldError(tensor + ".name", absl::StrCat(Quoted(tensors[i].name()), " is no name"),
                        "names, each once");
    }
    if (tensors[i].size_bytes() < 0 || tensors[i].size_bytes() > kMaxStepBytes) {
      return FieldError(tensor + ".size_bytes",
                        absl::StrCat(tensors[i].size_bytes(), " is out of range"),
                        absl::StrCat("0 to ", kMaxStepBytes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRecord(const v1::StepRecord& record, int32_t total_steps) {
  if (record.index() < 0 || record.index() >= total_steps) {
    return FieldError("header.record.index", absl::StrCat(record.index(), " is out of range"),
                      absl::StrCat("0 to ", total_steps - 1));
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckSha256(record.input_digest(), "header.record.input_digest"));
  PLUMBLINE_RETURN_IF_ERROR(CheckTensors(record.inputs(), "header.record.inputs"));
  PLUMBLINE_RETURN_IF_ERROR(CheckTensors(record.outputs(), "header.record.outputs"));
  int64_t size_bytes = 0;
  for (const v1::TensorDigest& output : record.outputs()) size_bytes += output.size_bytes();
  if (size_bytes > kMaxStepBytes) {
    return FieldError("header.record.outputs", absl::StrCat("have ", size_bytes, " bytes"),
                      absl::StrCat("at most ", kMaxStepBytes, " together"));
  }
  if (!std::isfinite(record.seconds()) || record.seconds() < 0) {
    return FieldError("header.record.seconds", "is no duration", "0 or more");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStepHeader(const v1::PutStepRequest::Header& header) {
  if (static_cast<int64_t>(header.ByteSizeLong()) > kMaxHeaderBytes) {
    return FieldError("header", absl::StrCat("has ", header.ByteSizeLong(), " bytes"),
                      absl::StrCat("at most ", kMaxHeaderBytes));
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckIdentity(header.identity()));
  if (header.total_steps() < 1 || header.total_steps() > kMaxSteps) {
    return FieldError("header.total_steps", absl::StrCat(header.total_steps(), " is out of range"),
                      absl::StrCat("1 to ", kMaxSteps));
  }
  return header.has_record() ? CheckRecord(header.record(), header.total_steps())
                             : absl::OkStatus();
}

absl::Status StepUpload::EndOutputs() {
  while (ended_ < record_.outputs_size()) {
    const v1::TensorDigest& output = record_.outputs(ended_);
    if (static_cast<int>(outputs_.size()) == ended_) {
      outputs_.emplace_back();
      outputs_.back().reserve(std::min(output.size_bytes(), kMaxReservedBytes));
    }
    if (static_cast<int64_t>(outputs_.back().size()) < output.size_bytes()) break;
    if (const std::string found = output_digest_.FinishHex(); found != output.sha256()) {
      return DigestMismatch(absl::StrCat("step ", record_.index(), ": ", output.name()), found,
                            output.sha256());
    }
    ++ended_;
  }
  return absl::OkStatus();
}

absl::Status StepUpload::Append(absl::string_view bytes) {
  stream_digest_.Update(bytes);
  size_bytes_ += static_cast<int64_t>(bytes.size());
  PLUMBLINE_RETURN_IF_ERROR(EndOutputs());
  while (!bytes.empty()) {
    if (ended_ == record_.outputs_size()) {
      return FieldError("chunk", "goes beyond the step's outputs",
                        "as many bytes as header.record.outputs have");
    }
    std::string& output = outputs_.back();
    const absl::string_view part =
        bytes.substr(0, record_.outputs(ended_).size_bytes() - output.size());
    output.append(part.data(), part.size());
    output_digest_.Update(part);
    bytes.remove_prefix(part.size());
    PLUMBLINE_RETURN_IF_ERROR(EndOutputs());
  }
  return absl::OkStatus();
}

absl::Status StepUpload::Finish(int64_t size_bytes, absl::string_view sha256) {
  PLUMBLINE_RETURN_IF_ERROR(EndOutputs());
  if (size_bytes != size_bytes_ || ended_ != record_.outputs_size()) {
    return WithReason(absl::DataLossError(absl::StrCat("the stream has ", size_bytes_, " bytes of ",
                                                       ended_, " whole outputs; the trailer says ",
                                                       size_bytes, " bytes and the header ",
                                                       record_.outputs_size(), " outputs")),
                      "DIGEST_MISMATCH");
  }
  const std::string found = stream_digest_.FinishHex();
  return found == sha256 ? absl::OkStatus() : DigestMismatch("the stream", found, sha256);
}

}  // namespace plumbline::server
