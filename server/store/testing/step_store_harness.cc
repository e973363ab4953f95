#include "server/store/testing/step_store_harness.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/sha256.h"
#include "common/status.h"
#include "common/step_digest.h"

namespace plumbline::server {
namespace {

constexpr int32_t kTotalSteps = 8;
constexpr int64_t kAudioBytes = 5000;
constexpr TaskKey kTask{1, 0};

std::string RandomBytes(uint64_t seed, int64_t size) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace

v1::RunIdentity MakeIdentity(const std::vector<std::string>& parts, absl::string_view salt) {
  v1::RunIdentity identity;
  for (const std::string& text : parts) {
    const std::pair<std::string, std::string> halves = absl::StrSplit(text, '=');
    v1::IdentityPart& part = *identity.add_parts();
    part.set_name(halves.first);
    part.set_value(halves.second);
  }
  identity.set_sha256(Sha256Hex(absl::StrCat(absl::StrJoin(parts, "\n"), salt)));
  return identity;
}

TestStep MakeTestStep(uint64_t seed, int32_t index, absl::string_view kernel, int64_t video_bytes) {
  TestStep step;
  step.header.set_seed(seed);
  step.header.set_total_steps(kTotalSteps);
  *step.header.mutable_identity() =
      MakeIdentity({absl::StrCat("kernel=", kernel), absl::StrCat("seed=", seed)});
  v1::StepRecord& record = *step.header.mutable_record();
  record.set_index(index);
  record.set_worker("workers/one");
  record.set_attempt(1);
  record.set_seconds(1.5);
  for (const char* const name : {"audio", "rows"}) {
    v1::TensorDigest& input = *record.add_inputs();
    input.set_name(name);
    input.set_sha256(Sha256Hex(absl::StrCat(name, " ", seed, " ", index)));
  }
  record.set_input_digest(StepInputDigest(step.header.identity().sha256(), index, record.inputs()));
  step.outputs = {RandomBytes(seed * 1000 + index, video_bytes),
                  RandomBytes(seed * 1000 + index + 500, kAudioBytes)};
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    v1::TensorDigest& output = *record.add_outputs();
    output.set_name(i == 0 ? "velocity.video" : "velocity.audio");
    output.set_size_bytes(static_cast<int64_t>(step.outputs[i].size()));
    output.set_sha256(Sha256Hex(step.outputs[i]));
  }
  record.mutable_trace()->add_groups()->set_requested("golden");
  return step;
}

std::string RunIdOf(uint64_t seed, absl::string_view kernel) {
  return MakeTestStep(seed, 0, kernel).header.identity().sha256();
}

absl::Status StepStoreHarness::Open(StoreOptions options, StepStoreOptions step_options) {
  Close();
  PLUMBLINE_ASSIGN_OR_RETURN(store_, Store::Open(std::move(options)));
  PLUMBLINE_ASSIGN_OR_RETURN(steps_, StepStore::Open(store_.get(), std::move(step_options)));
  PLUMBLINE_ASSIGN_OR_RETURN(token_, store_->NewestFencingToken());
  return Grant();
}

void StepStoreHarness::Close() {
  steps_.reset();
  store_.reset();
}

absl::Status StepStoreHarness::Grant() {
  store::LeaseRecord lease;
  lease.set_fencing_token(++token_);
  WriteSet set;
  set.GrantLease(kTask, lease);
  return store_->CommitAndWait(&set);
}

absl::StatusOr<v1::PutStepResponse> StepStoreHarness::Put(const TestStep& step, int64_t token) {
  PLUMBLINE_RETURN_IF_ERROR(CheckStepHeader(step.header));
  StepUpload upload(step.header);
  // In pieces that do not end where tensors do.
  const std::string all = absl::StrJoin(step.outputs, "");
  constexpr size_t kChunkBytes = 7001;
  for (size_t offset = 0; offset < all.size(); offset += kChunkBytes) {
    PLUMBLINE_RETURN_IF_ERROR(upload.Append(all.substr(offset, kChunkBytes)));
  }
  v1::StreamTrailer trailer;
  trailer.set_size_bytes(static_cast<int64_t>(all.size()));
  trailer.set_sha256(Sha256Hex(all));
  PLUMBLINE_RETURN_IF_ERROR(upload.Finish(trailer));
  NewStep put;
  put.task = kTask;
  put.fencing_token = token == 0 ? token_ : token;
  put.header = step.header;
  put.upload = &upload;
  return steps_->PutStep(put, v1::AuditEvent());
}

absl::Status StepStoreHarness::PutRun(const TestStep& step) {
  NewStep run;
  run.task = kTask;
  run.fencing_token = token_;
  run.header = step.header;
  run.header.clear_record();
  return steps_->PutRun(run, v1::AuditEvent());
}

bool FlipBitInBlobFile(const std::string& folder, absl::string_view bytes) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".blob") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    const size_t found = content.find(bytes.data(), 0, bytes.size());
    if (found == std::string::npos) continue;
    const size_t position = found + bytes.size() / 2;
    file.seekp(static_cast<std::streamoff>(position));
    file.put(static_cast<char>(content[position] ^ 0x10));
    return file.good();
  }
  return false;
}

}  // namespace plumbline::server
