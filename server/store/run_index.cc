#include "server/store/run_index.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

// Bytes of a blob that take room on the disk.
int64_t Held(const store::BlobRecord& record) {
  return record.quarantined() || record.references() == 0 ? 0 : record.size_bytes();
}

}  // namespace

RunIndex::Step RunIndex::StepOf(const v1::StepRecord& record) {
  Step step;
  for (const v1::TensorDigest& output : record.outputs()) {
    step.outputs.push_back(output.sha256());
    step.size_bytes += output.size_bytes();
  }
  return step;
}

const RunIndex::Run* RunIndex::Find(absl::string_view run) const {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : &found->second;
}

absl::StatusOr<std::string> RunIndex::Resolve(absl::string_view prefix,
                                              absl::string_view field) const {
  const auto first = runs_.lower_bound(prefix);
  if (first == runs_.end() || !absl::StartsWith(first->first, prefix)) {
    return WithReason(absl::NotFoundError(
                          absl::StrCat("there is no run ", Quoted(absl::StrCat("runs/", prefix)))),
                      "NOT_FOUND");
  }
  const auto second = std::next(first);
  if (second != runs_.end() && absl::StartsWith(second->first, prefix)) {
    return FieldError(field, absl::StrCat("several runs begin with ", prefix),
                      absl::StrCat("more digits: ", first->first, ", ", second->first));
  }
  return first->first;
}

void RunIndex::PutRun(const v1::Run& record) {
  runs_[std::string(absl::StripPrefix(record.name(), "runs/"))].record = record;
}

void RunIndex::DeleteRun(absl::string_view run) {
  const auto found = runs_.find(run);
  if (found != runs_.end()) runs_.erase(found);
}

void RunIndex::PutStep(absl::string_view run, const v1::StepRecord& step) {
  const auto found = runs_.find(run);
  if (found != runs_.end()) found->second.steps[step.index()] = StepOf(step);
}

store::BlobRecord RunIndex::FindBlob(absl::string_view sha256) const {
  const auto found = blobs_.find(sha256);
  return found == blobs_.end() ? store::BlobRecord() : found->second;
}

void RunIndex::PutBlob(absl::string_view sha256, const store::BlobRecord& record) {
  size_bytes_ += Held(record) - Held(FindBlob(sha256));
  if (record.references() == 0) {
    blobs_.erase(sha256);
  } else {
    blobs_[sha256] = record;
  }
}

bool RunIndex::IsQuarantined(const Step& step) const {
  return std::any_of(step.outputs.begin(), step.outputs.end(), [this](const std::string& sha256) {
    const auto blob = blobs_.find(sha256);
    return blob == blobs_.end() || blob->second.quarantined();
  });
}

bool RunIndex::IsSaved(const Run& run, int32_t index) const {
  const auto step = run.steps.find(index);
  return step != run.steps.end() && !IsQuarantined(step->second);
}

v1::Run RunIndex::Describe(const Run& run) const {
  v1::Run described = run.record;
  for (const auto& [index, step] : run.steps) {
    described.set_size_bytes(described.size_bytes() + step.size_bytes);
    if (!IsQuarantined(step)) described.set_saved_steps(described.saved_steps() + 1);
  }
  if (described.state() != v1::RUN_STATE_BROKEN) {
    described.set_state(described.total_steps() > 0 &&
                                described.saved_steps() == described.total_steps()
                            ? v1::RUN_STATE_FINISHED
                            : v1::RUN_STATE_ACTIVE);
  }
  return described;
}

}  // namespace plumbline::server
