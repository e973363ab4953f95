#include "server/api/generation_references.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/resource_name.h"
#include "server/scheduler/gate.h"
#include "server/scheduler/job_plan.h"
#include "server/store/run_name.h"

namespace plumbline::server {
namespace {

struct Referred {
  int64_t number = 0;
  v1::Job job;
};

absl::StatusOr<Referred> FindJob(const Api& api, const std::string& name, absl::string_view field,
                                 v1::JobKind kind) {
  Referred referred;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string id, ParseName(name, "jobs", field));
  const absl::StatusOr<int64_t> number = api.store->FindJob(id);
  if (absl::IsNotFound(number.status())) {
    return FieldError(field, absl::StrCat("there is no ", name),
                      absl::StrCat("a ", KindName(kind), " job"));
  }
  if (!number.ok()) return number.status();
  PLUMBLINE_ASSIGN_OR_RETURN(const store::JobRecord record, api.store->ReadJob(*number));
  if (record.job().kind() != kind) {
    return FieldError(field, absl::StrCat(name, " is a ", KindName(record.job().kind()), " job"),
                      absl::StrCat("a ", KindName(kind), " job"));
  }
  referred.number = *number;
  referred.job = record.job();
  return referred;
}

store::Dependency WaitFor(const Referred& referred, store::Dependency::Use use) {
  store::Dependency dependency;
  dependency.set_use(use);
  dependency.set_job(referred.job.name());
  dependency.set_job_number(referred.number);
  return dependency;
}

absl::Status ResolveGate(const Api& api, NewJob* job) {
  const std::string& name = job->spec.generation().gate();
  if (job->spec.generation().authorisation_case() != v1::GenerationSpec::kGate) {
    return absl::OkStatus();
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const Referred gate,
                             FindJob(api, name, "spec.generation.gate", v1::JOB_KIND_FULL_MODEL));
  PLUMBLINE_RETURN_IF_ERROR(CheckGateSpec(gate.job, job->spec));
  if (!IsFinal(gate.job.state())) {
    job->waits_for.push_back(WaitFor(gate, store::Dependency::USE_GATE));
    return absl::OkStatus();
  }
  std::vector<v1::NumericalIdentity> identities;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<store::TaskRecord> tasks,
                             api.store->ReadTasks(gate.number));
  for (size_t i = 0; i < tasks.size() && gate.job.state() == v1::JOB_STATE_SUCCEEDED; ++i) {
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::TaskReport report,
                               api.store->ReadReport({gate.number, static_cast<int32_t>(i)}));
    identities.push_back(report.identity());
  }
  PLUMBLINE_ASSIGN_OR_RETURN(job->gate_identity, CertifiedBy(gate.job, identities));
  return absl::OkStatus();
}

constexpr absl::string_view kDefaultDecoder = "golden";

// Fields that decide what is generated, and how it is decoded, and differ.
std::vector<std::string> DifferingFields(v1::GenerationContract a, v1::GenerationContract b) {
  for (v1::GenerationContract* const contract : {&a, &b}) {
    contract->clear_seeds();
    contract->clear_bounds();
    if (contract->decoder().empty()) contract->set_decoder(std::string(kDefaultDecoder));
    contract->clear_checkpoint_sha256();
    contract->clear_conditioning_sha256();
  }
  std::vector<std::string> names;
  const google::protobuf::Descriptor& type = *v1::GenerationContract::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    google::protobuf::util::MessageDifferencer differencer;
    if (!differencer.CompareWithFields(a, b, {type.field(i)}, {type.field(i)})) {
      names.push_back(type.field(i)->name());
    }
  }
  return names;
}

absl::Status CheckSameContract(const Referred& referred, const v1::GenerationContract& contract,
                               absl::string_view field) {
  const std::vector<std::string> differing =
      DifferingFields(referred.job.spec().generation().contract(), contract);
  if (differing.empty()) return absl::OkStatus();
  return FieldError(
      field,
      absl::StrCat(referred.job.name(), " has another contract: ", absl::StrJoin(differing, ", ")),
      "a generation under the same contract");
}

using Seeds = google::protobuf::RepeatedField<uint64_t>;

// The seeds that a generation makes.
const Seeds& SeedsOf(const v1::GenerationSpec& generation) {
  return generation.seeds().empty() ? generation.contract().seeds() : generation.seeds();
}

// A generation whose media are compared: under `contract` and with all of `seeds`; waited for where
// it has not ended.
absl::Status AddCompared(const Api& api, const std::string& name, absl::string_view field,
                         const v1::GenerationContract& contract, const Seeds& seeds,
                         std::vector<store::Dependency>* waits_for) {
  PLUMBLINE_ASSIGN_OR_RETURN(const Referred referred,
                             FindJob(api, name, field, v1::JOB_KIND_GENERATION));
  PLUMBLINE_RETURN_IF_ERROR(CheckSameContract(referred, contract, field));
  const Seeds& has = SeedsOf(referred.job.spec().generation());
  for (const uint64_t seed : seeds) {
    if (std::find(has.begin(), has.end(), seed) != has.end()) continue;
    return FieldError(field, absl::StrCat(name, " has no seed ", seed),
                      "a generation of the same seeds");
  }
  if (!IsFinal(referred.job.state())) {
    waits_for->push_back(WaitFor(referred, store::Dependency::USE_INPUT));
  } else if (referred.job.state() != v1::JOB_STATE_SUCCEEDED) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(name, " did not run to its end")),
                      "DEPENDENCY_FAILED");
  }
  return absl::OkStatus();
}

absl::Status ResolveAgainst(const Api& api, NewJob* job) {
  const v1::GenerationSpec& generation = job->spec.generation();
  const std::string& name = generation.against();
  if (name.empty()) return absl::OkStatus();
  constexpr absl::string_view kField = "spec.generation.against";
  PLUMBLINE_ASSIGN_OR_RETURN(const Referred against,
                             FindJob(api, name, kField, v1::JOB_KIND_GENERATION));
  PLUMBLINE_RETURN_IF_ERROR(CheckSameContract(against, generation.contract(), kField));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<store::TaskRecord> tasks,
                             api.store->ReadTasks(against.number));
  std::map<uint64_t, int32_t> by_seed;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].spec().generation().seeds_size() == 1) {
      by_seed[tasks[i].spec().generation().seeds(0)] = static_cast<int32_t>(i);
    }
  }
  for (const uint64_t seed : SeedsOf(generation)) {
    const auto found = by_seed.find(seed);
    if (found == by_seed.end()) {
      return FieldError(kField, absl::StrCat(name, " has no seed ", seed),
                        "a generation of the same seeds");
    }
    const v1::Task& task = tasks[found->second].task();
    // A task that has ended may belong to a job that has not.
    if (!IsFinal(against.job.state())) {
      store::Dependency& dependency = job->seed_waits_for[seed];
      dependency = WaitFor(against, store::Dependency::USE_AGAINST);
      dependency.set_task(found->second);
      continue;
    }
    if (task.state() != v1::JOB_STATE_SUCCEEDED || task.run().empty()) {
      return WithReason(absl::FailedPreconditionError(
                            absl::StrCat(task.name(), ", seed ", seed, ", did not finish its run")),
                        "AGAINST_NOT_FINISHED");
    }
    job->against_runs[seed] = task.run();
  }
  return absl::OkStatus();
}

// A comparison comes after everything that it compares.
absl::Status ResolveComparison(const Api& api, NewJob* job) {
  v1::ComparisonSpec::GenerationPair& pair = *job->spec.mutable_comparison()->mutable_generations();
  constexpr absl::string_view kField = "spec.comparison.generations.";
  PLUMBLINE_ASSIGN_OR_RETURN(
      const Referred reference,
      FindJob(api, pair.b(), absl::StrCat(kField, "b"), v1::JOB_KIND_GENERATION));
  const v1::GenerationSpec& generation = reference.job.spec().generation();
  if (pair.seeds().empty()) *pair.mutable_seeds() = SeedsOf(generation);
  const auto add = [&](const std::string& name, absl::string_view field) {
    return AddCompared(api, name, absl::StrCat(kField, field), generation.contract(), pair.seeds(),
                       &job->waits_for);
  };
  PLUMBLINE_RETURN_IF_ERROR(add(pair.a(), "a"));
  PLUMBLINE_RETURN_IF_ERROR(add(pair.b(), "b"));
  for (int i = 0; i < pair.spread_size(); ++i) {
    PLUMBLINE_RETURN_IF_ERROR(add(pair.spread(i), absl::StrCat("spread[", i, "]")));
  }
  return pair.repeat().empty() ? absl::OkStatus() : add(pair.repeat(), "repeat");
}

// What the seeds of a generation are compared with besides `against`.
absl::Status ResolveSpread(const Api& api, NewJob* job) {
  const v1::GenerationSpec& generation = job->spec.generation();
  const auto add = [&](const std::string& name, absl::string_view field) {
    return AddCompared(api, name, absl::StrCat("spec.generation.", field), generation.contract(),
                       SeedsOf(generation), &job->quality_waits_for);
  };
  for (int i = 0; i < generation.spread_size(); ++i) {
    PLUMBLINE_RETURN_IF_ERROR(add(generation.spread(i), absl::StrCat("spread[", i, "]")));
  }
  return generation.repeat().empty() ? absl::OkStatus() : add(generation.repeat(), "repeat");
}

// Puts what a run was made from into `generation`, and its checkpoint where the job names none.
absl::Status ResolveRun(const Api& api, const std::string& name, absl::string_view field,
                        v1::GenerationSpec* generation, NewJob* job) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string id, ParseRunName(name, field));
  absl::StatusOr<v1::Run> run = api.steps->GetRun(id);
  if (absl::IsNotFound(run.status())) {
    return FieldError(field, run.status().message(), "a run that is stored");
  }
  if (!run.ok()) return run.status();
  if (run->decodes()) {
    return FieldError(field, absl::StrCat(name, " is what latents were decoded to"),
                      "the run of a generation");
  }
  *generation = std::move(*run->mutable_generation());
  if (job->spec.checkpoint().empty()) job->spec.set_checkpoint(run->checkpoint());
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveReferences(const Api& api, NewJob* job) {
  if (job->spec.comparison().has_generations()) return ResolveComparison(api, job);
  if (job->spec.has_diagnostic()) {
    v1::DiagnosticSpec* const diagnostic = job->spec.mutable_diagnostic();
    return ResolveRun(api, diagnostic->run(), "spec.diagnostic.run",
                      diagnostic->mutable_generation(), job);
  }
  if (job->spec.has_decode()) {
    v1::DecodeSpec* const decode = job->spec.mutable_decode();
    if (!decode->has_run()) return absl::OkStatus();
    return ResolveRun(api, decode->run(), "spec.decode.run", decode->mutable_generation(), job);
  }
  if (!job->spec.has_generation()) return absl::OkStatus();
  PLUMBLINE_RETURN_IF_ERROR(ResolveGate(api, job));
  PLUMBLINE_RETURN_IF_ERROR(ResolveAgainst(api, job));
  return ResolveSpread(api, job);
}

}  // namespace plumbline::server
