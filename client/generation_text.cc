#include "client/generation_text.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/decode_text.h"
#include "client/facts.h"
#include "client/layout_text.h"
#include "client/measure_text.h"
#include "client/table.h"
#include "client/verdict_text.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;

std::string EndText(v1::AttemptEnd end) {
  if (end == v1::ATTEMPT_END_UNSPECIFIED) return "finished the run";
  const std::string name = v1::AttemptEnd_Name(end).substr(sizeof("ATTEMPT_END_") - 1);
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", " "}});
}

std::string SecondsBetween(const v1::Attempt& attempt) {
  if (!attempt.has_end_time()) return "-";
  const double milliseconds =
      (attempt.end_time().seconds() - attempt.start_time().seconds()) * 1e3 +
      (attempt.end_time().nanos() - attempt.start_time().nanos()) / 1e6;
  return MillisecondsText(milliseconds);
}

std::string AttemptTable(const v1::TaskReport& task, const Style& style) {
  Table table({{"attempt", Align::kRight},
               {"worker"},
               {"ended"},
               {"time", Align::kRight},
               {"computed", Align::kRight},
               {"replayed", Align::kRight},
               {"recomputed", Align::kRight}});
  for (const v1::Attempt& attempt : task.attempts()) {
    const bool went_on =
        attempt.end() == v1::ATTEMPT_END_COMPLETED || attempt.end() == v1::ATTEMPT_END_UNSPECIFIED;
    table.AddRow({Cell(absl::StrCat(attempt.number())), Cell(WorkerId(attempt.worker())),
                  Cell(EndText(attempt.end()), went_on ? Ink::kPlain : Ink::kNotice),
                  Cell(SecondsBetween(attempt)), Cell(absl::StrCat(attempt.steps_computed())),
                  Cell(absl::StrCat(attempt.steps_replayed())),
                  Cell(absl::StrCat(attempt.steps_recomputed()))});
    if (!attempt.message().empty()) {
      table.AddNote(absl::StrCat(style.Arrow(), " ", attempt.message()), Ink::kFaint);
    }
    // Sorted: a map of the API has no order of its own.
    const std::map<std::string, std::string> labels(attempt.labels().begin(),
                                                    attempt.labels().end());
    if (!labels.empty()) {
      table.AddNote(
          absl::StrCat(style.Arrow(), " ", absl::StrJoin(labels, ", ", absl::PairFormatter("="))),
          Ink::kFaint);
    }
  }
  return table.empty() ? "" : absl::StrCat(table.Render(style), "\n");
}

std::string SensitivityTable(const v1::GenerationReport& report, const Style& style) {
  Table table(
      {{"changed input"}, {"video velocity", Align::kRight}, {"audio velocity", Align::kRight}});
  for (const v1::SensitivityCheck& check : report.sensitivity()) {
    const Ink ink = check.passed() ? Ink::kPlain : Ink::kBad;
    table.AddRow({Cell(check.input(), ink), Cell(MeasureText(check.video_change()), ink),
                  Cell(MeasureText(check.audio_change()), ink)});
  }
  return table.empty() ? "" : absl::StrCat(table.Render(style), "\n");
}

std::string DriftText(const v1::GenerationReport& report) {
  if (report.latent_drift().empty()) return "";
  const v1::LatentDrift& last = *report.latent_drift().rbegin();
  double worst = 0;
  int worst_step = 0;
  for (const v1::LatentDrift& drift : report.latent_drift()) {
    if (drift.video() < worst) continue;
    worst = drift.video();
    worst_step = drift.step();
  }
  return absl::StrCat("relative L2 after step ", last.step(), ": video ", MeasureText(last.video()),
                      ", audio ", MeasureText(last.audio()), "; largest of the video ",
                      MeasureText(worst), " after step ", worst_step);
}

}  // namespace

std::string GenerationText(const v1::TaskReport& task, const Style& style) {
  const v1::GenerationReport& report = task.generation();
  std::string out = style.Paint(Ink::kStrong, absl::StrCat("Seed ", report.seed()));
  for (const std::string& fact :
       {report.run().substr(0, sizeof("runs/") - 1 + 16), task.composition(),
        LayoutSizes(report.layout()), absl::StrCat(report.steps_size(), " steps")}) {
    absl::StrAppend(&out, "  ", style.Dot(), "  ", fact);
  }
  absl::StrAppend(&out, "\n\n", AttemptTable(task, style), SensitivityTable(report, style));
  std::string steps = absl::StrCat(report.steps_computed(), " computed, ", report.steps_replayed(),
                                   " replayed, ", report.steps_recomputed(), " recomputed");
  if (report.reused()) absl::StrAppend(&steps, "; the finished run was there already");
  absl::StrAppend(&out, Fact("steps", steps, style));
  if (!report.gate().empty()) absl::StrAppend(&out, Fact("gate", report.gate(), style));
  const std::string drift = DriftText(report);
  if (!drift.empty()) absl::StrAppend(&out, Fact("drift", drift, style));
  for (const v1::TensorDigest& latents : report.latents()) {
    absl::string_view name = latents.name();
    absl::ConsumePrefix(&name, "latents.");
    absl::StrAppend(&out, Fact("latents", absl::StrCat(name, " ", latents.sha256()), style));
  }
  if (report.has_decoded()) {
    absl::StrAppend(&out, Fact("decoded", DecodedLine(report.decoded()), style));
    for (const v1::TensorDigest& tensor : report.decoded().tensors()) {
      absl::StrAppend(&out, Fact("", absl::StrCat(tensor.name(), " ", tensor.sha256()), style));
    }
  }
  if (report.media_pending()) {
    absl::StrAppend(&out, Fact("MP4", "to be made by a worker that has FFmpeg", style));
  }
  if (!report.not_decoded().empty()) {
    absl::StrAppend(&out, Fact("not decoded", report.not_decoded(), style));
  }
  return absl::StrCat(out, ControlText(task, style), VerdictText(task.verdict(), style), "\n");
}

std::string DiagnosticText(const v1::TaskReport& task, const Style& style) {
  const v1::DiagnosticReport& report = task.diagnostic();
  std::string out = style.Paint(Ink::kStrong, absl::StrCat("Step ", report.step()));
  absl::StrAppend(&out, "  ", style.Dot(), "  ", report.run().substr(0, sizeof("runs/") - 1 + 16),
                  "  ", style.Dot(), "  saved by ", report.saved_composition(), ", replayed by ",
                  report.composition(), "\n\n");
  Table table({{"velocity"},
               {"bytes"},
               {"relative L2", Align::kRight},
               {"max abs", Align::kRight},
               {"first differing row"}});
  for (const v1::NamedComparison& velocity : report.velocities()) {
    const v1::TensorComparison& comparison = velocity.comparison();
    table.AddRow(
        {Cell(velocity.name()),
         comparison.bitwise_equal() ? Cell("equal", Ink::kGood) : Cell("differ", Ink::kNotice),
         Cell(MeasureText(comparison.relative_l2())), Cell(MeasureText(comparison.max_abs())),
         Cell(comparison.has_first_differing_row() ? RowText(comparison.first_differing_row())
                                                   : std::string("-"))});
  }
  return absl::StrCat(out, table.Render(style), "\n");
}

}  // namespace plumbline::client
