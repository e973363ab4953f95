#include "client/block_replay_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/facts.h"
#include "client/layout_text.h"
#include "client/measure_text.h"
#include "client/table.h"
#include "client/verdict_text.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;

bool IsMeasured(const v1::TensorComparison& comparison) {
  return !comparison.reference().empty() || !comparison.subject().empty() ||
         !comparison.dtype().empty() || !comparison.incomparable().empty();
}

std::string StatusText(v1::NodeStatus status) {
  switch (status) {
    case v1::NODE_STATUS_BOUND:
      return "bound";
    case v1::NODE_STATUS_INTERIM:
      return "interim";
    case v1::NODE_STATUS_REFERENCE:
      return "reference";
    default:
      return "-";
  }
}

// The drift of a comparison with the provider: "=" where the bytes are equal.
Cell DriftCell(const v1::TensorComparison& comparison) {
  if (!IsMeasured(comparison)) return Cell("-", Ink::kFaint);
  if (!comparison.incomparable().empty()) return Cell("shape", Ink::kBad);
  if (comparison.bitwise_equal()) return Cell("=", Ink::kFaint);
  return Cell(MeasureText(comparison.relative_l2()));
}

Cell ErrorCell(const v1::TensorComparison& comparison) {
  if (!IsMeasured(comparison)) return Cell("-", Ink::kFaint);
  if (!comparison.incomparable().empty()) return Cell("shape", Ink::kBad);
  return Cell(MeasureText(comparison.relative_l2()));
}

Cell DriftWord(const v1::EntryReport& entry) {
  if (!entry.passed()) return Cell("FAILING", Ink::kBad);
  if (!IsMeasured(entry.chained())) return Cell("-", Ink::kFaint);
  if (entry.chained().bitwise_equal()) return Cell("bitwise", Ink::kGood);
  return Cell("within", Ink::kPlain);
}

std::string EqualityNote(const v1::EqualityCheck& check) {
  std::string note;
  if (!check.variation().empty()) absl::StrAppend(&note, " under ", check.variation());
  if (check.has_first_differing_row()) {
    absl::StrAppend(&note, ": ", RowText(check.first_differing_row()), ", column ",
                    check.first_differing_column(), ": ", absl::StrFormat("%.6g", check.value()),
                    " then ", absl::StrFormat("%.6g", check.other_value()));
  }
  if (check.differing_elements() > 0) {
    absl::StrAppend(&note, "; ", CountText(check.differing_elements()), " elements differ");
  }
  return note;
}

// One failed gate, with what was measured and where.
std::string GateNote(const v1::EntryReport& entry, const v1::GateResult& gate) {
  if (gate.gate() == "repeat" || gate.gate() == "batch") {
    return absl::StrCat(gate.gate(), ": other bytes",
                        EqualityNote(gate.gate() == "repeat" ? entry.repeat() : entry.batch()));
  }
  if (gate.gate() == "executed") {
    return absl::StrCat("executed: requested ", entry.implementation().requested(), ", ran ",
                        entry.implementation().actual());
  }
  if (gate.gate() == "isolated_bitwise") {
    const v1::TensorComparison& isolated = entry.isolated();
    std::string note = "isolated_bitwise: bytes differ from the provider's";
    if (isolated.has_first_differing_row()) {
      absl::StrAppend(&note, " from ", RowText(isolated.first_differing_row()), " on");
    }
    return absl::StrCat(note, "; relative L2 ", MeasureText(isolated.relative_l2()));
  }
  if (gate.gate() == "finite") {
    return absl::StrCat("finite: ", CountText(static_cast<int64_t>(gate.value())),
                        " values are NaN or infinite");
  }
  if (gate.gate() == "zero") return "zero: exactly zero where the golden is not";
  return absl::StrCat(gate.gate(), ": ", MeasureText(gate.value()), ", allowed ",
                      MeasureText(gate.bound()));
}

std::string SectionTable(const v1::BlockReplayReport& report, v1::EntryKind kind,
                         absl::string_view title, const Style& style) {
  constexpr int kMeasureWidth = 8;  // "1.23e-04"
  int name_width = 0;
  for (const v1::EntryReport& entry : report.entries()) {
    name_width = std::max(name_width, DisplayWidth(entry.name()));
  }
  Table table({{std::string(title), Align::kLeft, name_width},
               {"status", Align::kLeft, 9},  // "reference"
               {"drift", Align::kLeft, 7},   // "bitwise"
               {"chained", Align::kRight, kMeasureWidth},
               {"isolated", Align::kRight, kMeasureWidth},
               {"error", Align::kRight, kMeasureWidth},
               {"provider", Align::kRight, kMeasureWidth},
               {"ratio", Align::kRight}});
  for (const v1::EntryReport& entry : report.entries()) {
    if (entry.kind() != kind) continue;
    const bool has_ratio = IsMeasured(entry.chained_error()) && entry.error_ratio() > 0;
    table.AddRow({Cell(entry.name(), entry.passed() ? Ink::kPlain : Ink::kBad),
                  Cell(StatusText(entry.implementation().status()), Ink::kFaint), DriftWord(entry),
                  DriftCell(entry.chained()), DriftCell(entry.isolated()),
                  ErrorCell(entry.chained_error()), ErrorCell(entry.provider_error()),
                  has_ratio ? Cell(RatioText(entry.error_ratio())) : Cell("-", Ink::kFaint)});
    for (const v1::GateResult& gate : entry.gates()) {
      if (gate.passed() || gate.not_measured()) continue;
      table.AddNote(absl::StrCat(style.Arrow(), " ", GateNote(entry, gate)), Ink::kBad);
    }
  }
  return table.empty() ? "" : absl::StrCat(table.Render(style), "\n");
}

std::string EqualityCount(const v1::BlockReplayReport& report, absl::string_view name,
                          const v1::EqualityCheck& (v1::EntryReport::*check)() const) {
  int equal = 0;
  int measured = 0;
  for (const v1::EntryReport& entry : report.entries()) {
    const v1::Equality result = (entry.*check)().result();
    if (result == v1::EQUALITY_EQUAL) ++equal;
    if (result == v1::EQUALITY_EQUAL || result == v1::EQUALITY_DIFFERENT) ++measured;
  }
  if (measured == 0) return absl::StrCat(name, " not measured");
  return absl::StrCat(name, " ", equal, " of ", measured, " equal");
}

std::string BitwiseCount(const v1::BlockReplayReport& report, absl::string_view name,
                         const v1::TensorComparison& (v1::EntryReport::*comparison)() const) {
  int equal = 0;
  int measured = 0;
  for (const v1::EntryReport& entry : report.entries()) {
    if (!IsMeasured((entry.*comparison)())) continue;
    ++measured;
    if ((entry.*comparison)().bitwise_equal()) ++equal;
  }
  if (measured == 0) return absl::StrCat(name, " not measured");
  return absl::StrCat(name, " ", equal, " of ", measured, " bitwise equal");
}

std::string WorstRatio(const v1::BlockReplayReport& report, absl::string_view name,
                       const std::set<v1::EntryKind>& kinds) {
  const v1::EntryReport* worst = nullptr;
  for (const v1::EntryReport& entry : report.entries()) {
    if (kinds.count(entry.kind()) == 0) continue;
    if (worst == nullptr || entry.error_ratio() > worst->error_ratio()) worst = &entry;
  }
  if (worst == nullptr || worst->error_ratio() == 0) return "";
  return absl::StrCat(name, " ", RatioText(worst->error_ratio()), " at ", worst->name());
}

// "Ran as" lines: implementations that were not what was requested by name, e.g. fused ones, and
// plug-ins with who answers for them.
std::string ActualLines(const v1::BlockReplayReport& report, const Style& style) {
  std::map<std::string, std::vector<std::string>> nodes;
  std::map<std::string, std::string> remarks;
  for (const v1::EntryReport& entry : report.entries()) {
    const v1::Implementation& ran = entry.implementation();
    const bool plugin = absl::StartsWith(ran.requested(), "plugin/");
    if (entry.kind() != v1::ENTRY_KIND_FORWARD) continue;
    if (ran.requested() == ran.actual() && !plugin) continue;
    nodes[ran.actual()].push_back(entry.node());
    remarks[ran.actual()] =
        plugin ? absl::StrCat("of ", ran.owner()) : absl::StrCat("requested ", ran.requested());
  }
  std::string lines;
  for (const auto& [actual, names] : nodes) {
    absl::StrAppend(&lines, Fact(lines.empty() ? "ran as" : "",
                                 absl::StrCat(actual, " for ", absl::StrJoin(names, ", "), " (",
                                              remarks[actual], ")"),
                                 style));
  }
  return lines;
}

std::string Summary(const v1::BlockReplayReport& report, const Style& style) {
  std::string out;
  absl::StrAppend(&out,
                  Fact("invariance",
                       JoinFacts({EqualityCount(report, "repeat", &v1::EntryReport::repeat),
                                  EqualityCount(report, "batch", &v1::EntryReport::batch)},
                                 style),
                       style),
                  Fact("parity",
                       JoinFacts({BitwiseCount(report, "chained", &v1::EntryReport::chained),
                                  BitwiseCount(report, "isolated", &v1::EntryReport::isolated)},
                                 style),
                       style));
  const std::string accuracy = JoinFacts(
      {WorstRatio(report, "worst error ratio", {v1::ENTRY_KIND_FORWARD}),
       WorstRatio(report, "of gradients", {v1::ENTRY_KIND_GRADIENT, v1::ENTRY_KIND_LEAF})},
      style);
  if (!accuracy.empty()) absl::StrAppend(&out, Fact("accuracy", accuracy, style));
  absl::StrAppend(&out, ActualLines(report, style));
  if (report.captured_size() > 0) {
    absl::StrAppend(&out, Fact("captured", absl::StrJoin(report.captured(), ", "), style));
  }
  return out;
}

std::string FirstsLines(const v1::BlockReplayReport& report, const Style& style) {
  const v1::Firsts& firsts = report.firsts();
  const auto word = [](bool measured, const std::string& entry) {
    if (!measured) return std::string("not measured");
    return entry.empty() ? std::string("none") : entry;
  };
  std::string out =
      Fact("firsts",
           JoinFacts({absl::StrCat("drift ", word(firsts.has_first_drift(), firsts.first_drift())),
                      absl::StrCat("isolated drift ", word(firsts.has_first_isolated_drift(),
                                                           firsts.first_isolated_drift()))},
                     style),
           style);
  absl::StrAppend(
      &out, Fact("",
                 JoinFacts({absl::StrCat("repeat drift ", word(firsts.has_first_repeat_drift(),
                                                               firsts.first_repeat_drift())),
                            absl::StrCat("batch drift ", word(firsts.has_first_batch_drift(),
                                                              firsts.first_batch_drift()))},
                           style),
                 style));
  if (!report.backward()) return out;
  absl::StrAppend(
      &out,
      Fact("",
           JoinFacts(
               {absl::StrCat("gradient repeat drift ", word(firsts.has_first_grad_repeat_drift(),
                                                            firsts.first_grad_repeat_drift())),
                absl::StrCat("gradient batch drift ", word(firsts.has_first_grad_batch_drift(),
                                                           firsts.first_grad_batch_drift()))},
               style),
           style));
  return out;
}

std::string TimingLines(const v1::BlockReplayReport& report, const Style& style) {
  std::string out;
  for (const v1::TimingPair& pair : report.timings()) {
    absl::StrAppend(
        &out,
        Fact(out.empty() ? "time" : "",
             absl::StrCat(pair.work(), " ", MillisecondsText(pair.candidate().median_ms()),
                          ", provider ", MillisecondsText(pair.provider().median_ms()), ", ratio ",
                          RatioText(pair.ratio()), " (median of ", pair.candidate().samples(), ")"),
             style));
  }
  if (report.has_permutation()) {
    const v1::PermutationControl& control = report.permutation();
    absl::StrAppend(
        &out,
        Fact("permutation",
             absl::StrCat(CountText(control.rows_changed()), " of ", CountText(control.rows()),
                          " output rows change, relative L2 ", MeasureText(control.relative_l2()),
                          ", max ", MeasureText(control.max_abs()), " (not gated)"),
             style));
  }
  if (report.peak_memory_bytes() > 0) {
    absl::StrAppend(&out, Fact("memory", BytesText(report.peak_memory_bytes()), style));
  }
  return out;
}

// What the candidate was compared with: a captured provider has the name that its flag gave it.
std::string ProviderName(const v1::BlockReplayReport& report) {
  for (const v1::EntryReport& entry : report.entries()) {
    if (!entry.chained().reference().empty()) return entry.chained().reference();
  }
  return "provider/default";
}

std::string Header(const v1::TaskReport& task, const Style& style) {
  const v1::BlockReplayReport& report = task.block_replay();
  std::vector<std::string> facts;
  if (!report.layout().name().empty()) facts.push_back(LayoutSizes(report.layout()));
  facts.push_back(absl::StrCat(CountText(report.rows()), " rows"));
  facts.push_back(absl::StrCat("block ", report.block()));
  facts.push_back(report.backward() ? "forward and backward" : "forward");
  const std::string legend =
      absl::StrCat(task.composition().empty() ? "candidate" : task.composition(), " against ",
                   ProviderName(report),
                   ": chained and isolated, relative L2, = where all bytes are equal; "
                   "against golden: error, the provider's own error, and their ratio");
  return absl::StrCat(
      style.Paint(Ink::kStrong, absl::StrCat("Layout ", LayoutText(report.layout()))), "  ",
      style.Dot(), "  ", JoinFacts(facts, style), "\n",
      style.Paint(Ink::kFaint, Wrap(legend, 0, 0, style.columns)), "\n\n");
}

}  // namespace

std::string BlockReplayText(const v1::TaskReport& task, const Style& style) {
  const v1::BlockReplayReport& report = task.block_replay();
  return absl::StrCat(
      Header(task, style), SectionTable(report, v1::ENTRY_KIND_FORWARD, "node", style),
      SectionTable(report, v1::ENTRY_KIND_GRADIENT, "gradient", style),
      SectionTable(report, v1::ENTRY_KIND_LEAF, "leaf", style), Summary(report, style),
      FirstsLines(report, style), TimingLines(report, style), ControlText(task, style), "\n");
}

}  // namespace plumbline::client
