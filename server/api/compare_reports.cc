// Two jobs side by side, from their reports alone.
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/plumbline/v1/comparison.pb.h"
#include "server/api/report.h"

namespace plumbline::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// What two specifications differ in, leaf by leaf.
class DifferenceCollector final : public google::protobuf::util::MessageDifferencer::Reporter {
 public:
  using Path = std::vector<google::protobuf::util::MessageDifferencer::SpecificField>;

  explicit DifferenceCollector(v1::JobComparison* to) : to_(to) {}

  void ReportAdded(const Message& a, const Message& b, const Path& path) override {
    Add(path, "", Value(b, path, /*second=*/true));
  }
  void ReportDeleted(const Message& a, const Message& b, const Path& path) override {
    Add(path, Value(a, path, /*second=*/false), "");
  }
  void ReportModified(const Message& a, const Message& b, const Path& path) override {
    // Of a message that differs, what differs in it has been told already.
    const FieldDescriptor* const field = path.back().field;
    if (field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return;
    Add(path, Value(a, path, /*second=*/false), Value(b, path, /*second=*/true));
  }

 private:
  // The field that a path ends with, as JSON. `message` is what holds that field.
  static std::string Value(const Message& message, const Path& path, bool second) {
    const auto& last = path.back();
    if (last.field == nullptr) return "";
    const int index = !last.field->is_repeated() ? -1 : (second ? last.new_index : last.index);
    std::string text;
    if (last.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      google::protobuf::TextFormat::PrintFieldValueToString(message, last.field, index, &text);
      return text;
    }
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    const Message* const entry = second ? last.map_entry2 : last.map_entry1;
    const Message& value = entry != nullptr ? *entry
                           : index >= 0 ? reflection.GetRepeatedMessage(message, last.field, index)
                                        : reflection.GetMessage(message, last.field);
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    return google::protobuf::util::MessageToJsonString(value, &text, options).ok() ? text : "";
  }

  void Add(const Path& path, std::string a, std::string b) {
    std::string name;
    for (const auto& part : path) {
      if (part.field == nullptr) continue;
      absl::StrAppend(&name, name.empty() ? "" : ".", part.field->name());
      if (part.field->is_map()) {
        // The key, which is the entry's first field.
        const Message* const entry = part.map_entry1 != nullptr ? part.map_entry1 : part.map_entry2;
        if (entry == nullptr) continue;
        std::string key;
        google::protobuf::TextFormat::PrintFieldValueToString(
            *entry, entry->GetDescriptor()->field(0), -1, &key);
        absl::StrAppend(&name, "[", key, "]");
      } else if (part.field->is_repeated()) {
        absl::StrAppend(&name, "[", part.index >= 0 ? part.index : part.new_index, "]");
      }
    }
    v1::JobComparison::SpecDifference& difference = *to_->add_spec_differences();
    difference.set_field(name);
    difference.set_a(std::move(a));
    difference.set_b(std::move(b));
  }

  v1::JobComparison* const to_;
};

void CompareSpecs(const v1::Report& a, const v1::Report& b, v1::JobComparison* comparison) {
  google::protobuf::util::MessageDifferencer differencer;
  DifferenceCollector collector(comparison);
  differencer.ReportDifferencesTo(&collector);
  differencer.Compare(a.spec(), b.spec());
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

void CompareEntries(const std::string& task, const v1::EntryReport& a, const v1::EntryReport& b,
                    v1::JobComparison* comparison) {
  const std::vector<std::pair<std::string, double>> of_b = Figures(b);
  for (const auto& [measure, value] : Figures(a)) {
    for (const auto& [other_measure, other_value] : of_b) {
      if (measure != other_measure) continue;
      v1::JobComparison::Row& row = *comparison->add_rows();
      row.set_task(task);
      row.set_entry(a.name());
      row.set_measure(measure);
      row.set_a(value);
      row.set_b(other_value);
      if (!a.sha256().empty() && !b.sha256().empty()) row.set_bytes_equal(a.sha256() == b.sha256());
      row.set_passed_a(a.passed());
      row.set_passed_b(b.passed());
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

  using Entries = std::map<std::pair<std::string, std::string>, const v1::EntryReport*>;
  const auto entries_of = [](const v1::Report& report) {
    Entries entries;
    for (const v1::TaskReport& task : report.tasks()) {
      for (const v1::EntryReport& entry : task.block_replay().entries()) {
        entries[{task.title(), entry.name()}] = &entry;
      }
    }
    return entries;
  };
  const Entries of_a = entries_of(a);
  const Entries of_b = entries_of(b);
  // In report order, which the maps do not keep.
  for (const v1::TaskReport& task : a.tasks()) {
    for (const v1::EntryReport& entry : task.block_replay().entries()) {
      const auto other = of_b.find({task.title(), entry.name()});
      if (other == of_b.end()) {
        comparison.add_only_a(absl::StrCat(task.title(), ": ", entry.name()));
      } else {
        CompareEntries(task.title(), entry, *other->second, &comparison);
      }
    }
  }
  for (const v1::TaskReport& task : b.tasks()) {
    for (const v1::EntryReport& entry : task.block_replay().entries()) {
      if (of_a.count({task.title(), entry.name()}) == 0) {
        comparison.add_only_b(absl::StrCat(task.title(), ": ", entry.name()));
      }
    }
  }
  return comparison;
}

}  // namespace plumbline::server
