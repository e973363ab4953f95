// Collects what is wrong with a specification, field by field. Internal to the validation.
#ifndef PLUMBLINE_SERVER_SCHEDULER_SPEC_CHECKER_H_
#define PLUMBLINE_SERVER_SCHEDULER_SPEC_CHECKER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "google/protobuf/repeated_field.h"
#include "proto/plumbline/v1/block_replay.pb.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::server {

// The most layouts of one job.
inline constexpr int kMaxLayouts = 1000;

// Each check adds a violation for everything that it finds wrong, so that a caller sees all of it
// at once. `has_artifact` tells whether "artifacts/{artifact}" exists; it must outlive the checker.
class SpecChecker {
 public:
  explicit SpecChecker(const std::function<bool(const std::string&)>& has_artifact)
      : has_artifact_(has_artifact) {}

  // OK, or INVALID_ARGUMENT with every violation.
  absl::Status Result() const { return FieldErrors(violations_); }

  void Add(absl::string_view field, absl::string_view what, absl::string_view accepted);
  // Takes the violations that an error carries.
  void Add(const absl::Status& status);

  void Range(absl::string_view field, int64_t value, int64_t min, int64_t max);
  void Layout(const std::string& field, const v1::Layout& layout);
  // Puts `tiny` in where there is none.
  void Layouts(const std::string& field, google::protobuf::RepeatedPtrField<v1::Layout>* layouts);
  // Puts the layouts that `sweep` stands for in its place.
  static void ExpandSweep(google::protobuf::RepeatedPtrField<v1::Layout>* layouts);
  void File(const std::string& field, const v1::InputFile& file);
  void Captures(const std::string& field, const v1::CaptureSet& captures);
  void Checkpoint(const std::string& field, absl::string_view checkpoint);
  void Labels(const v1::JobSpec& spec);
  void Placement(const v1::Placement& placement);
  // Puts the composition, `candidate` where there is none, into its canonical form. `block` as in
  // CanonicalComposition.
  void Composition(int block, v1::JobSpec* spec);
  // A fault of `job`, as the CLI calls the kind.
  void Fault(absl::string_view job, const v1::CaptureSet& captures, const std::string& fault);
  // Kinds that run no model.
  void RefuseModelFields(const v1::JobSpec& spec);

 private:
  void Size(absl::string_view field, int32_t value, int32_t max, bool even);
  void Path(const std::string& field, absl::string_view path);

  const std::function<bool(const std::string&)>& has_artifact_;
  std::vector<FieldViolation> violations_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_SPEC_CHECKER_H_
