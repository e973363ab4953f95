#ifndef PLUMBLINE_WORKER_H3_NUMERICAL_IDENTITY_H_
#define PLUMBLINE_WORKER_H3_NUMERICAL_IDENTITY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/identity/kernel_identity.h"

namespace plumbline::h3 {

// What an execution's numbers depend on, from those who know each of it.
struct NumericalFacts {
  // The composition as resolved: which implementation every node runs, in canonical form.
  std::string composition;
  // Of each plug-in in the composition, by its name: SHA-256 of the shared object, and the identity
  // that it declares.
  std::map<std::string, std::string> plugins;
  // Versions of the run-time libraries that the composition uses, by name, e.g. "openblas" ->
  // "0.3.21 Haswell, 2 threads".
  std::map<std::string, std::string> libraries;
  // The architecture; where provider nodes run, product and multiprocessor count too.
  std::string device_class;
  // WeightSource::Digest, or WeightSource::Identity where that is dear.
  std::string checkpoint;
};

// Named parts and one digest over them. Equal digests mean that equal inputs give equal bytes.
struct NumericalIdentity {
  // "kernel", "composition", "plugin.NAME", "library.NAME", "device_class", "checkpoint".
  std::map<std::string, std::string> parts;
  // SHA-256, 64 hexadecimal digits, of CanonicalIdentityJson(parts).
  std::string sha256;
};

// INVALID_ARGUMENT names a part that is empty: one that nobody filled in would make executions
// equal that are not; and a part that is not valid UTF-8.
absl::StatusOr<NumericalIdentity> MakeNumericalIdentity(const KernelIdentity& kernel,
                                                        const NumericalFacts& facts);

// Parts as one JSON object of strings: names sorted by bytes, no white space, only '"', '\' and
// control characters escaped.
std::string CanonicalIdentityJson(const std::map<std::string, std::string>& parts);

// Names, sorted, of the parts that only one of the two has or that differ.
std::vector<std::string> DifferingParts(const std::map<std::string, std::string>& a,
                                        const std::map<std::string, std::string>& b);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_NUMERICAL_IDENTITY_H_
