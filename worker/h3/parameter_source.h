#ifndef PLUMBLINE_WORKER_H3_PARAMETER_SOURCE_H_
#define PLUMBLINE_WORKER_H3_PARAMETER_SOURCE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/sha256.h"
#include "kernels/device.h"
#include "worker/h3/host_tensor.h"
#include "worker/h3/parameters.h"

namespace plumbline::h3 {

// A weight as ParameterView() sees it: a matrix (outputs, inputs), a vector as one row.
using WeightView = HostTensor;

// The parameters of one model of a checkpoint: its transformer, or one of its decoders. Immutable
// but for what it caches: any thread may call.
class ParameterSource {
 public:
  virtual ~ParameterSource() = default;
  ParameterSource(const ParameterSource&) = delete;
  ParameterSource& operator=(const ParameterSource&) = delete;

  // Every parameter, in the model's order.
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  // Null if the model has no such parameter.
  const ParameterSpec* Find(absl::string_view name) const;

  // One parameter's values. A file's are mapped, not read; synthetic ones are made at each call, so
  // whoever needs them twice keeps the view. NOT_FOUND for a name that the model does not have.
  virtual absl::StatusOr<WeightView> Get(absl::string_view name) const = 0;

  // Whether `device` can make a parameter's values in its own memory, faster than they are copied.
  virtual bool IsMadeOnDevice(absl::string_view name, const Device& device) const { return false; }
  // Where it can: enqueues that, into `to`, dense and of the parameter's type and shape.
  virtual absl::Status MakeOnDevice(absl::string_view name, Device& device,
                                    const Tensor& to) const {
    return absl::UnimplementedError("these weights are not made on a device");
  }

  // What was found, for people: "released layout, 14 shards", "synthetic, seed 1". Never a path.
  virtual std::string Description() const = 0;

  // Tells checkpoints apart at the least price: equal identities mean equal weights, but equal
  // weights may have two identities. A file's is "sha256:DIGEST" with Digest(), which reads every
  // byte; a synthetic one's is "synthetic:SHA-256 of the canonical configuration:SEED" and costs
  // nothing.
  virtual absl::StatusOr<std::string> Identity() const = 0;

  // The digest of the weights themselves, equal for files and synthetic weights of equal bytes:
  // 64 hexadecimal digits of the SHA-256 of these lines, each ended by "\n":
  //   plumbline-MODEL-weights-1   MODEL e.g. "transformer"
  //   the canonical configuration
  //   NAME DTYPE SHAPE SHA256   for each parameter sorted by name, e.g. "proj_in.bias F32 128 ab.."
  // SHAPE is joined by "x", SHA256 is that of the little-endian row-major bytes. Computed at the
  // first call, by as many threads as there are processors, each a tensor at a time in small
  // memory, then kept; concurrent calls wait for it. The released size takes about a hundred
  // processor-seconds.
  absl::StatusOr<std::string> Digest() const;

 protected:
  ParameterSource(std::string model, std::string canonical_config,
                  std::vector<ParameterSpec> parameters);

  // Adds the bytes of a parameter to `hash`, without holding them all where they have to be made.
  // Several threads may call.
  virtual absl::Status Hash(const ParameterSpec& parameter, Sha256* hash) const = 0;

 private:
  absl::StatusOr<std::string> ComputeDigest() const;

  const std::string model_;
  const std::string canonical_config_;
  const std::vector<ParameterSpec> parameters_;
  absl::flat_hash_map<std::string, size_t> index_by_name_;  // Into parameters_.

  mutable absl::Mutex digest_mutex_;
  mutable std::string digest_ ABSL_GUARDED_BY(digest_mutex_);  // Empty until computed.
};

// ParameterSource::Digest() from the SHA-256 of each parameter's bytes, hex, as `sha256_of` gives
// it.
std::string DigestOfParameters(absl::string_view model, absl::string_view canonical_config,
                               const std::vector<ParameterSpec>& parameters,
                               const std::function<std::string(const ParameterSpec&)>& sha256_of);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_PARAMETER_SOURCE_H_
