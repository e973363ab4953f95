#ifndef PLUMBLINE_WORKER_JOBS_FULL_MODEL_SETUP_H_
#define PLUMBLINE_WORKER_JOBS_FULL_MODEL_SETUP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/full_model.pb.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/drift/faults.h"
#include "worker/h3/composition.h"
#include "worker/h3/graph.h"
#include "worker/h3/inventory.h"
#include "worker/h3/weight_source.h"
#include "worker/jobs/full_model_inputs.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Who takes part: a composition that runs, or a capture that stands for one.
struct FullModelSide {
  std::string name;  // what reports call it, e.g. "provider/default"
  std::optional<h3::ResolvedComposition> composition;  // unset: a capture
  const SafetensorsFile* capture = nullptr;            // null: it runs

  // What a fault changes of it.
  std::vector<h3::OperationFault> operation_faults;
  bool reads_faulty_weights = false;
  bool reads_faulty_inputs = false;
};

// The candidate with one group of nodes replaced by the provider.
struct AblatedSide {
  std::string group;
  // No node of the composition is in the group; `side` is not run.
  bool empty = false;
  FullModelSide side;
};

// A request understood: what runs, on what, and what judges it. Its parts point into one another,
// so it stays where it was made.
struct FullModelSetup {
  FullModelSetup(const h3::WeightSource& weights, const JobEnvironment& environment)
      : weights(weights), environment(environment) {}
  FullModelSetup(const FullModelSetup&) = delete;
  FullModelSetup& operator=(const FullModelSetup&) = delete;

  // See RunFullModel.
  static absl::StatusOr<std::unique_ptr<FullModelSetup>> Make(const v1::JobSpec& spec,
                                                              const FullModelFiles& files,
                                                              const h3::WeightSource& weights,
                                                              const JobEnvironment& environment);

  // Index of `provider/default` among the providers, or -1.
  int DefaultProvider() const;
  // Golden and provider compositions are what candidates are held to: measured and not judged.
  bool CandidateIsReference() const;
  // No rule was given and one is needed.
  bool MakesRule() const { return !rule.has_value() && !CandidateIsReference(); }

  const h3::WeightSource& weights;
  const JobEnvironment& environment;

  FullModelCaptures captures;
  FullModelRunInputs inputs;
  h3::Graph graph;
  h3::RowCounts rows;
  std::vector<h3::InventoryTensor> inventory;

  FullModelSide golden;
  std::vector<FullModelSide> providers;
  h3::Composition composition;             // of the candidate
  std::optional<FullModelSide> candidate;  // unset when a rule is only made
  std::vector<std::string> extra;          // tensors of a captured candidate that none should have
  std::vector<AblatedSide> ablation;       // empty unless asked for
  std::optional<drift::Fault> fault;
  // Why one that was asked for changes nothing here, and so is left out.
  std::string inert_fault;

  v1::Rule::Binds binds;         // of this run
  std::optional<v1::Rule> rule;  // one that was given
  std::vector<bool> kept;        // by inventory index
  bool save_tensors = false;

 private:
  absl::Status ReadInputs(const v1::JobSpec& spec, const FullModelFiles& files);
  absl::Status ResolveGolden();
  absl::Status ResolveProviders(const v1::FullModelSpec& spec);
  absl::Status ResolveCandidate(const v1::JobSpec& spec);
  absl::Status CheckCaptures();
  absl::Status PrepareFault(const std::string& name);
  absl::Status PrepareAblation();
  absl::Status ReadRule(const FullModelFiles& files, bool allow_other_device);
  absl::Status ChooseKept(const v1::FullModelSpec& spec);
  absl::StatusOr<h3::ResolvedComposition> Resolve(absl::string_view text) const;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_FULL_MODEL_SETUP_H_
