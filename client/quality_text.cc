#include "client/quality_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/facts.h"
#include "client/measure_text.h"
#include "client/table.h"
#include "client/verdict_text.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;
using Frame = v1::QualityReport::Frame;

std::string DecibelText(double value) {
  return std::isnan(value) ? "nan" : absl::StrFormat("%.2f", value);
}

std::string SsimText(double value) {
  return std::isnan(value) ? "nan" : absl::StrFormat("%.6f", value);
}

// A measure's figure; its name is that of its gate.
struct Measure {
  const char* gate;
  const char* title;
  bool of_picture;
  bool is_least;  // Its bound is the least that is allowed.
  double (v1::QualityReport::*value)() const;
  std::string (*text)(double);
};

constexpr Measure kMeasures[] = {
    {"psnr", "PSNR dB", true, true, &v1::QualityReport::psnr_db, &DecibelText},
    {"ssim", "SSIM", true, true, &v1::QualityReport::ssim, &SsimText},
    {"temporal_rmse", "temporal RMSE", true, false, &v1::QualityReport::temporal_rmse,
     &MeasureText},
    {"audio_relative_l2", "audio L2", false, false, &v1::QualityReport::audio_relative_l2,
     &MeasureText},
};

const v1::GateResult* FindGate(const v1::QualityReport& report, absl::string_view name) {
  for (const v1::GateResult& gate : report.gates()) {
    if (gate.gate() == name) return &gate;
  }
  return nullptr;
}

bool Has(const v1::QualityReport& report, const Measure& measure) {
  return measure.of_picture ? report.frames_size() > 0 : report.channels_size() > 0;
}

// A row: what is compared, and its figures; red where they fail.
std::vector<Cell> Row(std::string name, const v1::QualityReport& report) {
  std::vector<Cell> cells = {Cell(std::move(name))};
  for (const Measure& measure : kMeasures) {
    if (!Has(report, measure)) {
      cells.emplace_back("-");
      continue;
    }
    const v1::GateResult* const gate = FindGate(report, measure.gate);
    cells.emplace_back(measure.text((report.*measure.value)()),
                       gate != nullptr && !gate->passed() ? Ink::kBad : Ink::kPlain);
  }
  const bool same_picture = report.frames_size() == 0 || report.frames_bitwise_equal();
  const bool same_sound = report.channels_size() == 0 || report.audio_bitwise_equal();
  cells.push_back(same_picture && same_sound ? Cell("equal", Ink::kGood) : Cell("differ"));
  return cells;
}

std::vector<Cell> BoundsRow(const v1::QualityReport& report) {
  std::vector<Cell> cells = {Cell("bound", Ink::kFaint)};
  for (const Measure& measure : kMeasures) {
    const v1::GateResult* const gate = FindGate(report, measure.gate);
    cells.emplace_back(
        gate == nullptr ? std::string("-")
                        : absl::StrFormat("%s %g", measure.is_least ? ">=" : "<=", gate->bound()),
        Ink::kFaint);
  }
  return cells;
}

Table QualityTable() {
  std::vector<Table::Column> columns = {{"side"}};
  for (const Measure& measure : kMeasures) columns.push_back({measure.title, Align::kRight});
  columns.push_back({"values"});
  return Table(std::move(columns));
}

// The frame that is worst by a measure, e.g. "SSIM 0.981 at frame 4".
template <typename Less>
int WorstFrame(const v1::QualityReport& report, Less less) {
  const auto worst = std::min_element(report.frames().begin(), report.frames().end(), less);
  return static_cast<int>(worst - report.frames().begin());
}

std::string FramesText(const v1::QualityReport& report) {
  const int psnr =
      WorstFrame(report, [](const Frame& a, const Frame& b) { return a.psnr_db() < b.psnr_db(); });
  const int ssim =
      WorstFrame(report, [](const Frame& a, const Frame& b) { return a.ssim() < b.ssim(); });
  const int temporal = WorstFrame(
      report, [](const Frame& a, const Frame& b) { return a.temporal_rmse() > b.temporal_rmse(); });
  return absl::StrCat(report.frames_size(), "; lowest PSNR ",
                      DecibelText(report.frames(psnr).psnr_db()), " dB at frame ", psnr,
                      ", lowest SSIM ", SsimText(report.frames(ssim).ssim()), " at ", ssim,
                      ", largest temporal RMSE ",
                      MeasureText(report.frames(temporal).temporal_rmse()), " at ", temporal);
}

std::string SoundText(const v1::QualityReport& report) {
  std::vector<std::string> parts;
  for (int i = 0; i < report.channels_size(); ++i) {
    const v1::QualityReport::AudioChannel& channel = report.channels(i);
    const auto worst = std::max_element(channel.seconds().begin(), channel.seconds().end());
    parts.push_back(absl::StrCat(
        report.channels_size() == 1 ? "mono"
        : i == 0                    ? "left"
                                    : "right",
        " ", MeasureText(channel.relative_l2()), " (largest difference ",
        MeasureText(channel.max_abs()), ", worst second ", worst - channel.seconds().begin(), ": ",
        worst == channel.seconds().end() ? "-" : MeasureText(*worst), ")"));
  }
  std::string text = absl::StrJoin(parts, ", ");
  if (report.audio_lag_samples() != 0) {
    absl::StrAppend(&text, "; ", std::abs(report.audio_lag_samples()), " samples ",
                    report.audio_lag_samples() > 0 ? "late" : "early");
  }
  if (report.channels_size() == 2 &&
      report.audio_swapped_relative_l2() < report.audio_relative_l2()) {
    absl::StrAppend(&text, "; with its channels exchanged ",
                    MeasureText(report.audio_swapped_relative_l2()));
  }
  return text;
}

std::string Facts(const v1::QualityReport& report, const Style& style) {
  std::string out;
  if (report.has_first_nonfinite_frame()) {
    absl::StrAppend(
        &out,
        Fact("not finite", absl::StrCat("first in frame ", report.first_nonfinite_frame()), style));
  }
  if (report.has_first_nonfinite_sample()) {
    absl::StrAppend(
        &out, Fact("not finite", absl::StrCat("first at sample ", report.first_nonfinite_sample()),
                   style));
  }
  if (report.frames_size() > 0) absl::StrAppend(&out, Fact("frames", FramesText(report), style));
  if (report.channels_size() > 0) absl::StrAppend(&out, Fact("sound", SoundText(report), style));
  return out;
}

}  // namespace

std::string MediaText(const v1::TaskReport& task, const Style& style) {
  const v1::QualityReport& report = task.media();
  Table table = QualityTable();
  table.AddRow(Row(report.subject(), report));
  table.AddRow(BoundsRow(report));
  return absl::StrCat(style.Paint(Ink::kStrong, "Quality"), "  ", style.Dot(), "  against ",
                      report.reference(), "\n\n", table.Render(style), "\n", Facts(report, style),
                      "\n");
}

std::string GenerationComparisonText(const v1::TaskReport& task, const Style& style) {
  const v1::GenerationComparisonReport& report = task.generation_comparison();
  std::string out = style.Paint(Ink::kStrong, absl::StrCat("Quality of seed ", report.seed()));
  if (!report.not_compared().empty()) {
    return absl::StrCat(out, "\n\n", Fact("not compared", report.not_compared(), style),
                        VerdictText(task.verdict(), style), "\n");
  }
  absl::StrAppend(&out, "  ", style.Dot(), "  against ", report.quality().reference(), "\n\n");
  Table table = QualityTable();
  table.AddRow(Row(report.quality().subject(), report.quality()));
  for (const v1::QualityReport& spread : report.provider_spread()) {
    table.AddRow(Row(absl::StrCat("spread: ", spread.subject()), spread));
  }
  if (report.has_provider_repeat()) {
    table.AddRow(Row(absl::StrCat("repeat: ", report.provider_repeat().subject()),
                     report.provider_repeat()));
  }
  table.AddRow(BoundsRow(report.quality()));
  return absl::StrCat(out, table.Render(style), "\n", Facts(report.quality(), style),
                      VerdictText(task.verdict(), style), "\n");
}

}  // namespace plumbline::client
