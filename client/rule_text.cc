#include "client/rule_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/measure_text.h"
#include "client/table.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;

// Of a digest in a line; the whole one is in the file.
constexpr size_t kDigestCharacters = 16;

std::string ShortDigest(const std::string& digest) { return digest.substr(0, kDigestCharacters); }

// "provider/sdpa-math" without what all have.
std::string ShortProvider(absl::string_view name) {
  return std::string(absl::StripPrefix(name, "provider/"));
}

std::string FactorText(double k) { return absl::StrFormat("%.1f", k); }

std::string Head(const v1::Rule& rule, absl::string_view title, const Style& style) {
  const bool manual = rule.origin() == v1::RULE_ORIGIN_MANUAL;
  const std::string separator = absl::StrCat("  ", style.Dot(), "  ");
  return absl::StrCat(
      style.Paint(Ink::kStrong, title), separator,
      manual ? style.Paint(Ink::kNotice, "manual") : std::string("frozen"), separator, "k ",
      FactorText(rule.k()), separator, CountText(rule.tensors_size()), " tensors", separator,
      "floors ", MeasureText(rule.floors().forward()), " forward, ",
      MeasureText(rule.floors().gradient()), " gradients\n", "  for ", rule.binds().device_class(),
      ", checkpoint ", ShortDigest(rule.binds().checkpoint_sha256()), ", inputs ",
      ShortDigest(rule.binds().inputs_sha256()), "\n  sha256 ", rule.sha256(), "\n\n");
}

const v1::Rule::HoldOut* FindHoldOut(const v1::Rule& rule, const std::string& provider, double k) {
  for (const v1::Rule::HoldOut& held : rule.leave_one_out()) {
    if (held.provider() == provider && FactorText(held.k()) == FactorText(k)) return &held;
  }
  return nullptr;
}

Cell HoldOutCell(const v1::Rule::HoldOut* held, const Style& style) {
  if (held == nullptr) return "";
  if (held->passed()) {
    return {absl::StrCat(style.Pass(), " ", RatioText(held->worst_ratio())), Ink::kGood};
  }
  return {absl::StrCat(style.Fail(), " ", RatioText(held->worst_ratio()), " (",
                       CountText(held->failing()), " over)"),
          Ink::kBad};
}

// Why k is what it is: the factor before it, if there is one, does not do.
std::string ProvidersText(const v1::Rule& rule, const Style& style) {
  std::vector<double> factors = {rule.k()};
  if (rule.k() > 1) factors.insert(factors.begin(), rule.k() - 0.1);
  std::vector<Table::Column> columns = {{"provider"}};
  for (double k : factors) columns.push_back({absl::StrCat("held out, k ", FactorText(k))});
  Table table(std::move(columns));
  for (const v1::RuleProvider& provider : rule.providers()) {
    std::vector<Cell> row = {Cell(provider.name(), provider.kept() ? Ink::kPlain : Ink::kFaint)};
    std::string note = absl::StrCat("dropped: ", provider.dropped_because());
    for (double k : factors) {
      const v1::Rule::HoldOut* const held = FindHoldOut(rule, provider.name(), k);
      row.push_back(HoldOutCell(held, style));
      if (held != nullptr) note = absl::StrCat("worst at ", held->worst_tensor());
    }
    table.AddRow(std::move(row));
    table.AddNote(absl::StrCat(style.Arrow(), " ", note), Ink::kFaint);
  }
  return absl::StrCat(table.Render(style), "\n");
}

std::string BoundsText(const v1::Rule& rule, const Style& style) {
  std::vector<std::string> kept;
  for (const v1::RuleProvider& provider : rule.providers()) {
    if (provider.kept()) kept.push_back(ShortProvider(provider.name()));
  }
  Table table({{"tensor"}, {"bound", Align::kRight}, {"largest", Align::kRight}, {"of"}});
  for (const v1::Rule::TensorBound& tensor : rule.tensors()) {
    const auto& errors = tensor.relative_l2();
    const auto largest = std::max_element(errors.begin(), errors.end());
    const size_t index = static_cast<size_t>(largest - errors.begin());
    if (largest == errors.end() || index >= kept.size()) continue;
    table.AddRow({Cell(tensor.name()), MeasureText(tensor.bound()), MeasureText(*largest),
                  Cell(kept[index])});
  }
  return absl::StrCat(table.Render(style), "\n");
}

std::string PairsText(const v1::RuleReport& report, const Style& style) {
  Table table({{"tensor"},
               {"bound A", Align::kRight},
               {"bound B", Align::kRight},
               {"B / A", Align::kRight}});
  for (const v1::RuleReport::BoundPair& pair : report.bounds()) {
    const bool both = pair.has_bound() && pair.has_other_bound();
    table.AddRow({Cell(pair.tensor()), pair.has_bound() ? MeasureText(pair.bound()) : "-",
                  pair.has_other_bound() ? MeasureText(pair.other_bound()) : "-",
                  both && pair.bound() > 0 ? RatioText(pair.other_bound() / pair.bound()) : "-"});
  }
  return absl::StrCat(table.Render(style), "\n");
}

}  // namespace

std::string RuleReportText(const v1::RuleReport& report, const Style& style) {
  if (!report.has_other()) {
    return absl::StrCat(Head(report.rule(), "Ensemble rule", style),
                        ProvidersText(report.rule(), style), BoundsText(report.rule(), style));
  }
  return absl::StrCat(Head(report.rule(), "Rule A", style), ProvidersText(report.rule(), style),
                      Head(report.other(), "Rule B", style), ProvidersText(report.other(), style),
                      PairsText(report, style));
}

}  // namespace plumbline::client
