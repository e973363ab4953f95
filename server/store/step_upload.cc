#include "server/store/step_upload.h"

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/store/artifact_files.h"
#include "server/store/run_name.h"

namespace plumbline::server {
namespace {

constexpr int kMaxParts = 1000;
constexpr int kMaxTensors = 10000;
constexpr int32_t kMaxSteps = 100000;
constexpr int64_t kMaxHeaderBytes = 2 << 20;
constexpr int64_t kMaxStepBytes = int64_t{512} << 20;

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
  if (!header.decode_of().empty()) {
    PLUMBLINE_RETURN_IF_ERROR(ParseRunName(header.decode_of(), "header.decode_of").status());
    if (!header.decodes()) {
      return FieldError("header.decode_of", "is of a run that decodes nothing", "nothing");
    }
  }
  if (header.total_steps() < 1 || header.total_steps() > kMaxSteps) {
    return FieldError("header.total_steps", absl::StrCat(header.total_steps(), " is out of range"),
                      absl::StrCat("1 to ", kMaxSteps));
  }
  return header.has_record() ? CheckRecord(header.record(), header.total_steps())
                             : absl::OkStatus();
}

void StepUpload::BeginOutputs() {
  while (missing_bytes_ == 0 && static_cast<int>(outputs_.size()) < record_.outputs_size()) {
    missing_bytes_ = record_.outputs(static_cast<int>(outputs_.size())).size_bytes();
    outputs_.emplace_back();
  }
}

absl::Status StepUpload::Append(std::string chunk) {
  chunks_.push_back(std::move(chunk));
  absl::string_view bytes = chunks_.back();
  size_bytes_ += static_cast<int64_t>(bytes.size());
  BeginOutputs();
  while (!bytes.empty()) {
    if (missing_bytes_ == 0) {
      return FieldError("chunk", "goes beyond the step's outputs",
                        "as many bytes as header.record.outputs have");
    }
    const absl::string_view part = bytes.substr(0, missing_bytes_);
    outputs_.back().push_back(part);
    missing_bytes_ -= static_cast<int64_t>(part.size());
    bytes.remove_prefix(part.size());
    BeginOutputs();
  }
  return absl::OkStatus();
}

absl::Status StepUpload::Finish(const v1::StreamTrailer& trailer) {
  BeginOutputs();
  trailer_sha256_ = trailer.sha256();
  if (trailer.size_bytes() == size_bytes_ && missing_bytes_ == 0) return absl::OkStatus();
  int64_t announced = 0;
  for (const v1::TensorDigest& output : record_.outputs()) announced += output.size_bytes();
  return WithReason(
      absl::DataLossError(absl::StrCat("step ", record_.index(), ": ", size_bytes_,
                                       " bytes came; the trailer says ", trailer.size_bytes(),
                                       " and the outputs have ", announced)),
      "DIGEST_MISMATCH");
}

absl::Status StepUpload::CheckDigests() const {
  Sha256 of_stream;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Sha256 of_output;
    for (const absl::string_view piece : outputs_[i]) {
      of_output.Update(piece);
      of_stream.Update(piece);
    }
    const v1::TensorDigest& output = record_.outputs(static_cast<int>(i));
    if (const std::string found = of_output.FinishHex(); found != output.sha256()) {
      return DigestMismatch(absl::StrCat("step ", record_.index(), ": ", output.name()), found,
                            output.sha256());
    }
  }
  const std::string found = of_stream.FinishHex();
  return found == trailer_sha256_ ? absl::OkStatus()
                                  : DigestMismatch("the stream", found, trailer_sha256_);
}

}  // namespace plumbline::server
