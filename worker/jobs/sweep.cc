#include "worker/jobs/sweep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/drift/block_entries.h"
#include "worker/drift/compare.h"
#include "worker/drift/gates.h"
#include "worker/drift/tensor_store.h"
#include "worker/h3/composition.h"
#include "worker/h3/transformer_graph.h"
#include "worker/jobs/identity.h"
#include "worker/jobs/replay_execution.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {
namespace {

constexpr char kGolden[] = "golden";
constexpr char kProvider[] = "provider/default";
constexpr char kCandidate[] = "candidate";
constexpr uint64_t kDefaultSeeds = 10;

// A composition with its name in reports.
struct SweptSide {
  std::string name;
  h3::ResolvedComposition composition;
};

// Hands the leaves of an execution on, by the index of their entry.
class LeafSink : public h3::TapSink {
 public:
  using OnLeaf = std::function<absl::Status(size_t entry, const Tensor& tensor)>;

  LeafSink(const drift::BlockEntries& entries, OnLeaf on_leaf)
      : entries_(entries), on_leaf_(std::move(on_leaf)) {}

  bool Wants(absl::string_view name, h3::TapKind kind) const override {
    const int index = entries_.IndexOf(name);
    return index >= 0 && entries_[index].kind == v1::ENTRY_KIND_LEAF;
  }
  absl::Status OnTensor(const h3::Tap& tap) override {
    return on_leaf_(static_cast<size_t>(entries_.IndexOf(tap.name)), tap.tensor);
  }

 private:
  const drift::BlockEntries& entries_;
  const OnLeaf on_leaf_;
};

// A percentile of sorted values, interpolated linearly between the two nearest ranks.
double Percentile(const std::vector<double>& sorted, double percent) {
  const double rank = percent / 100 * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(std::floor(rank));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

class Sweep {
 public:
  Sweep(const h3::WeightSource& weights, const JobEnvironment& environment)
      : weights_(weights),
        environment_(environment),
        device_(*environment.context.device),
        threads_(device_.Context().threads != nullptr ? *device_.Context().threads : own_threads_),
        device_weights_(&weights, &device_) {}

  absl::StatusOr<JobResult> Run(const v1::JobSpec& spec) {
    PLUMBLINE_RETURN_IF_ERROR(Prepare(spec));
    for (uint64_t seed : seeds_) PLUMBLINE_RETURN_IF_ERROR(RunSeed(seed));
    return Finish();
  }

 private:
  absl::Status Prepare(const v1::JobSpec& spec) {
    const v1::SweepSpec& sweep = spec.sweep();
    const int64_t blocks = weights_.config().num_layers;
    if (sweep.block() < 0 || sweep.block() >= blocks) {
      return FieldError("sweep.block", absl::StrCat("there is no block ", sweep.block()),
                        absl::StrCat("0 to ", blocks - 1));
    }
    if (sweep.layouts_size() > 1) {
      return FieldError("sweep.layouts",
                        absl::StrCat("one task sweeps one layout, not ", sweep.layouts_size()),
                        "one layout");
    }
    seeds_.assign(sweep.seeds().begin(), sweep.seeds().end());
    for (uint64_t seed = 0; sweep.seeds().empty() && seed < kDefaultSeeds; ++seed) {
      seeds_.push_back(seed);
    }
    PLUMBLINE_ASSIGN_OR_RETURN(layout_, ChooseLayout(sweep.layouts(), "sweep.layouts", nullptr));
    graph_ = h3::BuildBlockGraph(weights_.config(), sweep.block());
    entries_ = std::make_unique<drift::BlockEntries>(weights_.config(), graph_, sweep.block(),
                                                     RowsOf(layout_.packed), /*backward=*/true);
    provider_errors_.resize(entries_->size());
    return ResolveSides(spec);
  }

  absl::Status ResolveSides(const v1::JobSpec& spec) {
    const std::string text = spec.composition().empty() ? kCandidate : spec.composition();
    PLUMBLINE_ASSIGN_OR_RETURN(candidate_, h3::ParseComposition(text));
    PLUMBLINE_ASSIGN_OR_RETURN(golden_side_, Resolve(kGolden));
    PLUMBLINE_ASSIGN_OR_RETURN(provider_side_, Resolve(kProvider));
    std::vector<std::string> names = {candidate_.ToString()};
    PLUMBLINE_ASSIGN_OR_RETURN(const SweptSide candidate, Resolve(candidate_.ToString()));
    if (spec.sweep().swap_each_node()) {
      for (const h3::Node& node : graph_.nodes()) {
        // Every other node, then this node alone, is what the composition gives it.
        const OperationRegistration* const own =
            candidate.composition.nodes[&node - graph_.nodes().data()];
        names.push_back(absl::StrCat(candidate_.ToString(), "+", kProvider, ":", node.role));
        names.push_back(absl::StrCat(kProvider, "+", own->implementation, ":", node.role));
      }
    }
    for (const std::string& name : names) {
      PLUMBLINE_ASSIGN_OR_RETURN(SweptSide side, Resolve(name));
      sides_.push_back(std::move(side));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SweptSide> Resolve(const std::string& name) const {
    PLUMBLINE_ASSIGN_OR_RETURN(const h3::Composition composition, h3::ParseComposition(name));
    SweptSide side{name, {}};
    PLUMBLINE_ASSIGN_OR_RETURN(
        side.composition, h3::ResolveComposition(composition, graph_,
                                                 *environment_.context.registry, device_.kind()));
    return side;
  }

  absl::Status RunSeed(uint64_t seed) {
    PLUMBLINE_ASSIGN_OR_RETURN(const h3::BlockInputs values,
                               h3::StandInBlockInputs(weights_.config(), layout_.packed, seed));
    PLUMBLINE_ASSIGN_OR_RETURN(const DeviceInputs inputs,
                               DeviceInputs::Make(device_, values, nullptr, /*backward=*/true));
    drift::TensorStore golden(&device_);
    PLUMBLINE_RETURN_IF_ERROR(Execute(golden_side_, inputs, [&](size_t entry, const Tensor& leaf) {
      return golden.Put((*entries_)[entry].tensor_name, leaf);
    }));
    PLUMBLINE_RETURN_IF_ERROR(
        Execute(provider_side_, inputs, [&](size_t entry, const Tensor& leaf) -> absl::Status {
          PLUMBLINE_ASSIGN_OR_RETURN(provider_errors_[entry],
                                     Compare(entry, golden, kProvider, leaf));
          return absl::OkStatus();
        }));
    for (const SweptSide& side : sides_) {
      PLUMBLINE_RETURN_IF_ERROR(
          Execute(side, inputs, [&](size_t entry, const Tensor& leaf) -> absl::Status {
            PLUMBLINE_ASSIGN_OR_RETURN(v1::TensorComparison error,
                                       Compare(entry, golden, side.name, leaf));
            AddSample(seed, side.name, entry, std::move(error));
            return absl::OkStatus();
          }));
    }
    return absl::OkStatus();
  }

  absl::Status Execute(const SweptSide& side, const DeviceInputs& inputs,
                       LeafSink::OnLeaf on_leaf) {
    PLUMBLINE_RETURN_IF_ERROR(environment_.context.check_cancelled());
    v1::Progress progress;
    progress.set_done(executions_++);
    progress.set_total(static_cast<int64_t>(seeds_.size() * (sides_.size() + 2)));
    progress.set_unit("executions");
    progress.set_activity(absl::StrCat(layout_.label, ": ", side.name));
    environment_.context.on_progress(progress);

    const ReplayModel model{graph_, graph_.values()[graph_.outputs().front()].name,
                            RowsOf(layout_.packed), *environment_.context.registry, device_};
    LeafSink sink(*entries_, std::move(on_leaf));
    const ReplaySide replay{&side.composition, &device_weights_, &inputs, {}};
    PLUMBLINE_ASSIGN_OR_RETURN(std::unique_ptr<h3::Executor> executor,
                               MakeExecution(model, replay, {/*backward=*/true}, &sink));
    return executor->Run();
  }

  absl::StatusOr<v1::TensorComparison> Compare(size_t entry, const drift::TensorStore& golden,
                                               absl::string_view name, const Tensor& leaf) {
    const drift::BlockEntry& about = (*entries_)[entry];
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor stored, golden.Find(about.tensor_name));
    return drift::CompareOnDevice(device_, kGolden, {stored, about.shape, ""}, name,
                                  {leaf, about.shape, ""}, drift::NameOtherRow, threads_);
  }

  // Judged by block replay's own gate.
  void AddSample(uint64_t seed, const std::string& composition, size_t entry,
                 v1::TensorComparison error) {
    const v1::TensorComparison& provider = provider_errors_[entry];
    v1::EntryReport judged;
    judged.set_kind(v1::ENTRY_KIND_LEAF);
    *judged.mutable_chained_error() = error;
    *judged.mutable_provider_error() = provider;
    drift::JudgeEntry((*entries_)[entry], drift::CandidateKind::kCaptured, /*executed=*/true,
                      &judged);
    v1::SweepReport::Sample& sample = *report_.add_samples();
    sample.set_seed(seed);
    sample.set_composition(composition);
    sample.set_leaf((*entries_)[entry].name);
    sample.set_max_u(error.max_u());
    sample.set_provider_max_u(provider.max_u());
    sample.set_relative_l2(error.relative_l2());
    sample.set_provider_relative_l2(provider.relative_l2());
    for (const v1::GateResult& gate : judged.gates()) {
      if (gate.gate() == "leaf_error") sample.set_passed(gate.passed());
    }
  }

  // By composition, leaf, seed, as requested; and what they come to over the seeds.
  void SummariseSamples() {
    std::map<std::string, size_t> order;
    for (const SweptSide& side : sides_) order.emplace(side.name, order.size());
    auto& samples = *report_.mutable_samples();
    std::stable_sort(samples.begin(), samples.end(), [&](const auto& a, const auto& b) {
      const size_t of_a = order.at(a.composition());
      const size_t of_b = order.at(b.composition());
      return of_a != of_b ? of_a < of_b : a.leaf() < b.leaf();
    });
    for (auto begin = samples.begin(); begin != samples.end();) {
      const auto end = std::find_if(begin, samples.end(), [&](const auto& sample) {
        return sample.composition() != begin->composition() || sample.leaf() != begin->leaf();
      });
      std::vector<double> excess;
      v1::SweepReport::Distribution& distribution = *report_.add_distributions();
      distribution.set_composition(begin->composition());
      distribution.set_leaf(begin->leaf());
      for (; begin != end; ++begin) {
        excess.push_back(begin->max_u() - begin->provider_max_u());
        if (!begin->passed()) distribution.set_failed(distribution.failed() + 1);
      }
      std::sort(excess.begin(), excess.end());
      distribution.set_min(excess.front());
      distribution.set_p50(Percentile(excess, 50));
      distribution.set_p90(Percentile(excess, 90));
      distribution.set_max(excess.back());
      distribution.set_samples(static_cast<int32_t>(excess.size()));
    }
  }

  absl::StatusOr<JobResult> Finish() {
    SummariseSamples();
    *report_.mutable_layout() = layout_.layout;
    int64_t samples = 0, failed = 0;
    for (const v1::SweepReport::Distribution& distribution : report_.distributions()) {
      if (distribution.composition() != candidate_.ToString()) continue;
      samples += distribution.samples();
      failed += distribution.failed();
    }
    JobResult result;
    v1::TaskReport& task = result.report;
    task.set_composition(candidate_.ToString());
    task.set_hybrid(candidate_.IsHybrid());
    task.mutable_verdict()->set_outcome(v1::OUTCOME_NOT_JUDGED);
    task.mutable_verdict()->set_sentence(absl::StrCat(
        "NOT JUDGED: ", layout_.label, ": ", samples - failed, " of ", samples, " leaf errors of ",
        candidate_.ToString(), " are within block replay's gate, over ", seeds_.size(), " seeds."));
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string checkpoint, weights_.Identity());
    PLUMBLINE_ASSIGN_OR_RETURN(*task.mutable_identity(),
                               IdentityOf(candidate_.ToString(), checkpoint, environment_));
    for (const char* side : {kGolden, kProvider}) {
      PLUMBLINE_ASSIGN_OR_RETURN((*task.mutable_reference_identities())[side],
                                 IdentityOf(side, checkpoint, environment_));
    }
    *task.mutable_sweep() = std::move(report_);
    return result;
  }

  const h3::WeightSource& weights_;
  const JobEnvironment& environment_;
  Device& device_;
  // For comparisons where the device has none.
  ThreadPool own_threads_{drift::ComparisonThreads(device_)};
  ThreadPool& threads_;
  h3::DeviceWeights device_weights_;

  std::vector<uint64_t> seeds_;
  RunLayout layout_;
  h3::Graph graph_;
  std::unique_ptr<drift::BlockEntries> entries_;
  h3::Composition candidate_;
  SweptSide golden_side_, provider_side_;
  std::vector<SweptSide> sides_;
  std::vector<v1::TensorComparison> provider_errors_;  // of the running seed, by entry
  int64_t executions_ = 0;
  v1::SweepReport report_;
};

}  // namespace

absl::StatusOr<JobResult> RunSweep(const v1::JobSpec& spec, const h3::WeightSource& weights,
                                   const JobEnvironment& environment) {
  return Sweep(weights, environment).Run(spec);
}

}  // namespace plumbline::jobs
