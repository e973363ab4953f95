#include "common/evidence/redact.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"

namespace plumbline {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Messages all of whose texts are kept: names of the vocabulary, digests, types, figures' names.
constexpr absl::string_view kKeptMessages[] = {
    "AblationRow",
    "BlockReplayReport",
    "CaptureSet",
    "ComparisonSpec",
    "ControlResult",
    "DiagnosticReport",
    "DiagnosticSpec",
    "EntryReport",
    "EqualityCheck",
    "FirstFailure",
    "Firsts",
    "FullModelReport",
    "FullModelSpec",
    "FullModelTensor",
    "GateResult",
    "GenerationComparisonReport",
    "GenerationContract",
    "GenerationReport.Step",
    "GenerationSpec",
    "IdentityDifference",
    "IdentityPart",
    "Implementation",
    "ImplementationTrace",
    "KernelIdentity",
    "Layout",
    "LayoutReport",
    "NamedComparison",
    "NumericalIdentity",
    "Rule",
    "RuleReport",
    "RunIdentity",
    "RunsReport",
    "SensitivityCheck",
    "SweepReport",
    "TensorDigest",
    "TensorFilesReport",
    "TimingPair",
    "Verdict",
    "VerdictReport",
    "CheckpointReport",
};

struct NamedFate {
  absl::string_view field;
  TextFate fate;
};

// Of other messages field by field, and exceptions.
constexpr NamedFate kFields[] = {
    {"Report.job", TextFate::kKept},
    {"InputFile.artifact", TextFate::kKept},
    {"InputFile.worker_path", TextFate::kTakenOut},
    {"ComparisonSpec.MediaPair.a_label", TextFate::kFreeText},
    {"ComparisonSpec.MediaPair.b_label", TextFate::kFreeText},
    {"ComparisonSpec.GenerationPair.Side.not_decoded", TextFate::kFreeText},
    {"GenerationComparisonReport.not_compared", TextFate::kFreeText},
    {"DecodeSpec.run", TextFate::kKept},
    {"VerdictSpec.FilesEntry.key", TextFate::kTakenOut},
    {"VerdictSpec.public_key_pem", TextFate::kTakenOut},
    {"JobSpec.checkpoint", TextFate::kKept},  // Where it names no file.
    {"JobSpec.composition", TextFate::kKept},
    {"JobSpec.inject", TextFate::kKept},
    {"JobSpec.LabelsEntry.key", TextFate::kTakenOut},
    {"JobSpec.LabelsEntry.value", TextFate::kTakenOut},
    {"Placement.kernel_sha256", TextFate::kTakenOut},
    {"Placement.device_class", TextFate::kTakenOut},
    {"Placement.WorkerLabelsEntry.key", TextFate::kTakenOut},
    {"Placement.WorkerLabelsEntry.value", TextFate::kTakenOut},
    {"Placement.plugins", TextFate::kTakenOut},
    {"TaskReport.task", TextFate::kKept},
    {"TaskReport.title", TextFate::kKept},
    {"TaskReport.composition", TextFate::kKept},
    {"TaskReport.ReferenceIdentitiesEntry.key", TextFate::kKept},
    {"Attempt.worker", TextFate::kTakenOut},
    {"Attempt.incarnation", TextFate::kTakenOut},
    {"Attempt.message", TextFate::kTakenOut},
    {"Attempt.LabelsEntry.key", TextFate::kTakenOut},
    {"Attempt.LabelsEntry.value", TextFate::kTakenOut},
    {"Artifact.name", TextFate::kKept},
    {"Artifact.file_name", TextFate::kFreeText},
    {"Artifact.media_type", TextFate::kKept},
    {"Artifact.sha256", TextFate::kKept},
    {"Artifact.task", TextFate::kKept},
    {"TensorComparison.reference", TextFate::kFreeText},
    {"TensorComparison.subject", TextFate::kFreeText},
    {"TensorComparison.incomparable", TextFate::kFreeText},
    {"TensorComparison.dtype", TextFate::kKept},
    {"TensorComparison.reference_dtype", TextFate::kKept},
    {"TensorComparison.sha256", TextFate::kKept},
    {"TensorComparison.reference_sha256", TextFate::kKept},
    {"RuleProvider.name", TextFate::kKept},
    {"RuleProvider.dropped_because", TextFate::kKept},
    {"GenerationReport.run", TextFate::kKept},
    {"GenerationReport.gate", TextFate::kKept},
    {"GenerationReport.not_decoded", TextFate::kFreeText},
    {"QualityReport.subject", TextFate::kFreeText},
    {"QualityReport.reference", TextFate::kFreeText},
    {"DecodeReport.source", TextFate::kFreeText},
    {"DecodeReport.composition", TextFate::kKept},
    {"CheckpointFinding.file", TextFate::kFreeText},
    {"CheckpointFinding.tensor", TextFate::kKept},
    {"CheckpointFinding.message", TextFate::kFreeText},
    {"SelftestReport.Row.name", TextFate::kKept},
    {"SelftestReport.Row.kind", TextFate::kKept},
    {"SelftestReport.Row.job_kind", TextFate::kKept},
    {"SelftestReport.Row.expected", TextFate::kKept},
    {"SelftestReport.Row.found", TextFate::kFreeText},
    {"SelftestReport.Row.skipped", TextFate::kFreeText},
    {"Device.product", TextFate::kKept},
    {"Device.device_class", TextFate::kKept},
};

// `synthetic:tiny` names no file; `synthetic:folder/config.json` does.
bool NamesNoFile(absl::string_view checkpoint) {
  const std::vector<absl::string_view> parts = absl::StrSplit(checkpoint, ':');
  return parts.size() >= 2 && parts[0] == "synthetic" &&
         (parts[1] == "released" || parts[1] == "tiny");
}

// Timestamps and statuses of other packages hold no text of a report.
absl::string_view WithoutPackage(absl::string_view name) {
  return absl::ConsumePrefix(&name, "plumbline.v1.") ? name : absl::string_view();
}

void RedactText(Message* message, const FieldDescriptor* field) {
  const Reflection& reflection = *message->GetReflection();
  const TextFate fate = FateOf(WithoutPackage(field->full_name()));
  if (fate == TextFate::kKept) return;
  if (fate != TextFate::kFreeText) {
    reflection.ClearField(message, field);
    return;
  }
  if (!field->is_repeated()) {
    reflection.SetString(message, field, WithoutPaths(reflection.GetString(*message, field)));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    reflection.SetRepeatedString(message, field, i,
                                 WithoutPaths(reflection.GetRepeatedString(*message, field, i)));
  }
}

// A map whose keys go, goes as a whole.
bool LosesKeys(const FieldDescriptor* field) {
  if (!field->is_map()) return false;
  const FieldDescriptor* const key = field->message_type()->FindFieldByName("key");
  if (key->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return false;
  return FateOf(WithoutPackage(key->full_name())) != TextFate::kKept;
}

void RedactAll(Message* message) {
  if (auto* spec = dynamic_cast<v1::JobSpec*>(message)) {
    spec->clear_placement();
    if (!NamesNoFile(spec->checkpoint())) spec->clear_checkpoint();
  }
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      RedactText(message, field);
    } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    } else if (LosesKeys(field)) {
      reflection.ClearField(message, field);
    } else if (!field->is_repeated()) {
      RedactAll(reflection.MutableMessage(message, field));
    } else {
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
        RedactAll(reflection.MutableRepeatedMessage(message, field, i));
      }
    }
  }
}

}  // namespace

TextFate FateOf(absl::string_view field) {
  for (const NamedFate& named : kFields) {
    if (named.field == field) return named.fate;
  }
  for (absl::string_view message : kKeptMessages) {
    absl::string_view rest = field;
    if (absl::ConsumePrefix(&rest, message) && absl::StartsWith(rest, ".")) return TextFate::kKept;
  }
  return TextFate::kUnknown;
}

std::string WithoutPaths(absl::string_view text) {
  const auto ends_path = [](char c) {
    return absl::ascii_isspace(static_cast<unsigned char>(c)) || c == '"' || c == '\'' ||
           c == ',' || c == ';' || c == ')';
  };
  std::string kept;
  size_t i = 0;
  while (i < text.size()) {
    const bool at_start = i == 0 || ends_path(text[i - 1]) || text[i - 1] == '(' ||
                          text[i - 1] == '=' || text[i - 1] == ':';
    absl::string_view word = text.substr(i);
    word = word.substr(0, std::find_if(word.begin(), word.end(), ends_path) - word.begin());
    const bool is_path = (absl::StartsWith(word, "/") && word.size() > 1) ||
                         absl::StartsWith(word, "~/") || absl::StrContains(word, "://");
    if (!at_start || !is_path) {
      kept += text[i++];
      continue;
    }
    absl::StrAppend(&kept, "(path)");
    i += word.size();
  }
  return kept;
}

void Redact(v1::Report* report) { RedactAll(report); }

}  // namespace plumbline
