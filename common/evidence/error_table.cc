#include "common/evidence/error_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/evidence/canonical_json.h"
#include "common/evidence/csv.h"

namespace plumbline {
namespace {

class Table {
 public:
  Table()
      : csv_({"task", "order", "tensor", "side", "relative_l2", "max_abs", "bound", "bound_ratio",
              "passed"}) {}

  // One task's tensors follow.
  void StartTask(const std::string& title) {
    task_ = title;
    order_ = 0;
  }
  void NextTensor() { ++order_; }

  void AddSide(const std::string& tensor, absl::string_view side,
               const v1::TensorComparison& error) {
    AddError(tensor, side, error, "", "", "");
  }

  void AddError(const std::string& tensor, absl::string_view side,
                const v1::TensorComparison& error, absl::string_view bound,
                absl::string_view bound_ratio, absl::string_view passed) {
    const bool measured = error.incomparable().empty();
    const std::string order = absl::StrCat(order_);
    const std::string relative_l2 = measured ? CanonicalDouble(error.relative_l2()) : "";
    const std::string max_abs = measured ? CanonicalDouble(error.max_abs()) : "";
    csv_.AddLine({task_, order, tensor, side, relative_l2, max_abs, bound, bound_ratio, passed});
  }

  std::string Take() { return csv_.Take(); }

 private:
  CsvText csv_;
  std::string task_;
  int order_ = 0;
};

absl::string_view YesOrNo(bool passed) { return passed ? "true" : "false"; }

void AddFullModel(const v1::FullModelReport& report, Table* table) {
  for (const v1::FullModelTensor& tensor : report.tensors()) {
    for (int i = 0; i < tensor.provider_errors_size() && i < report.providers_size(); ++i) {
      table->AddSide(tensor.name(), report.providers(i).name(), tensor.provider_errors(i));
    }
    if (tensor.has_candidate_error()) {
      table->AddError(tensor.name(), "candidate", tensor.candidate_error(),
                      CanonicalDouble(tensor.bound()), CanonicalDouble(tensor.bound_ratio()),
                      YesOrNo(tensor.passed()));
    }
    table->NextTensor();
  }
}

void AddBlockReplay(const v1::BlockReplayReport& report, Table* table) {
  for (const v1::EntryReport& entry : report.entries()) {
    table->AddSide(entry.name(), "provider/default", entry.provider_error());
    table->AddError(entry.name(), "candidate", entry.chained_error(), "", "",
                    YesOrNo(entry.passed()));
    if (entry.has_isolated_error()) {
      table->AddSide(entry.name(), "candidate, isolated", entry.isolated_error());
    }
    table->NextTensor();
  }
}

}  // namespace

std::string ErrorTableCsv(const v1::Report& report) {
  Table table;
  for (const v1::TaskReport& task : report.tasks()) {
    table.StartTask(task.title());
    if (task.has_full_model()) AddFullModel(task.full_model(), &table);
    if (task.has_block_replay()) AddBlockReplay(task.block_replay(), &table);
  }
  return table.Take();
}

}  // namespace plumbline
