#include "worker/checkpoint/scan.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/checkpoint/component.h"

namespace plumbline::checkpoint {
namespace {

using v1::CheckpointFinding;

constexpr size_t kMaxTextFileBytes = 64 << 20;
// A native feed-forward weight keeps half of itself while it is read.
constexpr int kMaxThreads = 4;
constexpr int kMaxNativeThreads = 2;
constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);
constexpr absl::string_view kDecoders[] = {"vae", "audio_vae"};

struct Component {
  h3::ComponentFiles files;
  TensorPlan plan;
  std::vector<Shard> shards;
};

// Reads all shards on some threads while this one tells how far they are.
class Reading {
 public:
  explicit Reading(std::vector<Component>* components) {
    for (Component& component : *components) {
      for (Shard& shard : component.shards) {
        if (!shard.contents.has_value()) continue;
        work_.push_back({&component.plan, &shard});
        total_bytes_ += shard.contents->size_bytes();
      }
    }
  }

  absl::Status Run(int threads, const ScanOptions& options) {
    std::vector<std::thread> readers;
    {
      absl::MutexLock lock(&mutex_);
      running_ = std::max(1, std::min<int>(threads, static_cast<int>(work_.size())));
    }
    const int count = std::max(1, std::min<int>(threads, static_cast<int>(work_.size())));
    for (int i = 0; i < count; ++i) {
      readers.emplace_back([this] { ReadSome(); });
    }
    absl::Status status;
    for (bool done = false; !done;) {
      {
        absl::MutexLock lock(&mutex_);
        const auto finished = [this]()
                                  ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_ == 0; };
        Clock* const clock = SteadyClock();
        done = clock->AwaitUntil(&mutex_, absl::Condition(&finished),
                                 clock->Now() + kProgressInterval);
      }
      options.on_progress(bytes_.load(), total_bytes_);
      if (status.ok()) status = options.check_cancelled();
      if (!status.ok()) cancelled_ = true;
    }
    for (std::thread& reader : readers) reader.join();
    return status;
  }

  int64_t bytes() const { return bytes_.load(); }

 private:
  struct Work {
    const TensorPlan* plan;
    Shard* shard;
  };

  void ReadSome() {
    for (size_t i = next_++; i < work_.size() && !cancelled_; i = next_++) {
      ReadShard(
          *work_[i].plan,
          [this](int64_t count) {
            bytes_ += count;
            return !cancelled_;
          },
          work_[i].shard);
    }
    absl::MutexLock lock(&mutex_);
    --running_;
  }

  std::vector<Work> work_;
  int64_t total_bytes_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<bool> cancelled_{false};
  absl::Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Hashes a configuration or an index, if it is there.
void AddTextFile(const h3::CheckpointFile& file, Scan* scan) {
  if (file.path.empty()) return;
  const absl::StatusOr<std::string> text = ReadFile(file.path, kMaxTextFileBytes);
  v1::CheckpointReport::File& report = scan->files.emplace_back();
  report.set_path(file.name);
  if (!text.ok()) {
    scan->findings.push_back(
        Finding(CheckpointFinding::KIND_CORRUPT_FILE, file.name, "", "cannot be read"));
    return;
  }
  report.set_size_bytes(static_cast<int64_t>(text->size()));
  report.set_sha256(Sha256Hex(*text));
  scan->bytes_read += static_cast<int64_t>(text->size());
}

TensorPlan PlanTransformer(const Component& component, Scan* scan) {
  TensorPlan plan;
  std::vector<std::string> names;
  for (const Shard& shard : component.shards) {
    if (!shard.HasHeader()) continue;
    for (const TensorInfo& tensor : shard.contents->header()->tensors) names.push_back(tensor.name);
  }
  plan.layout = h3::LayoutOfNames(names);
  scan->layout = plan.layout == h3::CheckpointLayout::kNative ? v1::CHECKPOINT_LAYOUT_NATIVE
                                                              : v1::CHECKPOINT_LAYOUT_DIFFUSERS;
  const absl::StatusOr<h3::TransformerConfig> config = h3::ReadTransformerConfig(component.files);
  if (!config.ok()) {
    const bool missing = component.files.config.path.empty();
    scan->findings.push_back(Finding(
        missing ? CheckpointFinding::KIND_MISSING_FILE : CheckpointFinding::KIND_CONFIGURATION,
        component.files.config.name, "",
        absl::StrReplaceAll(config.status().message(), {{component.files.config.path, ""}})));
    return plan;
  }
  plan.config = *config;
  plan.parameters = h3::TransformerParameters(*config);
  plan.stored = h3::StoredTensors(plan.layout, *config, plan.parameters);
  return plan;
}

// The digest of the whole, where all of it is as it should be.
std::string DigestOf(const Scan& scan) {
  if (!scan.config.has_value()) return "";
  absl::flat_hash_map<absl::string_view, const ScannedTensor*> by_name;
  for (const ScannedTensor& tensor : scan.tensors) by_name[tensor.name] = &tensor;
  bool whole = true;
  std::string digest = h3::DigestOfParameters(
      *scan.config, h3::TransformerParameters(*scan.config),
      [&](const h3::ParameterSpec& parameter) -> std::string {
        const auto found = by_name.find(parameter.name);
        if (found == by_name.end() || found->second->dtype != parameter.dtype ||
            found->second->shape != parameter.shape) {
          whole = false;
          return "";
        }
        return found->second->figures.sha256;
      });
  return whole ? digest : "";
}

void FindNonfinite(Scan* scan) {
  for (const ScannedTensor& tensor : scan->tensors) {
    if (tensor.figures.nonfinite == 0) continue;
    scan->findings.push_back(Finding(
        CheckpointFinding::KIND_NONFINITE, tensor.file, tensor.name,
        absl::StrCat(tensor.figures.nonfinite, " values are NaN or infinite, the first at index ",
                     tensor.figures.first_nonfinite)));
  }
}

}  // namespace

int64_t PartsOf(absl::string_view parameter, const h3::TransformerConfig& config) {
  for (absl::string_view projection :
       {"attn.to_q.weight", "attn.to_k.weight", "attn.to_v.weight"}) {
    if (absl::EndsWith(parameter, projection)) return config.num_attention_heads;
  }
  return absl::EndsWith(parameter, "ff.net.0.proj.weight") ? 2 : 1;
}

absl::StatusOr<Scan> ScanCheckpoint(const std::string& directory,
                                    const std::vector<std::string>& roots,
                                    const ScanOptions& options) {
  Scan scan;
  std::vector<Component> components(1);
  PLUMBLINE_ASSIGN_OR_RETURN(components[0].files, h3::FindTransformerFiles(directory, roots));
  for (absl::string_view decoder : kDecoders) {
    absl::StatusOr<h3::ComponentFiles> files = h3::FindComponentFiles(directory, decoder, roots);
    if (!files.ok()) continue;  // A transformer may stand alone; a manifest knows better.
    Component& component = components.emplace_back();
    component.files = *std::move(files);
    component.plan.prefix = absl::StrCat(decoder, ".");
  }
  for (Component& component : components) {
    AddTextFile(component.files.config, &scan);
    AddTextFile(component.files.index, &scan);
    component.shards = OpenShards(component.files.shards);
  }
  components[0].plan = PlanTransformer(components[0], &scan);
  scan.config = components[0].plan.config;

  Reading reading(&components);
  const bool native = components[0].plan.layout == h3::CheckpointLayout::kNative;
  PLUMBLINE_RETURN_IF_ERROR(
      reading.Run(std::min(options.threads, native ? kMaxNativeThreads : kMaxThreads), options));
  scan.bytes_read += reading.bytes();

  for (Component& component : components) {
    for (Shard& shard : component.shards) {
      scan.files.push_back(std::move(shard.report));
      scan.findings.insert(scan.findings.end(), shard.findings.begin(), shard.findings.end());
      std::move(shard.tensors.begin(), shard.tensors.end(), std::back_inserter(scan.tensors));
    }
    const std::vector<CheckpointFinding> names =
        CheckNames(component.shards, component.files.index, component.plan);
    scan.findings.insert(scan.findings.end(), names.begin(), names.end());
  }
  std::sort(scan.files.begin(), scan.files.end(),
            [](const auto& a, const auto& b) { return a.path() < b.path(); });
  std::sort(scan.tensors.begin(), scan.tensors.end(),
            [](const ScannedTensor& a, const ScannedTensor& b) { return a.name < b.name; });
  FindNonfinite(&scan);
  scan.sha256 = DigestOf(scan);
  return scan;
}

absl::StatusOr<Scan> ScanComputed(const h3::WeightSource& weights, const ScanOptions& options) {
  Scan scan;
  scan.layout = v1::CHECKPOINT_LAYOUT_SYNTHETIC;
  scan.config = weights.config();
  const int64_t total = h3::TotalParameterBytes(weights.parameters());
  int64_t done = 0;
  for (const h3::ParameterSpec& parameter : weights.parameters()) {
    PLUMBLINE_RETURN_IF_ERROR(options.check_cancelled());
    PLUMBLINE_ASSIGN_OR_RETURN(const h3::WeightView view, weights.Get(parameter.name));
    const int64_t rows = parameter.shape.size() < 2 ? 1 : parameter.shape[0];
    ParameterScan measured(parameter.dtype, rows, parameter.NumBytes() / rows,
                           PartsOf(parameter.name, weights.config()));
    measured.Add(0, view.Bytes());
    scan.tensors.push_back(
        {parameter.name, "", parameter.dtype, parameter.shape, measured.Finish()});
    done += parameter.NumBytes();
    options.on_progress(done, total);
  }
  std::sort(scan.tensors.begin(), scan.tensors.end(),
            [](const ScannedTensor& a, const ScannedTensor& b) { return a.name < b.name; });
  FindNonfinite(&scan);
  scan.sha256 = DigestOf(scan);
  return scan;
}

}  // namespace plumbline::checkpoint
