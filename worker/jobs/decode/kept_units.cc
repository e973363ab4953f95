#include "worker/jobs/decode/kept_units.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/crash_point.h"
#include "common/sha256.h"
#include "common/status.h"
#include "common/step_digest.h"

namespace plumbline::jobs {
namespace {

absl::Status Inconsistent(const std::string& run, int32_t index, absl::string_view what) {
  return WithReason(absl::DataLossError(absl::StrCat(run, ": unit ", index, ": ", what)),
                    "STEP_INCONSISTENT");
}

}  // namespace

absl::StatusOr<KeptUnits> KeptUnits::Open(steps::RunFacts facts,
                                          std::vector<v1::TensorDigest> inputs, int32_t attempt,
                                          steps::StepStore* store) {
  KeptUnits units(std::move(facts), std::move(inputs), attempt, store);
  absl::StatusOr<v1::Run> run = store->GetRun(units.RunName());
  if (absl::IsNotFound(run.status())) return units;
  if (!run.ok()) return run.status();
  if (run->state() == v1::RUN_STATE_BROKEN) {
    return absl::FailedPreconditionError(
        absl::StrCat(units.RunName(), " is broken: ", run->problem()));
  }
  for (v1::StepRecord& record : *run->mutable_steps()) {
    if (!record.quarantined()) units.kept_[record.index()] = std::move(record);
  }
  return units;
}

std::string KeptUnits::RunName() const { return absl::StrCat("runs/", facts_.identity.sha256()); }

std::string KeptUnits::InputDigest(int32_t index) const {
  const google::protobuf::RepeatedPtrField<v1::TensorDigest> inputs(inputs_.begin(), inputs_.end());
  return StepInputDigest(facts_.identity.sha256(), index, inputs);
}

absl::StatusOr<DecodedUnit> KeptUnits::Read(const steps::SavedStep& step, int32_t index) const {
  if (step.record.input_digest() != InputDigest(index)) {
    return Inconsistent(RunName(), index, "what is kept was decoded from other latents");
  }
  DecodedUnit unit;
  for (int i = 0; i < step.record.outputs_size(); ++i) {
    const v1::TensorDigest& output = step.record.outputs(i);
    const std::string& bytes = step.tensors[static_cast<size_t>(i)];
    if (bytes.size() % sizeof(float) != 0 || Sha256Hex(bytes) != output.sha256()) {
      return Inconsistent(RunName(), index,
                          absl::StrCat(output.name(), " has other bytes than its record says"));
    }
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    unit.tensors.emplace_back(output.name(), std::move(values));
  }
  return unit;
}

absl::StatusOr<DecodedUnit> KeptUnits::Get(
    int32_t index, const std::function<absl::StatusOr<DecodedUnit>()>& make) {
  if (kept_.count(index) > 0) {
    std::optional<DecodedUnit> read;
    PLUMBLINE_RETURN_IF_ERROR(
        store_->Fetch(RunName(), index, 1, [&](steps::SavedStep step) -> absl::Status {
          PLUMBLINE_ASSIGN_OR_RETURN(read, Read(step, index));
          return absl::OkStatus();
        }));
    // Else the store has found out, reading, that it cannot give what it had listed.
    if (read.has_value()) return *std::move(read);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(DecodedUnit unit, make());
  ++made_;
  CrashPoint(CrashPlace::kWorkerAfterDecode);
  steps::SavedStep step;
  v1::StepRecord& record = step.record;
  record.set_index(index);
  record.set_input_digest(InputDigest(index));
  for (const v1::TensorDigest& input : inputs_) *record.add_inputs() = input;
  record.set_attempt(attempt_);
  for (const auto& [name, values] : unit.tensors) {
    step.tensors.emplace_back(reinterpret_cast<const char*>(values.data()),
                              values.size() * sizeof(float));
    v1::TensorDigest& output = *record.add_outputs();
    output.set_name(name);
    output.set_dtype("F32");
    output.add_shape(static_cast<int64_t>(values.size()));
    output.set_size_bytes(static_cast<int64_t>(step.tensors.back().size()));
    output.set_sha256(Sha256Hex(step.tensors.back()));
  }
  const absl::Status saved = store_->Save(facts_, std::move(step));
  if (absl::IsDataLoss(saved)) return Inconsistent(RunName(), index, saved.message());
  PLUMBLINE_RETURN_IF_ERROR(saved);
  return unit;
}

}  // namespace plumbline::jobs
