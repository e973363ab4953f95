#include "client/tensor_files_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/measure_text.h"
#include "client/table.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;

std::string NonfiniteText(const v1::TensorComparison::Nonfinite& found) {
  const int64_t a = found.nan() + found.infinity();
  const int64_t b = found.reference_nan() + found.reference_infinity();
  if (a + b == 0) return "none";
  return absl::StrCat("A ", CountText(found.nan()), " NaN and ", CountText(found.infinity()),
                      " infinite, B ", CountText(found.reference_nan()), " NaN and ",
                      CountText(found.reference_infinity()), " infinite");
}

std::string TypesText(const v1::TensorComparison& comparison) {
  std::string text = comparison.dtype();
  if (comparison.reference_dtype() != comparison.dtype()) {
    absl::StrAppend(&text, " against ", comparison.reference_dtype());
  }
  return absl::StrCat(text, " ", ShapeText(comparison));
}

void AddTensor(const v1::NamedComparison& tensor, const Style& style, Table* table) {
  const v1::TensorComparison& measures = tensor.comparison();
  if (!measures.incomparable().empty()) {
    table->AddRow({Cell(tensor.name(), Ink::kBad), Cell("cannot be compared", Ink::kBad)});
    table->AddNote(absl::StrCat(style.Arrow(), " ", measures.incomparable()), Ink::kBad);
    return;
  }
  const bool equal = measures.bitwise_equal();
  table->AddRow({Cell(tensor.name()), equal ? Cell("equal", Ink::kGood) : Cell("differs"),
                 MeasureText(measures.relative_l2()), MeasureText(measures.max_abs()),
                 RatioText(measures.max_u()), absl::StrFormat("%.9f", measures.cosine())});
  std::string first = absl::StrCat(style.Arrow(), " ", TypesText(measures), ", norms ",
                                   absl::StrFormat("%.6g", measures.norm()), " and ",
                                   absl::StrFormat("%.6g", measures.reference_norm()),
                                   measures.zero_reference() ? " (zero reference)" : "",
                                   ", not finite: ", NonfiniteText(measures.nonfinite()));
  table->AddNote(first, Ink::kFaint);
  if (!equal) {
    const v1::TensorComparison::Percentiles& percentiles = measures.abs_diff();
    table->AddNote(
        absl::StrCat("   abs_diff p50 ", MeasureText(percentiles.p50()), ", p90 ",
                     MeasureText(percentiles.p90()), ", p99 ", MeasureText(percentiles.p99()),
                     ", p99.9 ", MeasureText(percentiles.p99_9())),
        Ink::kFaint);
    std::string where =
        absl::StrCat("   ", CountText(measures.differing_elements()), " elements differ");
    if (measures.has_first_differing_row()) {
      absl::StrAppend(&where, ", first in ", RowText(measures.first_differing_row()));
    }
    table->AddNote(where, Ink::kFaint);
  }
  table->AddNote(absl::StrCat("   sha256 ", measures.sha256()), Ink::kFaint);
  if (measures.reference_sha256() != measures.sha256()) {
    table->AddNote(absl::StrCat("      and ", measures.reference_sha256()), Ink::kFaint);
  }
}

}  // namespace

std::string TensorFilesText(const v1::TensorFilesReport& report, const Style& style) {
  Table table({{"tensor"},
               {"bytes"},
               {"relative_l2", Align::kRight},
               {"max_abs", Align::kRight},
               {"max_u", Align::kRight},
               {"cosine", Align::kRight}});
  for (const v1::NamedComparison& tensor : report.tensors()) AddTensor(tensor, style, &table);
  std::string out = absl::StrCat(table.Render(style), "\n");
  if (report.only_a_size() > 0) {
    absl::StrAppend(&out, "  only in A: ", absl::StrJoin(report.only_a(), ", "), "\n");
  }
  if (report.only_b_size() > 0) {
    absl::StrAppend(&out, "  only in B: ", absl::StrJoin(report.only_b(), ", "), "\n");
  }
  if (report.bitwise_equal()) {
    absl::StrAppend(&out, "  ", style.Paint(Ink::kGood, "A and B are equal"), ": ",
                    report.tensors_size(), " tensors.\n");
  } else {
    absl::StrAppend(&out, "  ", style.Paint(Ink::kNotice, "A and B differ"), ": ",
                    report.different(), " of ", report.tensors_size(), " tensors that both have");
    const int alone = report.only_a_size() + report.only_b_size();
    if (alone > 0) absl::StrAppend(&out, ", and ", alone, " that only one has");
    absl::StrAppend(&out, ".\n");
  }
  return out;
}

}  // namespace plumbline::client
