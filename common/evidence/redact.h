#ifndef PLUMBLINE_COMMON_EVIDENCE_REDACT_H_
#define PLUMBLINE_COMMON_EVIDENCE_REDACT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline {

// Takes out of `report` what says where it was made and by whom: workers, their incarnations and
// labels, labels and placement of the job, messages of attempts, paths of files and of the
// checkpoint, whose digest the identities hold. Nothing that a verdict is computed from. A text
// stays only if it is known to be made of the vocabulary and of what was computed: of a field that
// nobody has spoken for, it goes.
void Redact(v1::Report* report);

// What becomes of the texts of a field.
enum class TextFate {
  kUnknown,   // Nobody has said; taken out.
  kKept,      // Names of the vocabulary, digests, computed words.
  kFreeText,  // Kept, but for paths in it.
  kTakenOut,
};

// By the field's full name without the package, e.g. "Attempt.worker"; of a map, "LabelsEntry.key"
// behind its message.
TextFate FateOf(absl::string_view field);

// `text` with "(path)" for every absolute path and every address of a scheme in it.
std::string WithoutPaths(absl::string_view text);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_REDACT_H_
