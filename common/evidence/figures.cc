#include "common/evidence/figures.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/evidence/chart.h"

namespace plumbline {
namespace {

constexpr char kErrorAxis[] = "relative L2 against float32 golden";

// "nodes.block.7" is block 7, so is "parameter.transformer_blocks.7.attn.to_q.weight"; else -1.
int BlockOf(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "nodes.block.") &&
      !absl::ConsumePrefix(&name, "parameter.transformer_blocks.")) {
    return -1;
  }
  int block = -1;
  return absl::SimpleAtoi(name.substr(0, name.find('.')), &block) ? block : -1;
}

ChartValue Measured(const v1::TensorComparison& error) {
  return error.incomparable().empty() ? Plain(error.relative_l2()) : NoValue();
}

std::string ErrorByNode(const v1::TaskReport& task) {
  const v1::BlockReplayReport& replay = task.block_replay();
  DotChart chart;
  chart.title = "Error by node";
  chart.subtitle = absl::StrCat(task.title(), ", ", replay.rows(), " rows, block ", replay.block(),
                                replay.backward() ? ", forward and backward" : ", forward");
  chart.axis = kErrorAxis;
  const bool isolated = std::any_of(replay.entries().begin(), replay.entries().end(),
                                    [](const auto& entry) { return entry.has_isolated_error(); });
  chart.series = {{"provider/default", {}}, {task.composition(), {}}};
  if (isolated) chart.series.push_back({absl::StrCat(task.composition(), ", isolated"), {}});
  v1::EntryKind kind = v1::ENTRY_KIND_UNSPECIFIED;
  for (const v1::EntryReport& entry : replay.entries()) {
    if (entry.kind() != kind) chart.group_starts.push_back(chart.rows.size());
    kind = entry.kind();
    chart.rows.push_back(entry.name());
    chart.series[0].values.push_back(Measured(entry.provider_error()));
    chart.series[1].values.push_back(Measured(entry.chained_error()));
    if (!isolated) continue;
    chart.series[2].values.push_back(entry.has_isolated_error() ? Measured(entry.isolated_error())
                                                                : NoValue());
  }
  return DotChartSvg(chart);
}

ChartValue Spread(const v1::Timing& timing) {
  return {timing.median_ms(), timing.min_ms(), timing.max_ms()};
}

std::string Times(const v1::TaskReport& task) {
  DotChart chart;
  chart.title = "Time of a block";
  chart.subtitle =
      absl::StrCat(task.title(), ", ", task.block_replay().rows(), " rows; median, least and most");
  chart.axis = "milliseconds";
  chart.logarithmic = false;
  chart.series = {{"provider/default", {}}, {task.composition(), {}}};
  for (const v1::TimingPair& pair : task.block_replay().timings()) {
    chart.rows.push_back(pair.work());
    chart.series[0].values.push_back(Spread(pair.provider()));
    chart.series[1].values.push_back(Spread(pair.candidate()));
  }
  return DotChartSvg(chart);
}

std::string BoundRatioByBlock(const v1::TaskReport& task) {
  LineChart chart;
  chart.title = "Bound ratio by block";
  chart.subtitle = absl::StrCat(task.title(), ", ", task.full_model().rows(), " rows, rule of k ",
                                task.full_model().rule().k());
  chart.x_axis = "block";
  chart.y_axis = "error / bound";
  chart.logarithmic = false;
  chart.level = {"bound", 1};
  chart.series = {{"output", {}}, {"gradient of the output", {}}, {"worst parameter gradient", {}}};
  std::vector<std::pair<double, double>>& worst = chart.series[2].points;
  for (const v1::FullModelTensor& tensor : task.full_model().tensors()) {
    const int block = BlockOf(tensor.name());
    if (block < 0) continue;
    if (absl::StartsWith(tensor.name(), "nodes.")) {
      const int series = absl::EndsWith(tensor.name(), ".grad") ? 1 : 0;
      chart.series[series].points.emplace_back(block, tensor.bound_ratio());
      continue;
    }
    const auto same = std::find_if(worst.begin(), worst.end(),
                                   [&](const auto& point) { return point.first == block; });
    if (same == worst.end()) {
      worst.emplace_back(block, tensor.bound_ratio());
    } else {
      same->second = std::max(same->second, tensor.bound_ratio());
    }
  }
  for (LineChart::Series& series : chart.series) {
    std::sort(series.points.begin(), series.points.end());
  }
  return LineChartSvg(chart);
}

std::string ErrorByBlock(const v1::TaskReport& task) {
  const v1::FullModelReport& full = task.full_model();
  LineChart chart;
  chart.title = "Error of the residual stream by block";
  chart.subtitle = absl::StrCat(task.title(), ", ", full.rows(), " rows");
  chart.x_axis = "block";
  chart.y_axis = kErrorAxis;
  const bool has_candidate =
      std::any_of(full.tensors().begin(), full.tensors().end(),
                  [](const auto& tensor) { return tensor.has_candidate_error(); });
  if (has_candidate) chart.series.push_back({task.composition(), {}});
  for (const v1::RuleProvider& provider : full.providers()) {
    chart.series.push_back({provider.name(), {}});
  }
  for (const v1::FullModelTensor& tensor : full.tensors()) {
    const int block = BlockOf(tensor.name());
    if (block < 0 || tensor.name() != absl::StrCat("nodes.block.", block)) continue;
    size_t series = 0;
    if (has_candidate) {
      chart.series[series++].points.emplace_back(block, tensor.candidate_error().relative_l2());
    }
    for (int i = 0; i < tensor.provider_errors_size() && series < chart.series.size(); ++i) {
      chart.series[series++].points.emplace_back(block, tensor.provider_errors(i).relative_l2());
    }
  }
  return LineChartSvg(chart);
}

std::string DriftByStep(const v1::TaskReport& task,
                        const google::protobuf::RepeatedPtrField<v1::LatentDrift>& drifts) {
  LineChart chart;
  chart.title = "Latent drift by step";
  chart.subtitle = absl::StrCat(task.title(), ", ", task.composition());
  chart.x_axis = "step";
  chart.y_axis = "relative L2 of the latents";
  chart.series = {{"video", {}}, {"audio", {}}};
  for (const v1::LatentDrift& drift : drifts) {
    chart.series[0].points.emplace_back(drift.step(), drift.video());
    chart.series[1].points.emplace_back(drift.step(), drift.audio());
  }
  return LineChartSvg(chart);
}

std::string TimeByStep(const v1::TaskReport& task) {
  LineChart chart;
  chart.title = "Time by step";
  chart.subtitle = absl::StrCat(task.title(), ", ", task.composition());
  chart.x_axis = "step";
  chart.y_axis = "seconds";
  chart.logarithmic = false;
  chart.series = {{"computation of what is saved", {}}};
  for (const v1::GenerationReport::Step& step : task.generation().steps()) {
    chart.series[0].points.emplace_back(step.index(), step.seconds());
  }
  return LineChartSvg(chart);
}

std::string QualityByFrame(const v1::TaskReport& task, const v1::QualityReport& quality) {
  LineChart chart;
  chart.title = "PSNR by frame";
  chart.subtitle = task.title();
  chart.x_axis = "frame";
  chart.y_axis = "dB";
  chart.logarithmic = false;
  chart.series = {{"PSNR", {}}};
  for (int i = 0; i < quality.frames_size(); ++i) {
    chart.series[0].points.emplace_back(i, quality.frames(i).psnr_db());
  }
  return LineChartSvg(chart);
}

// A task's figures by what they are called.
std::map<std::string, std::string> FiguresOf(const v1::TaskReport& task) {
  std::map<std::string, std::string> figures;
  if (task.block_replay().entries_size() > 0) figures["error_by_node"] = ErrorByNode(task);
  if (task.block_replay().timings_size() > 0) figures["timings"] = Times(task);
  if (task.full_model().tensors_size() > 0) {
    figures["error_by_block"] = ErrorByBlock(task);
    if (task.full_model().has_rule()) figures["bound_ratio_by_block"] = BoundRatioByBlock(task);
  }
  if (task.generation().latent_drift_size() > 0) {
    figures["latent_drift_by_step"] = DriftByStep(task, task.generation().latent_drift());
  } else if (task.generation_comparison().latent_drift_size() > 0) {
    figures["latent_drift_by_step"] =
        DriftByStep(task, task.generation_comparison().latent_drift());
  }
  if (task.generation().steps_size() > 0) figures["timings"] = TimeByStep(task);
  const v1::QualityReport& quality =
      task.has_media() ? task.media() : task.generation_comparison().quality();
  if (quality.frames_size() > 0) figures["psnr_by_frame"] = QualityByFrame(task, quality);
  return figures;
}

}  // namespace

std::map<std::string, std::string> Figures(const v1::Report& report) {
  std::map<std::string, std::string> figures;
  for (int i = 0; i < report.tasks_size(); ++i) {
    const std::string number = report.tasks_size() == 1 ? "" : absl::StrCat("-", i + 1);
    for (auto& [name, svg] : FiguresOf(report.tasks(i))) {
      figures[absl::StrCat(name, number, ".svg")] = svg;
    }
  }
  return figures;
}

}  // namespace plumbline
