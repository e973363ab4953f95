#include "server/api/job_uploads.h"

#include <limits>
#include <set>
#include <string>

#include "common/status.h"
#include "google/protobuf/message.h"

namespace plumbline::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Names of the artifacts that input files within `message` are.
void CollectInputs(const Message& message, std::set<std::string>* artifacts) {
  if (const auto* file = dynamic_cast<const v1::InputFile*>(&message)) {
    if (file->has_artifact()) artifacts->insert(file->artifact());
    return;
  }
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      CollectInputs(reflection.GetMessage(message, field), artifacts);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      CollectInputs(reflection.GetRepeatedMessage(message, field, i), artifacts);
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<v1::Artifact>> UploadsOfJobAlone(const Store& store, int64_t number,
                                                            const store::JobRecord& record) {
  std::vector<v1::Artifact> uploads;
  if (record.job().spec().has_generation()) return uploads;
  std::set<std::string> inputs;
  CollectInputs(record.job().spec(), &inputs);
  if (inputs.empty()) return uploads;
  const auto drop_used = [&](int64_t other, const store::JobRecord& job) {
    if (other == number) return true;
    std::set<std::string> used;
    CollectInputs(job.job().spec(), &used);
    for (const std::string& name : used) inputs.erase(name);
    return !inputs.empty();
  };
  PLUMBLINE_RETURN_IF_ERROR(store.VisitJobs(std::numeric_limits<int64_t>::max(), drop_used));
  for (const std::string& name : inputs) {
    absl::StatusOr<v1::Artifact> artifact = store.ReadArtifact(name);
    if (absl::IsNotFound(artifact.status())) continue;
    PLUMBLINE_RETURN_IF_ERROR(artifact.status());
    // What a task made goes with that task's job.
    if (artifact->task().empty()) uploads.push_back(*std::move(artifact));
  }
  return uploads;
}

}  // namespace plumbline::server
