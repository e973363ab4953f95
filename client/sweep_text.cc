#include "client/sweep_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/layout_text.h"
#include "client/measure_text.h"
#include "client/table.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;
using Distribution = v1::SweepReport::Distribution;

std::string Units(double value) { return absl::StrFormat("%.2f", value); }

Cell FailedCell(const Distribution& distribution) {
  if (distribution.failed() == 0) return Cell("0", Ink::kFaint);
  return Cell(absl::StrCat(distribution.failed(), " of ", distribution.samples()), Ink::kBad);
}

}  // namespace

std::string SweepText(const v1::TaskReport& task, const Style& style) {
  const v1::SweepReport& report = task.sweep();
  Table leaves({{"leaf"},
                {"min", Align::kRight},
                {"p50", Align::kRight},
                {"p90", Align::kRight},
                {"max", Align::kRight},
                {"fail the gate"}});
  // Of each hybrid the leaf that is furthest beyond the provider.
  std::vector<const Distribution*> hybrids;
  for (const Distribution& distribution : report.distributions()) {
    if (distribution.composition() == task.composition()) {
      leaves.AddRow({Cell(distribution.leaf()), Units(distribution.min()),
                     Units(distribution.p50()), Units(distribution.p90()),
                     Units(distribution.max()), FailedCell(distribution)});
    } else if (hybrids.empty() || hybrids.back()->composition() != distribution.composition()) {
      hybrids.push_back(&distribution);
    } else if (distribution.max() > hybrids.back()->max()) {
      hybrids.back() = &distribution;
    }
  }
  const int seeds = report.distributions().empty() ? 0 : report.distributions(0).samples();
  std::string out = absl::StrCat(
      style.Paint(Ink::kStrong, absl::StrCat("Layout ", LayoutText(report.layout()))), "  ",
      style.Dot(), "  ", seeds, " seeds\n",
      style.Paint(Ink::kFaint, absl::StrCat("Largest error of ", task.composition(),
                                            " less provider/default's, over the seeds, in u: the\n"
                                            "spacing of the leaf's own type, which is far finer of "
                                            "float32 leaves (leaf.temb)")),
      "\n\n", leaves.Render(style), "\n");
  if (hybrids.empty()) return out;
  Table table({{"hybrid"},
               {"worst leaf"},
               {"p50", Align::kRight},
               {"max", Align::kRight},
               {"fail the gate"}});
  for (const Distribution* hybrid : hybrids) {
    table.AddRow({Cell(hybrid->composition()), Cell(hybrid->leaf()), Units(hybrid->p50()),
                  Units(hybrid->max()), FailedCell(*hybrid)});
  }
  return absl::StrCat(out, table.Render(style), "\n");
}

}  // namespace plumbline::client
