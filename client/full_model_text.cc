#include "client/full_model_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/facts.h"
#include "client/layout_text.h"
#include "client/measure_text.h"
#include "client/table.h"
#include "client/verdict_text.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;

// A person reads a few of hundreds; the rest is in the JSON.
constexpr size_t kListedFailures = 20;
constexpr size_t kListedNearest = 10;

std::string Header(const v1::TaskReport& task, const Style& style) {
  const v1::FullModelReport& report = task.full_model();
  std::vector<std::string> facts;
  if (!report.layout().name().empty()) facts.push_back(LayoutSizes(report.layout()));
  facts.push_back(absl::StrCat(CountText(report.rows()), " rows"));
  facts.push_back(absl::StrCat(report.blocks(), " blocks, ", report.refiner_blocks(), " refiner"));
  facts.push_back(absl::StrCat(CountText(report.tensors_size()), " tensors"));
  const std::string title = report.layout().text_rows() > 0
                                ? absl::StrCat("Layout ", LayoutText(report.layout()))
                                : "Captured layout";
  return absl::StrCat(style.Paint(Ink::kStrong, title), "  ", style.Dot(), "  ",
                      JoinFacts(facts, style), "\n\n");
}

// The largest error of the providers, and whose it is.
std::string LargestProvider(const v1::FullModelReport& report, const v1::FullModelTensor& tensor) {
  const auto& errors = tensor.provider_errors();
  const auto largest = std::max_element(
      errors.begin(), errors.end(),
      [](const auto& a, const auto& b) { return a.relative_l2() < b.relative_l2(); });
  if (largest == errors.end()) return "-";
  const int index = static_cast<int>(largest - errors.begin());
  const std::string& name = report.providers(index).name();
  return absl::StrCat(MeasureText(largest->relative_l2()), " ",
                      absl::StripPrefix(name, "provider/"));
}

const v1::GateResult* FailedGate(const v1::FullModelTensor& tensor) {
  for (const v1::GateResult& gate : tensor.gates()) {
    if (!gate.passed() && !gate.not_measured()) return &gate;
  }
  return nullptr;
}

std::string GateNote(const v1::FullModelTensor& tensor, const v1::GateResult& gate) {
  if (gate.gate() == "executed") {
    return absl::StrCat("executed: ", CountText(static_cast<int64_t>(gate.value())),
                        " nodes did not run as requested");
  }
  if (gate.gate() == "shape") {
    return absl::StrCat("shape: ", tensor.candidate_error().incomparable().empty()
                                       ? "missing"
                                       : tensor.candidate_error().incomparable());
  }
  if (gate.gate() == "finite") {
    return absl::StrCat("finite: ", CountText(static_cast<int64_t>(gate.value())),
                        " values are NaN or infinite");
  }
  if (gate.gate() == "zero") return "zero: exactly zero where the golden is not";
  std::string note = absl::StrCat(gate.gate(), ": ", MeasureText(gate.value()), ", allowed ",
                                  MeasureText(gate.bound()));
  if (tensor.candidate_error().has_first_differing_row()) {
    absl::StrAppend(&note, "; differs from ",
                    RowText(tensor.candidate_error().first_differing_row()), " on");
  }
  return note;
}

void AddTensor(const v1::FullModelReport& report, const v1::FullModelTensor& tensor,
               const Style& style, Table* table) {
  const bool compared = tensor.has_candidate_error();
  table->AddRow({Cell(tensor.name(), tensor.passed() || !compared ? Ink::kPlain : Ink::kBad),
                 compared ? MeasureText(tensor.candidate_error().relative_l2()) : "-",
                 tensor.bound() > 0 ? MeasureText(tensor.bound()) : "-",
                 compared ? RatioText(tensor.bound_ratio()) : "-",
                 LargestProvider(report, tensor)});
  if (const v1::GateResult* gate = FailedGate(tensor); gate != nullptr) {
    table->AddNote(absl::StrCat(style.Arrow(), " ", GateNote(tensor, *gate)), Ink::kBad);
  }
}

Table TensorTable(absl::string_view title) {
  return Table({{std::string(title)},
                {"error", Align::kRight, 8},
                {"bound", Align::kRight, 8},
                {"ratio", Align::kRight},
                {"largest provider"}});
}

std::string Tensors(const v1::FullModelReport& report, const Style& style) {
  std::vector<const v1::FullModelTensor*> failing, nearest;
  bool judged = false;
  for (const v1::FullModelTensor& tensor : report.tensors()) {
    judged |= tensor.gates_size() > 0;
    if (tensor.gates_size() > 0 && !tensor.passed()) {
      failing.push_back(&tensor);
    } else {
      nearest.push_back(&tensor);
    }
  }
  std::string out;
  if (!failing.empty()) {
    Table table = TensorTable("failing, in execution order");
    for (size_t i = 0; i < std::min(failing.size(), kListedFailures); ++i) {
      AddTensor(report, *failing[i], style, &table);
    }
    absl::StrAppend(&out, table.Render(style));
    if (failing.size() > kListedFailures) {
      absl::StrAppend(&out, "  and ", failing.size() - kListedFailures, " more\n");
    }
    absl::StrAppend(&out, "\n");
  }
  for (const std::string& name : report.extra()) {
    absl::StrAppend(&out, "  ",
                    style.Paint(Ink::kBad, absl::StrCat("not in the inventory: ", name)), "\n");
  }
  std::stable_sort(nearest.begin(), nearest.end(), [](const auto* a, const auto* b) {
    return a->bound_ratio() > b->bound_ratio();
  });
  if (!judged || nearest.empty()) return out;
  Table table = TensorTable("passing, nearest to their bounds");
  for (size_t i = 0; i < std::min(nearest.size(), kListedNearest); ++i) {
    AddTensor(report, *nearest[i], style, &table);
  }
  return absl::StrCat(out, table.Render(style), "\n");
}

std::string Ablation(const v1::FullModelReport& report, const Style& style) {
  if (report.ablation().empty()) return "";
  Table table({{"replaced by the provider"},
               {"cleared", Align::kRight},
               {"remaining", Align::kRight},
               {"introduced", Align::kRight},
               {"worst ratio", Align::kRight}});
  for (const v1::AblationRow& row : report.ablation()) {
    if (row.empty()) {
      table.AddRow({Cell(row.group(), Ink::kFaint), Cell("empty", Ink::kFaint)});
      continue;
    }
    table.AddRow({Cell(row.group()), CountText(row.cleared_size()), CountText(row.remaining_size()),
                  CountText(row.introduced_size()), RatioText(row.worst_ratio())});
    if (row.group() != "all") continue;
    table.AddNote(row.differs_from_provider().empty()
                      ? "every tensor is the provider's, bit for bit"
                      : absl::StrCat(row.differs_from_provider_size(),
                                     " tensors are not the provider's bit for bit, the first ",
                                     row.differs_from_provider(0)),
                  row.differs_from_provider().empty() ? Ink::kFaint : Ink::kNotice);
  }
  return absl::StrCat(table.Render(style), "\n");
}

std::string RuleFact(const v1::FullModelReport& report, const Style& style) {
  if (!report.has_rule()) return "";
  const v1::Rule& rule = report.rule();
  const char* const origin = rule.origin() == v1::RULE_ORIGIN_MANUAL ? "manual" : "frozen";
  return Fact("rule",
              JoinFacts({absl::StrCat(origin, report.rule_made_here() ? ", made here first" : ""),
                         absl::StrFormat("k %.1f", rule.k()),
                         absl::StrCat("sha256 ", rule.sha256().substr(0, 16))},
                        style),
              style);
}

std::string Providers(const v1::FullModelReport& report, const Style& style) {
  std::vector<std::string> names;
  for (const v1::RuleProvider& provider : report.providers()) {
    std::string name(absl::StripPrefix(provider.name(), "provider/"));
    if (!provider.dropped_because().empty()) {
      absl::StrAppend(&name, " (", provider.dropped_because(), ")");
    }
    names.push_back(std::move(name));
  }
  return Fact("providers", absl::StrJoin(names, ", "), style);
}

std::string Ran(const v1::FullModelReport& report, const Style& style) {
  std::vector<std::string> facts;
  for (const v1::ImplementationTrace::Group& group : report.trace().groups()) {
    facts.push_back(absl::StrCat(group.actual(), " for ", group.nodes_size(), " nodes"));
  }
  if (report.trace().not_executed_size() > 0) {
    facts.push_back(
        absl::StrCat("not executed: ", absl::StrJoin(report.trace().not_executed(), ", ")));
  }
  return facts.empty() ? "" : Fact("ran", JoinFacts(facts, style), style);
}

std::string Summary(const v1::FullModelReport& report, const Style& style) {
  std::string out = absl::StrCat(RuleFact(report, style), Providers(report, style));
  if (!report.captured().empty()) {
    absl::StrAppend(&out, Fact("captured", absl::StrJoin(report.captured(), ", "), style));
  }
  absl::StrAppend(&out, Ran(report, style));
  if (report.firsts().has_first_drift()) {
    const std::string& first = report.firsts().first_drift();
    absl::StrAppend(&out, Fact("first drift", first.empty() ? "none" : first, style));
  }
  if (!report.single_provider_verdict().sentence().empty()) {
    absl::StrAppend(&out, Fact("single rule", report.single_provider_verdict().sentence(), style));
  }
  absl::StrAppend(&out, Fact("memory",
                             absl::StrCat(BytesText(report.peak_memory_bytes()), ", weights ",
                                          BytesText(report.weight_bytes()), " loaded"),
                             style));
  return out;
}

std::string Artifacts(const v1::TaskReport& task, const Style& style) {
  std::string out;
  for (const v1::Artifact& artifact : task.artifacts()) {
    absl::StrAppend(&out, Fact(out.empty() ? "files" : "",
                               absl::StrCat(artifact.file_name(), "  ", artifact.name(), "  ",
                                            BytesText(artifact.size_bytes())),
                               style));
  }
  return out;
}

}  // namespace

std::string FullModelText(const v1::TaskReport& task, const Style& style) {
  const v1::FullModelReport& report = task.full_model();
  return absl::StrCat(Header(task, style), Tensors(report, style), Ablation(report, style),
                      Summary(report, style), Artifacts(task, style), ControlText(task, style),
                      "\n");
}

std::string BundleText(const v1::VerdictReport& report, const Style& style) {
  std::string out = absl::StrCat(Fact("recorded", report.recorded().sentence(), style),
                                 Fact("recomputed", report.recomputed().sentence(), style),
                                 Fact("agree", report.agrees() ? "yes" : "NO", style), "\n");
  Table table({{"file"}, {""}, {"sha256"}});
  for (const v1::VerdictReport::File& file : report.files()) {
    table.AddRow({Cell(file.path()),
                  file.passed() ? Cell(style.Pass(), Ink::kGood) : Cell(style.Fail(), Ink::kBad),
                  Cell(file.sha256(), Ink::kFaint)});
  }
  for (const std::string& path : report.missing()) {
    table.AddRow({Cell(path, Ink::kBad), Cell(style.Fail(), Ink::kBad), Cell("missing")});
  }
  return absl::StrCat(out, table.Render(style), "\n");
}

}  // namespace plumbline::client
