// Two jobs side by side, from their reports alone.
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/json.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"
#include "proto/plumbline/v1/comparison.pb.h"
#include "server/api/report.h"

namespace plumbline::server {
namespace {

// "/block_replay/layouts/0/name" -> "block_replay.layouts[0].name".
std::string FieldPath(absl::string_view pointer) {
  std::string path;
  for (absl::string_view part : absl::StrSplit(absl::StripPrefix(pointer, "/"), '/')) {
    int64_t index = 0;
    if (absl::SimpleAtoi(part, &index)) {
      absl::StrAppend(&path, "[", part, "]");
    } else {
      absl::StrAppend(&path, path.empty() ? "" : ".", part);
    }
  }
  return path;
}

// Every field of a specification, by its path, as JSON.
std::map<std::string, std::string> FieldsOf(const v1::JobSpec& spec) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::map<std::string, std::string> fields;
  if (!google::protobuf::util::MessageToJsonString(spec, &text, options).ok()) return fields;
  const absl::StatusOr<nlohmann::json> json = ParseJson(text, "the specification");
  if (!json.ok()) return fields;
  const nlohmann::json flat = json->flatten();
  for (const auto& [pointer, value] : flat.items()) {
    fields[FieldPath(pointer)] = value.dump();
  }
  return fields;
}

void CompareSpecs(const v1::Report& a, const v1::Report& b, v1::JobComparison* comparison) {
  std::map<std::string, std::pair<std::string, std::string>> fields;
  for (auto& [path, value] : FieldsOf(a.spec())) fields[path].first = value;
  for (auto& [path, value] : FieldsOf(b.spec())) fields[path].second = value;
  for (const auto& [path, values] : fields) {
    if (values.first == values.second) continue;
    v1::JobComparison::SpecDifference& difference = *comparison->add_spec_differences();
    difference.set_field(path);
    difference.set_a(values.first);
    difference.set_b(values.second);
  }
}

void CompareIdentities(const v1::Report& a, const v1::Report& b, v1::JobComparison* comparison) {
  if (a.tasks().empty() || b.tasks().empty()) return;
  std::map<std::string, std::pair<std::string, std::string>> parts;
  for (const v1::IdentityPart& part : a.tasks(0).identity().parts()) {
    parts[part.name()].first = part.value();
  }
  for (const v1::IdentityPart& part : b.tasks(0).identity().parts()) {
    parts[part.name()].second = part.value();
  }
  for (const auto& [name, values] : parts) {
    if (values.first == values.second) continue;
    v1::IdentityDifference& difference = *comparison->add_identity_differences();
    difference.set_part(name);
    difference.set_a(values.first);
    difference.set_b(values.second);
  }
}

// The figures of one entry that are there.
std::vector<std::pair<std::string, double>> Figures(const v1::EntryReport& entry) {
  std::vector<std::pair<std::string, double>> figures;
  const auto add = [&figures](const char* name, bool is_set, const v1::TensorComparison& from) {
    if (!is_set || !from.incomparable().empty()) return;
    figures.emplace_back(absl::StrCat(name, ".relative_l2"), from.relative_l2());
    figures.emplace_back(absl::StrCat(name, ".max_abs"), from.max_abs());
    figures.emplace_back(absl::StrCat(name, ".max_u"), from.max_u());
  };
  add("chained", entry.has_chained(), entry.chained());
  add("isolated", entry.has_isolated(), entry.isolated());
  add("chained_error", entry.has_chained_error(), entry.chained_error());
  add("isolated_error", entry.has_isolated_error(), entry.isolated_error());
  add("provider_error", entry.has_provider_error(), entry.provider_error());
  figures.emplace_back("error_ratio", entry.error_ratio());
  return figures;
}

// The figures of a full model's tensor, by their names in the report.
std::vector<std::pair<std::string, double>> Figures(const v1::FullModelTensor& tensor) {
  std::vector<std::pair<std::string, double>> figures;
  if (tensor.has_candidate_error()) {
    figures.emplace_back("candidate_error.relative_l2", tensor.candidate_error().relative_l2());
  }
  if (tensor.has_candidate_drift()) {
    figures.emplace_back("candidate_drift.relative_l2", tensor.candidate_drift().relative_l2());
  }
  if (tensor.bound() > 0) figures.emplace_back("bound", tensor.bound());
  return figures;
}

// What two reports are compared by: an entry of a block replay, a tensor of a full model.
struct Entry {
  std::string name;
  std::vector<std::pair<std::string, double>> figures;
  std::string sha256;  // empty: not known
  bool passed = false;
};

std::vector<Entry> EntriesOf(const v1::TaskReport& task) {
  std::vector<Entry> entries;
  for (const v1::EntryReport& entry : task.block_replay().entries()) {
    entries.push_back({entry.name(), Figures(entry), entry.sha256(), entry.passed()});
  }
  for (const v1::FullModelTensor& tensor : task.full_model().tensors()) {
    entries.push_back(
        {tensor.name(), Figures(tensor), tensor.candidate_error().sha256(), tensor.passed()});
  }
  return entries;
}

void CompareEntries(const std::string& task, const Entry& a, const Entry& b,
                    v1::JobComparison* comparison) {
  for (const auto& [measure, value] : a.figures) {
    for (const auto& [other_measure, other_value] : b.figures) {
      if (measure != other_measure) continue;
      v1::JobComparison::Row& row = *comparison->add_rows();
      row.set_task(task);
      row.set_entry(a.name);
      row.set_measure(measure);
      row.set_a(value);
      row.set_b(other_value);
      if (!a.sha256.empty() && !b.sha256.empty()) row.set_bytes_equal(a.sha256 == b.sha256);
      row.set_passed_a(a.passed);
      row.set_passed_b(b.passed);
    }
  }
}

}  // namespace

v1::JobComparison CompareReports(const v1::Report& a, const v1::Report& b) {
  v1::JobComparison comparison;
  comparison.set_a(a.job());
  comparison.set_b(b.job());
  *comparison.mutable_verdict_a() = a.verdict();
  *comparison.mutable_verdict_b() = b.verdict();
  CompareSpecs(a, b, &comparison);
  CompareIdentities(a, b, &comparison);

  using Entries = std::map<std::pair<std::string, std::string>, Entry>;
  const auto entries_of = [](const v1::Report& report) {
    Entries entries;
    for (const v1::TaskReport& task : report.tasks()) {
      for (Entry& entry : EntriesOf(task)) entries[{task.title(), entry.name}] = std::move(entry);
    }
    return entries;
  };
  const Entries of_a = entries_of(a);
  const Entries of_b = entries_of(b);
  // In report order, which the maps do not keep.
  for (const v1::TaskReport& task : a.tasks()) {
    for (const Entry& entry : EntriesOf(task)) {
      const auto other = of_b.find({task.title(), entry.name});
      if (other == of_b.end()) {
        comparison.add_only_a(absl::StrCat(task.title(), ": ", entry.name));
      } else {
        CompareEntries(task.title(), entry, other->second, &comparison);
      }
    }
  }
  for (const v1::TaskReport& task : b.tasks()) {
    for (const Entry& entry : EntriesOf(task)) {
      if (of_a.count({task.title(), entry.name}) == 0) {
        comparison.add_only_b(absl::StrCat(task.title(), ": ", entry.name));
      }
    }
  }
  return comparison;
}

}  // namespace plumbline::server
