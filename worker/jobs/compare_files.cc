#include "worker/jobs/compare_files.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/drift/compare.h"
#include "worker/drift/row_names.h"
#include "worker/h3/capture_reader.h"
#include "worker/h3/packed_layout.h"

namespace plumbline::jobs {
namespace {

absl::StatusOr<SafetensorsFile> Open(const std::string& path,
                                     const std::vector<std::string>& shard_roots,
                                     absl::string_view field) {
  SafetensorsOptions options;
  options.shard_roots = shard_roots;
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path, options);
  if (!file.ok()) return AnnotateStatus(file.status(), field);
  return file;
}

std::vector<std::string> SortedNames(const SafetensorsFile& file) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : file.tensors()) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  return names;
}

// What the rows of tensors are: those of the packed layout that a file holds.
class RowNames {
 public:
  explicit RowNames(const SafetensorsFile& file) {
    h3::CaptureReader reader(file);
    reader.ReadLayout(&layout_);
    has_layout_ = reader.status().ok();
  }

  drift::RowNamer Of(const drift::ComparedTensor& tensor) const {
    const bool packed =
        has_layout_ && tensor.shape.size() > 1 && tensor.tensor.rows == layout_.Rows();
    return packed ? drift::PackedRowNamer(layout_) : drift::NameOtherRow;
  }

 private:
  h3::PackedLayout layout_;
  bool has_layout_ = false;
};

drift::ComparedTensor Compared(const SafetensorsFile& file, const TensorInfo& tensor) {
  return drift::AsComparedTensor(file.Bytes(tensor).data(), tensor.dtype, tensor.shape);
}

// What is known of a tensor that is not compared.
v1::NamedComparison NotCompared(const TensorInfo& a, const TensorInfo* b, std::string why) {
  v1::NamedComparison named;
  named.set_name(a.name);
  v1::TensorComparison& comparison = *named.mutable_comparison();
  comparison.set_reference("B");
  comparison.set_subject("A");
  comparison.set_incomparable(std::move(why));
  for (int64_t extent : a.shape) comparison.add_shape(extent);
  comparison.set_dtype(std::string(DTypeName(a.dtype)));
  comparison.set_reference_dtype(std::string(DTypeName(b->dtype)));
  return named;
}

// Fills in what the sets of names and the shapes say. True if both are the same.
bool CompareStructure(const SafetensorsFile& a, const SafetensorsFile& b,
                      v1::TensorFilesReport* report) {
  const std::vector<std::string> names_a = SortedNames(a);
  const std::vector<std::string> names_b = SortedNames(b);
  std::vector<std::string> only_a, only_b;
  std::set_difference(names_a.begin(), names_a.end(), names_b.begin(), names_b.end(),
                      std::back_inserter(only_a));
  std::set_difference(names_b.begin(), names_b.end(), names_a.begin(), names_a.end(),
                      std::back_inserter(only_b));
  report->mutable_only_a()->Add(only_a.begin(), only_a.end());
  report->mutable_only_b()->Add(only_b.begin(), only_b.end());
  for (const std::string& name : names_a) {
    const TensorInfo* const tensor_a = a.Find(name);
    const TensorInfo* const tensor_b = b.Find(name);
    if (tensor_b == nullptr || tensor_a->shape == tensor_b->shape) continue;
    *report->add_tensors() =
        NotCompared(*tensor_a, tensor_b,
                    absl::StrCat("shape ", drift::ShapeText(tensor_a->shape), " against ",
                                 drift::ShapeText(tensor_b->shape)));
  }
  report->set_different(report->tensors_size());
  return only_a.empty() && only_b.empty() && report->tensors().empty();
}

bool IsFinite(const v1::TensorComparison& comparison) {
  const v1::TensorComparison::Nonfinite& counts = comparison.nonfinite();
  return counts.nan() == 0 && counts.infinity() == 0 && counts.reference_nan() == 0 &&
         counts.reference_infinity() == 0;
}

v1::Verdict Failed(std::string sentence, absl::string_view entry, absl::string_view gate) {
  v1::Verdict verdict;
  verdict.set_outcome(v1::OUTCOME_FAILED);
  verdict.set_sentence(std::move(sentence));
  verdict.mutable_first_failure()->set_entry(std::string(entry));
  verdict.mutable_first_failure()->set_gate(std::string(gate));
  return verdict;
}

v1::Verdict JudgeStructure(const v1::TensorFilesReport& report) {
  if (!report.only_a().empty() || !report.only_b().empty()) {
    const std::string& first = report.only_a().empty() ? report.only_b(0) : report.only_a(0);
    return Failed(
        absl::StrCat("FAILED: the sets of names differ: ", report.only_a_size(), " in A alone, ",
                     report.only_b_size(), " in B alone; nothing was compared."),
        first, "shape");
  }
  const v1::NamedComparison& first = report.tensors(0);
  return Failed(
      absl::StrCat("FAILED: ", report.tensors_size(), " shapes differ, first ", first.name(), ": ",
                   first.comparison().incomparable(), "; nothing was compared."),
      first.name(), "shape");
}

v1::Verdict JudgeValues(const v1::TensorFilesReport& report) {
  const v1::NamedComparison* worst = nullptr;
  for (const v1::NamedComparison& named : report.tensors()) {
    const v1::TensorComparison& comparison = named.comparison();
    if (!comparison.incomparable().empty()) {
      return Failed(absl::StrCat("FAILED: ", named.name(), ": ", comparison.incomparable(), "."),
                    named.name(), "shape");
    }
    if (!IsFinite(comparison)) {
      return Failed(absl::StrCat("FAILED: ", named.name(), " holds values that are not finite."),
                    named.name(), "finite");
    }
    if (worst == nullptr || comparison.relative_l2() > worst->comparison().relative_l2()) {
      worst = &named;
    }
  }
  v1::Verdict verdict;
  if (report.bitwise_equal()) {
    verdict.set_outcome(v1::OUTCOME_PASSED);
    verdict.set_sentence(
        absl::StrCat("PASSED: all values of ", report.tensors_size(), " tensors are equal."));
    return verdict;
  }
  verdict.set_outcome(v1::OUTCOME_NOT_JUDGED);
  verdict.set_sentence(absl::StrFormat(
      "NOT JUDGED: %d of %d tensors differ, by a relative L2 of at most %.3g (%s).",
      report.different(), report.tensors_size(), worst->comparison().relative_l2(), worst->name()));
  return verdict;
}

}  // namespace

absl::StatusOr<FileComparison> CompareFiles(const std::string& path_a, const std::string& path_b,
                                            const std::vector<std::string>& shard_roots,
                                            int threads, const JobContext& context) {
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile a,
                             Open(path_a, shard_roots, "comparison.tensors.a"));
  PLUMBLINE_ASSIGN_OR_RETURN(const SafetensorsFile b,
                             Open(path_b, shard_roots, "comparison.tensors.b"));
  FileComparison result;
  if (!CompareStructure(a, b, &result.report)) {
    result.verdict = JudgeStructure(result.report);
    return result;
  }
  ThreadPool pool(threads);
  const RowNames row_names(b);
  v1::Progress progress;
  progress.set_unit("tensors");
  progress.set_total(static_cast<int64_t>(a.tensors().size()));
  for (const std::string& name : SortedNames(a)) {
    PLUMBLINE_RETURN_IF_ERROR(context.check_cancelled());
    progress.set_activity(absl::StrCat("comparing ", name));
    context.on_progress(progress);
    const drift::ComparedTensor reference = Compared(b, *b.Find(name));
    v1::NamedComparison& named = *result.report.add_tensors();
    named.set_name(name);
    *named.mutable_comparison() = drift::CompareTensors(
        "B", reference, "A", Compared(a, *a.Find(name)), row_names.Of(reference), pool);
    if (!named.comparison().bitwise_equal()) {
      result.report.set_different(result.report.different() + 1);
    }
    progress.set_done(progress.done() + 1);
  }
  context.on_progress(progress);
  result.report.set_bitwise_equal(result.report.different() == 0);
  result.verdict = JudgeValues(result.report);
  return result;
}

}  // namespace plumbline::jobs
