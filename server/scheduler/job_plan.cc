#include "server/scheduler/job_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/vocabulary.h"
#include "server/resource_name.h"

namespace plumbline::server {
namespace {

absl::string_view KeyframeName(int keyframe) {
  return keyframe == v1::KEYFRAME_FIRST ? "first" : "last";
}

// Values in a row of every node of a block together, and the block's parameters, for checkpoints
// whose configuration the coordinator knows.
struct BlockSize {
  int64_t values_per_row;
  int64_t parameters;
};

constexpr BlockSize SizeOfBlock(int64_t hidden, int64_t inner, int64_t ffn, int64_t temb) {
  // Six nodes are `hidden` wide, eight `inner`; the gate is two `ffn` wide and SwiGLU one.
  return {6 * hidden + 8 * inner + 3 * ffn,
          4 * hidden * inner + 3 * hidden * ffn + 18 * hidden * temb};
}

constexpr int64_t kReleasedHidden = 5376;
constexpr int64_t kReleasedBlocks = 50;
constexpr BlockSize kReleasedBlock = SizeOfBlock(kReleasedHidden, 7168, 14336, 2688);

// A generation of so few frames has too few latents to be decoded.
constexpr int32_t kMostFramesWithoutClip = 5;

bool IsReleased(absl::string_view checkpoint) {
  return checkpoint == "synthetic:released" || absl::StartsWith(checkpoint, "synthetic:released:");
}

// The least that replaying a block can do with: the golden's values in float32 and the weights in
// bfloat16. A worker that needs more than it has hands the task back and says how much; this spares
// the attempts that could not succeed. 0 where the configuration is the worker's to read.
int64_t LeastMemoryBytes(absl::string_view checkpoint, const v1::Layout& layout) {
  if (!IsReleased(checkpoint)) return 0;
  return LayoutRows(layout) * kReleasedBlock.values_per_row * 4 + kReleasedBlock.parameters * 2;
}

// Likewise of a full model with so many compositions beside golden: each has a block's values and
// the rows between all blocks; golden's are float32.
int64_t LeastFullModelBytes(absl::string_view checkpoint, const v1::Layout& layout,
                            int64_t compositions) {
  if (!IsReleased(checkpoint)) return 0;
  const int64_t values_per_row = kReleasedBlock.values_per_row + kReleasedBlocks * kReleasedHidden;
  return LayoutRows(layout) * values_per_row * (4 + 2 * compositions) +
         kReleasedBlock.parameters * 2;
}

// What the composition's plug-ins ask of a worker.
void AddPlugins(const v1::JobSpec& spec, v1::Placement* placement) {
  // What those that the job brings are called, only a worker can see.
  if (!spec.plugins().empty()) {
    placement->set_takes_uploaded_plugins(true);
    return;
  }
  for (absl::string_view part : absl::StrSplit(spec.composition(), '+')) {
    part = part.substr(0, part.find(':'));
    if (!absl::ConsumePrefix(&part, "plugin/")) continue;
    const auto& known = placement->plugins();
    if (std::find(known.begin(), known.end(), part) == known.end()) {
      placement->add_plugins(std::string(part));
    }
  }
}

store::TaskRecord NewTask(const v1::Job& job, int32_t index, std::string title, v1::JobSpec spec) {
  store::TaskRecord record;
  v1::Task& task = *record.mutable_task();
  task.set_name(TaskNameOf(job.name(), index));
  task.set_title(std::move(title));
  task.set_state(v1::JOB_STATE_QUEUED);
  *task.mutable_placement() = job.spec().placement();
  AddPlugins(spec, task.mutable_placement());
  *task.mutable_create_time() = job.create_time();
  task.set_kind(job.kind());
  *record.mutable_spec() = std::move(spec);
  return record;
}

using LayoutList = google::protobuf::RepeatedPtrField<v1::Layout>;

LayoutList* LayoutsOfBlockReplay(v1::JobSpec* spec) {
  return spec->mutable_block_replay()->mutable_layouts();
}
LayoutList* LayoutsOfFullModel(v1::JobSpec* spec) {
  return spec->mutable_full_model()->mutable_layouts();
}
LayoutList* LayoutsOfSweep(v1::JobSpec* spec) { return spec->mutable_sweep()->mutable_layouts(); }

int64_t LeastBytes(const v1::JobSpec& spec, const v1::Layout& layout) {
  if (spec.kind_case() != v1::JobSpec::kFullModel) {
    return LeastMemoryBytes(spec.checkpoint(), layout);
  }
  const v1::FullModelSpec& full_model = spec.full_model();
  const int64_t captured = full_model.captures().providers_size();
  const int64_t candidate =
      full_model.freeze_rule() || full_model.captures().has_candidate() ? 0 : 1;
  return LeastFullModelBytes(
      spec.checkpoint(), layout,
      std::max<int64_t>(0, full_model.providers_size() - captured) + candidate);
}

// A task for each of the layouts that `layouts_of` finds in a specification.
std::vector<store::TaskRecord> PlanLayouts(const v1::Job& job,
                                           LayoutList* (*layouts_of)(v1::JobSpec*)) {
  v1::JobSpec narrowed = job.spec();
  const LayoutList layouts = *layouts_of(&narrowed);
  // The captures say which.
  if (layouts.empty()) return {NewTask(job, 0, "captured layout", narrowed)};
  std::vector<store::TaskRecord> tasks;
  for (int i = 0; i < layouts.size(); ++i) {
    layouts_of(&narrowed)->Clear();
    *layouts_of(&narrowed)->Add() = layouts[i];
    store::TaskRecord task =
        NewTask(job, i, absl::StrCat("layout ", LayoutTitle(layouts[i])), narrowed);
    v1::Placement& placement = *task.mutable_task()->mutable_placement();
    placement.set_memory_bytes(
        std::max(placement.memory_bytes(), LeastBytes(narrowed, ResolveLayout(layouts[i]))));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

// A task for each seed that is asked for.
std::vector<store::TaskRecord> PlanSeeds(const v1::Job& job) {
  const v1::GenerationSpec& generation = job.spec().generation();
  const auto& seeds =
      generation.seeds().empty() ? generation.contract().seeds() : generation.seeds();
  std::vector<store::TaskRecord> tasks;
  for (int i = 0; i < seeds.size(); ++i) {
    v1::JobSpec narrowed = job.spec();
    narrowed.mutable_generation()->clear_seeds();
    narrowed.mutable_generation()->add_seeds(seeds[i]);
    tasks.push_back(NewTask(job, i, absl::StrCat("seed ", seeds[i]), std::move(narrowed)));
  }
  return tasks;
}

std::vector<store::TaskRecord> PlanDecode(const v1::Job& job) {
  const v1::DecodeSpec& decode = job.spec().decode();
  if (!decode.has_kept()) {
    return {NewTask(job, 0, decode.has_run() ? "latents of a run" : "latents", job.spec())};
  }
  store::TaskRecord task = NewTask(job, 0, "kept frames", job.spec());
  task.mutable_task()->mutable_placement()->set_media(true);
  return {std::move(task)};
}

// One task for files; one for each seed of generations.
std::vector<store::TaskRecord> PlanComparison(const v1::Job& job) {
  const v1::ComparisonSpec& comparison = job.spec().comparison();
  std::vector<store::TaskRecord> tasks;
  if (comparison.has_generations()) {
    for (const uint64_t seed : comparison.generations().seeds()) {
      v1::JobSpec narrowed = job.spec();
      narrowed.mutable_comparison()->mutable_generations()->clear_seeds();
      narrowed.mutable_comparison()->mutable_generations()->add_seeds(seed);
      tasks.push_back(NewTask(job, static_cast<int32_t>(tasks.size()), absl::StrCat("seed ", seed),
                              std::move(narrowed)));
    }
    return tasks;
  }
  tasks.push_back(NewTask(job, 0, comparison.has_media() ? "media" : "tensors", job.spec()));
  if (comparison.media().difference_video()) {
    tasks[0].mutable_task()->mutable_placement()->set_media(true);
  }
  return tasks;
}

}  // namespace

v1::JobKind KindOf(const v1::JobSpec& spec) {
  switch (spec.kind_case()) {
    case v1::JobSpec::kBlockReplay:
      return v1::JOB_KIND_BLOCK_REPLAY;
    case v1::JobSpec::kFullModel:
      return v1::JOB_KIND_FULL_MODEL;
    case v1::JobSpec::kGeneration:
      return v1::JOB_KIND_GENERATION;
    case v1::JobSpec::kComparison:
      return v1::JOB_KIND_COMPARISON;
    case v1::JobSpec::kDiagnostic:
      return v1::JOB_KIND_DIAGNOSTIC;
    case v1::JobSpec::kDecode:
      return v1::JOB_KIND_DECODE;
    case v1::JobSpec::kSweep:
      return v1::JOB_KIND_SWEEP;
    case v1::JobSpec::kCheckpointCheck:
      return v1::JOB_KIND_CHECKPOINT;
    case v1::JobSpec::kLayout:
      return v1::JOB_KIND_LAYOUT;
    case v1::JobSpec::kRule:
      return v1::JOB_KIND_RULE;
    case v1::JobSpec::kVerdict:
      return v1::JOB_KIND_VERDICT;
    case v1::JobSpec::kSelftest:
      return v1::JOB_KIND_SELFTEST;
    case v1::JobSpec::KIND_NOT_SET:
      break;
  }
  return v1::JOB_KIND_UNSPECIFIED;
}

absl::string_view KindName(v1::JobKind kind) {
  switch (kind) {
    case v1::JOB_KIND_BLOCK_REPLAY:
      return "block-replay";
    case v1::JOB_KIND_FULL_MODEL:
      return "full-model";
    case v1::JOB_KIND_GENERATION:
      return "generation";
    case v1::JOB_KIND_COMPARISON:
      return "comparison";
    case v1::JOB_KIND_DIAGNOSTIC:
      return "diagnostic";
    case v1::JOB_KIND_DECODE:
      return "decode";
    case v1::JOB_KIND_SWEEP:
      return "sweep";
    case v1::JOB_KIND_CHECKPOINT:
      return "checkpoint";
    case v1::JOB_KIND_LAYOUT:
      return "layout";
    case v1::JOB_KIND_RULE:
      return "rule";
    case v1::JOB_KIND_VERDICT:
      return "verdict";
    case v1::JOB_KIND_SELFTEST:
      return "selftest";
    default:
      return "unspecified";
  }
}

absl::Status CheckKind(const v1::JobSpec& spec) {
  const v1::JobKind kind = KindOf(spec);
  std::string unknown;
  switch (kind) {
    case v1::JOB_KIND_UNSPECIFIED:  // A bad request, which validation names.
    case v1::JOB_KIND_BLOCK_REPLAY:
    case v1::JOB_KIND_FULL_MODEL:
    case v1::JOB_KIND_CHECKPOINT:
    case v1::JOB_KIND_SELFTEST:
    case v1::JOB_KIND_LAYOUT:
    case v1::JOB_KIND_SWEEP:
    case v1::JOB_KIND_RULE:
    case v1::JOB_KIND_VERDICT:
    case v1::JOB_KIND_GENERATION:
    case v1::JOB_KIND_DIAGNOSTIC:
    case v1::JOB_KIND_DECODE:
      return absl::OkStatus();
    case v1::JOB_KIND_COMPARISON:
      if (spec.comparison().subject_case() != v1::ComparisonSpec::kRuns) return absl::OkStatus();
      unknown = "comparison jobs of `runs`";
      break;
    default:
      unknown = absl::StrCat(KindName(kind), " jobs");
  }
  return WithReason(
      absl::UnimplementedError(absl::StrCat("this server does not implement ", unknown)),
      "UNIMPLEMENTED");
}

std::string LayoutTitle(const v1::Layout& layout) {
  if (!layout.name().empty()) return layout.name();
  std::string text = absl::StrCat(layout.text_rows(), ",", layout.frames(), ",", layout.height(),
                                  ",", layout.width(), ",", layout.audio_latents(), ",");
  if (layout.keyframes().empty()) return absl::StrCat(text, "none");
  for (int i = 0; i < layout.keyframes_size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "+", KeyframeName(layout.keyframes(i)));
  }
  return text;
}

v1::Layout LayoutOfSizes(absl::string_view sizes) {
  const std::vector<absl::string_view> parts = absl::StrSplit(sizes, ',');
  v1::Layout layout;
  int32_t counts[5] = {};
  for (int i = 0; i < 5; ++i) {
    if (!absl::SimpleAtoi(parts[i], &counts[i])) return layout;
  }
  layout.set_text_rows(counts[0]);
  layout.set_frames(counts[1]);
  layout.set_height(counts[2]);
  layout.set_width(counts[3]);
  layout.set_audio_latents(counts[4]);
  if (absl::StrContains(parts[5], "first")) layout.add_keyframes(v1::KEYFRAME_FIRST);
  if (absl::StrContains(parts[5], "last")) layout.add_keyframes(v1::KEYFRAME_LAST);
  return layout;
}

v1::Layout ResolveLayout(const v1::Layout& layout) {
  for (const NamedLayout& named : NamedLayouts()) {
    if (layout.name() != named.name) continue;
    v1::Layout resolved = LayoutOfSizes(named.sizes);
    resolved.set_name(layout.name());
    return resolved;
  }
  return layout;
}

int64_t LayoutRows(const v1::Layout& layout) {
  const int64_t frame_rows = int64_t{layout.height() / 2} * (layout.width() / 2);
  return layout.text_rows() + 2 * int64_t{layout.audio_latents()} +
         (layout.frames() + layout.keyframes_size()) * frame_rows;
}

std::vector<store::TaskRecord> PlanTasks(const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  switch (spec.kind_case()) {
    case v1::JobSpec::kLayout:
      return {NewTask(job, 0, absl::StrCat("layout ", LayoutTitle(spec.layout().layout())), spec)};
    case v1::JobSpec::kComparison:
      return PlanComparison(job);
    case v1::JobSpec::kRule:
      return {NewTask(job, 0, "rule", spec)};
    case v1::JobSpec::kVerdict:
      return {NewTask(job, 0, "bundle", spec)};
    case v1::JobSpec::kCheckpointCheck:
      return {NewTask(job, 0, "checkpoint", spec)};
    case v1::JobSpec::kSelftest:
      return {NewTask(job, 0, "selftest", spec)};
    case v1::JobSpec::kGeneration:
      return PlanSeeds(job);
    case v1::JobSpec::kDiagnostic:
      return {NewTask(job, 0, absl::StrCat("step ", spec.diagnostic().step()), spec)};
    case v1::JobSpec::kDecode:
      return PlanDecode(job);
    case v1::JobSpec::kFullModel:
      return PlanLayouts(job, &LayoutsOfFullModel);
    case v1::JobSpec::kSweep:
      return PlanLayouts(job, &LayoutsOfSweep);
    default:
      return PlanLayouts(job, &LayoutsOfBlockReplay);
  }
}

std::vector<store::TaskRecord> PlanQuality(const v1::Job& job, int64_t number,
                                           const std::vector<store::TaskRecord>& seeds) {
  const v1::GenerationSpec& generation = job.spec().generation();
  if (generation.against().empty() || generation.latents_only() || !job.spec().inject().empty() ||
      generation.contract().num_frames() <= kMostFramesWithoutClip) {
    return {};
  }
  std::vector<store::TaskRecord> tasks;
  for (size_t i = 0; i < seeds.size(); ++i) {
    const uint64_t seed = seeds[i].spec().generation().seeds(0);
    v1::JobSpec spec;
    v1::ComparisonSpec::GenerationPair& pair = *spec.mutable_comparison()->mutable_generations();
    pair.set_a(job.name());
    pair.set_b(generation.against());
    *pair.mutable_spread() = generation.spread();
    pair.set_repeat(generation.repeat());
    pair.add_seeds(seed);
    *spec.mutable_labels() = job.spec().labels();
    spec.set_priority(job.spec().priority());
    store::TaskRecord task = NewTask(job, static_cast<int32_t>(seeds.size() + i),
                                     absl::StrCat("quality of seed ", seed), std::move(spec));
    task.mutable_task()->set_kind(v1::JOB_KIND_COMPARISON);
    store::Dependency& after = *task.add_waits_for();
    after.set_use(store::Dependency::USE_TASK);
    after.set_job(job.name());
    after.set_job_number(number);
    after.set_task(static_cast<int32_t>(i));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace plumbline::server
