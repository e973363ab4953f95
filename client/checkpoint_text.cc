#include "client/checkpoint_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/facts.h"
#include "client/measure_text.h"
#include "client/table.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;

absl::string_view LayoutText(v1::CheckpointLayout layout) {
  switch (layout) {
    case v1::CHECKPOINT_LAYOUT_DIFFUSERS:
      return "released (diffusers)";
    case v1::CHECKPOINT_LAYOUT_NATIVE:
      return "native (MiniMax)";
    case v1::CHECKPOINT_LAYOUT_SYNTHETIC:
      return "computed, not read";
    default:
      return "unknown";
  }
}

Cell Mark(bool passed, const Style& style) {
  return passed ? Cell(style.Pass(), Ink::kGood) : Cell(style.Fail(), Ink::kBad);
}

std::string FilesText(const v1::CheckpointReport& report, const Style& style) {
  if (report.files().empty()) return "";
  Table table({{"file"}, {"size", Align::kRight}, {""}, {"sha256"}});
  for (const v1::CheckpointReport::File& file : report.files()) {
    table.AddRow({Cell(Printable(file.path())), BytesText(file.size_bytes()),
                  Mark(file.passed(), style),
                  Cell(file.sha256().empty() ? "-" : file.sha256(), Ink::kFaint)});
  }
  return absl::StrCat(table.Render(style), "\n");
}

std::string FindingsText(const v1::CheckpointReport& report, const Style& style) {
  if (report.findings().empty()) return "";
  Table table({{"finding"}, {"tensor or file"}});
  for (const v1::CheckpointFinding& finding : report.findings()) {
    const std::string kind = v1::CheckpointFinding::Kind_Name(finding.kind()).substr(5);
    table.AddRow({Cell(kind, Ink::kBad),
                  Cell(Printable(finding.tensor().empty() ? finding.file() : finding.tensor()))});
    table.AddNote(Printable(finding.tensor().empty() || finding.file().empty()
                                ? finding.message()
                                : absl::StrCat(finding.message(), " [", finding.file(), "]")),
                  Ink::kPlain);
  }
  return absl::StrCat(table.Render(style), "\n");
}

}  // namespace

std::string CheckpointText(const v1::CheckpointReport& report, const Style& style) {
  std::string out = Fact("layout", LayoutText(report.layout()), style);
  absl::StrAppend(
      &out, Fact("weights",
                 report.sha256().empty() ? "no digest: a tensor is missing or not as it should be"
                                         : absl::StrCat("sha256 ", report.sha256()),
                 style));
  absl::StrAppend(&out,
                  Fact("read",
                       absl::StrCat(BytesText(report.bytes_read()), ", each byte once; ",
                                    CountText(report.tensors_size()), " tensors"),
                       style),
                  "\n", FilesText(report, style), FindingsText(report, style));
  return out;
}

std::string SelftestText(const v1::SelftestReport& report, const Style& style) {
  std::string out = Fact("device", report.device().device_class(), style);
  absl::StrAppend(
      &out,
      Fact("kernels",
           JoinFacts({report.kernel_identity().sha256().substr(0, 16),
                      report.kernel_identity().compiler(), report.kernel_identity().architecture()},
                     style),
           style),
      "\n");
  Table table({{""}, {"check"}, {"job"}, {"expected"}, {"found"}});
  for (const v1::SelftestReport::Row& row : report.rows()) {
    const bool skipped = !row.skipped().empty();
    table.AddRow({skipped ? Cell("-", Ink::kFaint) : Mark(row.passed(), style),
                  Cell(absl::StrCat(row.kind(), " ", row.name())),
                  Cell(row.job_kind(), Ink::kFaint), Cell(row.expected()),
                  Cell(Printable(skipped ? row.skipped() : row.found()),
                       row.passed() || skipped ? Ink::kPlain : Ink::kBad)});
  }
  return absl::StrCat(out, table.Render(style), "\n");
}

}  // namespace plumbline::client
