#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_SETUP_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_SETUP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/vocabulary.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "proto/plumbline/v1/identity.pb.h"
#include "worker/h3/composition.h"
#include "worker/h3/conditioning.h"
#include "worker/h3/decoders/weights.h"
#include "worker/h3/generation_contract.h"
#include "worker/h3/graph.h"
#include "worker/h3/layout.h"
#include "worker/h3/noise.h"
#include "worker/h3/sampler.h"
#include "worker/h3/weight_source.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Where the files of a specification lie on this machine; empty: not given.
struct GenerationFiles {
  std::string conditioning;
  std::string noise;
};

// One seed of a generation, understood: what runs, on what, and who it is. Its parts point into one
// another, so it stays where it was made.
class GenerationSetup {
 public:
  struct Request {
    const v1::GenerationSpec& spec;
    std::string composition;  // Empty: candidate.
    std::string inject;       // A negative control, or empty.
    bool save_tensors;
    uint64_t seed;
    // Whether the identities are wanted: at the released size they take minutes.
    bool identify = true;
    // Of the transformer and the decoders; empty: the latents are not decoded.
    std::string checkpoint = {};
  };

  // `weights` and `environment` must outlive it. INVALID_ARGUMENT names the field of whatever is
  // wrong with contract, files, composition or fault.
  static absl::StatusOr<std::unique_ptr<GenerationSetup>> Make(const Request& request,
                                                               const GenerationFiles& files,
                                                               const h3::WeightSource& weights,
                                                               const JobEnvironment& environment);
  GenerationSetup(const GenerationSetup&) = delete;
  GenerationSetup& operator=(const GenerationSetup&) = delete;

  // OK if this seed may be generated: a composition that candidates are held to, a control, a
  // preflight, or a gate under this very numerical identity. FAILED_PRECONDITION, reason NO_GATE or
  // IDENTITY_DIFFERS, says what is missing or which parts differ.
  absl::Status CheckAuthorised() const;

  // A fresh source of the run's noise.
  absl::StatusOr<std::unique_ptr<h3::NoiseSource>> OpenNoise() const;

  // "runs/{run}".
  std::string RunName() const;
  int32_t Steps() const { return static_cast<int32_t>(sampler->Steps()); }
  bool preflight() const { return spec.preflight(); }

  const h3::WeightSource& weights;
  const JobEnvironment& environment;
  const GenerationFiles files;
  const v1::GenerationSpec spec;
  const bool save_tensors;
  const uint64_t seed;

  h3::GenerationContract contract;
  h3::Conditioning conditioning;
  h3::LayoutSpec layout;
  std::optional<h3::Sampler> sampler;
  h3::Graph graph;
  h3::Composition composition;
  h3::ResolvedComposition resolved;
  const FaultInfo* fault = nullptr;
  // What decodes the latents; none where they are not to be decoded, or cannot be: then
  // `not_decodable` says why.
  std::optional<h3::DecoderWeights> decoders;
  std::string not_decodable;

  v1::NumericalIdentity numerical_identity;
  v1::RunIdentity run_identity;

 private:
  GenerationSetup(const Request& request, const GenerationFiles& files,
                  const h3::WeightSource& weights, const JobEnvironment& environment)
      : weights(weights),
        environment(environment),
        files(files),
        spec(request.spec),
        save_tensors(request.save_tensors),
        seed(request.seed) {}

  absl::Status ReadContract();
  absl::Status ReadFiles();
  absl::Status Resolve(const Request& request);
  absl::Status OpenDecoders(const Request& request);
  absl::Status Identify();
};

// The seed of a task: the one that its specification names, or the contract's only one.
// INVALID_ARGUMENT for several, and for one that the contract does not have.
absl::StatusOr<uint64_t> SeedOfTask(const v1::GenerationSpec& spec);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_SETUP_H_
