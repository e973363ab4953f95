// What differs from a manifest, and which known fault it is.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "worker/checkpoint/manifest.h"

namespace plumbline::checkpoint {
namespace {

using v1::CheckpointFinding;

constexpr std::array<absl::string_view, 3> kProjections = {"attn.to_q.weight", "attn.to_k.weight",
                                                           "attn.to_v.weight"};
constexpr absl::string_view kGateUp = "ff.net.0.proj.weight";
// Norms that differ by less say that a few values are wrong, not that these are other weights.
constexpr double kOtherWeights = 0.01;

using TensorsByName = std::map<absl::string_view, const ScannedTensor*>;

class Judge {
 public:
  Judge(const Manifest& manifest, Scan* scan) : manifest_(manifest), scan_(scan) {
    for (const ScannedTensor& tensor : scan->tensors) found_[tensor.name] = &tensor;
    for (const CheckpointFinding& finding : scan->findings) {
      if (!finding.tensor().empty()) named_.insert(finding.tensor());
      if (!finding.file().empty() && finding.tensor().empty()) files_named_.insert(finding.file());
    }
  }

  void Run() {
    if (manifest_.layout == scan_->layout) JudgeFiles();
    for (const auto& [name, expected] : manifest_.tensors) JudgeTensor(name, expected);
    for (const ScannedTensor& tensor : scan_->tensors) {
      if (manifest_.tensors.count(tensor.name) > 0 || named_.contains(tensor.name)) continue;
      Add(CheckpointFinding::KIND_EXTRA_TENSOR, tensor.file, tensor.name,
          "the manifest has no such tensor");
    }
  }

 private:
  void Add(CheckpointFinding::Kind kind, std::string file, std::string tensor,
           std::string message) {
    scan_->findings.push_back(
        Finding(kind, std::move(file), std::move(tensor), std::move(message)));
  }

  void JudgeFiles() {
    absl::flat_hash_set<std::string> there;
    for (v1::CheckpointReport::File& file : scan_->files) {
      there.insert(file.path());
      const auto expected = manifest_.files.find(file.path());
      if (expected == manifest_.files.end()) continue;
      file.set_expected_sha256(expected->second.sha256);
      if (files_named_.contains(file.path()) || file.sha256() == expected->second.sha256) continue;
      if (file.size_bytes() < expected->second.size_bytes) {
        Add(CheckpointFinding::KIND_TRUNCATED_FILE, file.path(), "",
            absl::StrCat("has ", file.size_bytes(), " bytes; the manifest has ",
                         expected->second.size_bytes));
      } else {
        Add(CheckpointFinding::KIND_DIGEST_MISMATCH, file.path(), "",
            absl::StrCat("SHA-256 ", file.sha256(), "; the manifest has ",
                         expected->second.sha256));
      }
    }
    for (const auto& [path, file] : manifest_.files) {
      if (there.contains(path) || files_named_.contains(path)) continue;
      Add(CheckpointFinding::KIND_MISSING_FILE, path, "", "is in the manifest and not there");
    }
  }

  void JudgeTensor(const std::string& name, const Manifest::Tensor& expected) {
    const auto tensor = found_.find(name);
    if (tensor == found_.end()) {
      // With its file, or as the configuration had it already.
      const bool known = named_.contains(name) || !files_named_.empty();
      if (!known) Add(CheckpointFinding::KIND_MISSING_TENSOR, "", name, "is in the manifest alone");
      return;
    }
    const ScannedTensor& found = *tensor->second;
    if (found.figures.sha256 == expected.sha256) return;
    if (DTypeName(found.dtype) != expected.dtype || found.shape != expected.shape) {
      if (named_.contains(name)) return;
      const bool same_shape = found.shape == expected.shape;
      Add(same_shape ? CheckpointFinding::KIND_WRONG_TYPE : CheckpointFinding::KIND_WRONG_SHAPE,
          found.file, name,
          absl::StrCat("is ", DTypeName(found.dtype), " (", absl::StrJoin(found.shape, ", "),
                       "); the manifest has ", expected.dtype, " (",
                       absl::StrJoin(expected.shape, ", "), ")"));
      return;
    }
    if (IsRearrangedQkv(found) || IsRearrangedFeedForward(found, expected)) return;
    const double scale = std::max(std::abs(expected.norm), std::abs(found.figures.norm));
    const double difference = std::abs(found.figures.norm - expected.norm);
    const bool other = manifest_.layout != scan_->layout && difference > kOtherWeights * scale;
    Add(other ? CheckpointFinding::KIND_NORM_MISMATCH : CheckpointFinding::KIND_DIGEST_MISMATCH,
        found.file, name,
        absl::StrFormat("other values: norm %.9g, the manifest has %.9g; SHA-256 %s, the manifest "
                        "has %s",
                        found.figures.norm, expected.norm, found.figures.sha256, expected.sha256));
  }

  // The rows of a block's Q, K and V are all there, but not where they belong.
  bool IsRearrangedQkv(const ScannedTensor& found) {
    for (absl::string_view projection : kProjections) {
      absl::string_view block = found.name;
      if (!absl::ConsumeSuffix(&block, projection)) continue;
      uint64_t rows = 0, expected_rows = 0;
      std::vector<double> parts, expected_parts;
      for (absl::string_view each : kProjections) {
        const std::string name = absl::StrCat(block, each);
        const auto tensor = found_.find(name);
        const auto expected = manifest_.tensors.find(name);
        if (tensor == found_.end() || expected == manifest_.tensors.end()) return false;
        const Figures& figures = tensor->second->figures;
        rows += figures.row_sum;
        expected_rows += expected->second.row_sum;
        parts.insert(parts.end(), figures.part_norms.begin(), figures.part_norms.end());
        expected_parts.insert(expected_parts.end(), expected->second.part_norms.begin(),
                              expected->second.part_norms.end());
      }
      if (rows != expected_rows) return false;
      Add(CheckpointFinding::KIND_QKV_ORDER, found.file, found.name,
          parts == Interleaved(expected_parts)
              ? "rows of Q, K and V are still interleaved head by head, as the native layout "
                "stores them"
              : "rows of Q, K and V are all there, but permuted");
      return true;
    }
    return false;
  }

  // Heads q0 q1 .. k0 k1 .. v0 v1 .. as thirds of [q0 k0 v0 q1 k1 v1 ..] have them.
  static std::vector<double> Interleaved(const std::vector<double>& parts) {
    const size_t heads = parts.size() / 3;
    std::vector<double> interleaved;
    for (size_t i = 0; i < parts.size(); ++i) interleaved.push_back(parts[i % 3 * heads + i / 3]);
    return interleaved;
  }

  bool IsRearrangedFeedForward(const ScannedTensor& found, const Manifest::Tensor& expected) {
    if (!absl::EndsWith(found.name, kGateUp)) return false;
    if (found.figures.row_sum != expected.row_sum) return false;
    const std::vector<double> swapped(expected.part_norms.rbegin(), expected.part_norms.rend());
    Add(CheckpointFinding::KIND_FFN_ORDER, found.file, found.name,
        found.figures.part_norms == swapped
            ? "its halves are swapped: gate, then value, as the native layout stores them"
            : "its rows are all there, but permuted");
    return true;
  }

  const Manifest& manifest_;
  Scan* const scan_;
  TensorsByName found_;
  absl::flat_hash_set<std::string> named_;        // Tensors that have a finding by themselves,
  absl::flat_hash_set<std::string> files_named_;  // and files.
};

}  // namespace

void JudgeByManifest(const Manifest& manifest, Scan* scan) { Judge(manifest, scan).Run(); }

}  // namespace plumbline::checkpoint
