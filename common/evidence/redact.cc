#include "common/evidence/redact.h"

#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace plumbline {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// `synthetic:tiny` names no file; `synthetic:folder/config.json` does.
bool NamesNoFile(absl::string_view checkpoint) {
  const std::vector<absl::string_view> parts = absl::StrSplit(checkpoint, ':');
  return parts.size() >= 2 && parts[0] == "synthetic" &&
         (parts[1] == "released" || parts[1] == "tiny");
}

void RedactOne(Message* message) {
  if (auto* attempt = dynamic_cast<v1::Attempt*>(message)) {
    attempt->clear_worker();
    attempt->clear_incarnation();
    attempt->clear_labels();
    attempt->clear_message();
  } else if (auto* file = dynamic_cast<v1::InputFile*>(message)) {
    file->clear_worker_path();
  } else if (auto* spec = dynamic_cast<v1::JobSpec*>(message)) {
    spec->clear_labels();
    spec->clear_placement();
    if (!NamesNoFile(spec->checkpoint())) spec->clear_checkpoint();
  }
}

void RedactAll(Message* message) {
  RedactOne(message);
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      RedactAll(reflection.MutableMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      RedactAll(reflection.MutableRepeatedMessage(message, field, i));
    }
  }
}

}  // namespace

void Redact(v1::Report* report) { RedactAll(report); }

}  // namespace plumbline
