#include "client/report_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/block_replay_text.h"
#include "client/checkpoint_text.h"
#include "client/decode_text.h"
#include "client/full_model_text.h"
#include "client/generation_text.h"
#include "client/layout_text.h"
#include "client/measure_text.h"
#include "client/quality_text.h"
#include "client/rule_text.h"
#include "client/sweep_text.h"
#include "client/table.h"
#include "client/tensor_files_text.h"
#include "client/verdict_text.h"
#include "common/proto_json.h"

namespace plumbline::client {
namespace {

std::string KindTitle(v1::JobKind kind) {
  switch (kind) {
    case v1::JOB_KIND_BLOCK_REPLAY:
      return "Block replay";
    case v1::JOB_KIND_FULL_MODEL:
      return "Full model";
    case v1::JOB_KIND_GENERATION:
      return "Generation";
    case v1::JOB_KIND_DIAGNOSTIC:
      return "First-step diagnostic";
    case v1::JOB_KIND_DECODE:
      return "Decoding";
    case v1::JOB_KIND_SWEEP:
      return "Sweep";
    case v1::JOB_KIND_RULE:
      return "Rule";
    case v1::JOB_KIND_VERDICT:
      return "Verdict of a bundle";
    case v1::JOB_KIND_COMPARISON:
      return "Comparison";
    case v1::JOB_KIND_CHECKPOINT:
      return "Checkpoint";
    case v1::JOB_KIND_SELFTEST:
      return "Self-test";
    case v1::JOB_KIND_LAYOUT:
      return "Packed layout";
    default:
      return absl::StrCat("Report of a ", JobKindText(kind), " job");
  }
}

std::string Title(const v1::Report& report, const Style& style) {
  std::string out = style.Paint(Ink::kStrong, KindTitle(report.kind()));
  const auto add = [&](absl::string_view fact) {
    absl::StrAppend(&out, "  ", style.Dot(), "  ", fact);
  };
  if (!report.job().empty()) add(report.job());
  const v1::JobSpec& spec = report.spec();
  if (!spec.checkpoint().empty()) add(spec.checkpoint());
  if (!spec.inject().empty()) add(absl::StrCat("with fault ", spec.inject()));
  return absl::StrCat(out, "\n\n");
}

std::string PackedLayoutText(const v1::LayoutReport& report, const Style& style) {
  std::string out =
      absl::StrCat("Layout ", LayoutSizes(report.layout()), ": ", CountText(report.rows()),
                   " rows: ", CountText(report.text_rows()), " text, ",
                   CountText(report.keyframe_rows()), " keyframe, ", CountText(report.audio_rows()),
                   " audio, ", CountText(report.video_rows()), " video\n\n");
  Table table({{"tensor"}, {"type"}, {"shape"}, {"sha256"}});
  for (const v1::LayoutReport::Tensor& tensor : report.tensors()) {
    table.AddRow({Cell(tensor.name()), Cell(tensor.dtype()),
                  Cell(absl::StrCat("(", absl::StrJoin(tensor.shape(), ", "), ")")),
                  Cell(tensor.sha256(), Ink::kFaint)});
  }
  return absl::StrCat(out, table.Render(style), "\n");
}

std::string TaskText(const v1::TaskReport& task, const Style& style) {
  switch (task.kind_case()) {
    case v1::TaskReport::kBlockReplay:
      return BlockReplayText(task, style);
    case v1::TaskReport::kTensorFiles:
      return absl::StrCat(TensorFilesText(task.tensor_files(), style), "\n");
    case v1::TaskReport::kLayout:
      return PackedLayoutText(task.layout(), style);
    case v1::TaskReport::kFullModel:
      return FullModelText(task, style);
    case v1::TaskReport::kGeneration:
      return GenerationText(task, style);
    case v1::TaskReport::kDecode:
      return DecodeText(task, style);
    case v1::TaskReport::kDiagnostic:
      return DiagnosticText(task, style);
    case v1::TaskReport::kMedia:
      return MediaText(task, style);
    case v1::TaskReport::kGenerationComparison:
      return GenerationComparisonText(task, style);
    case v1::TaskReport::kSweep:
      return SweepText(task, style);
    case v1::TaskReport::kCheckpoint:
      return CheckpointText(task.checkpoint(), style);
    case v1::TaskReport::kSelftest:
      return SelftestText(task.selftest(), style);
    case v1::TaskReport::kRecomputedVerdict:
      return BundleText(task.recomputed_verdict(), style);
    case v1::TaskReport::kRule:
      return RuleReportText(task.rule(), style);
    default:
      return absl::StrCat(task.title(), ": see --format=json for all figures\n");
  }
}

}  // namespace

std::string ReportText(const v1::Report& report, const Style& style) {
  std::string out = Title(report, style);
  for (const v1::TaskReport& task : report.tasks()) absl::StrAppend(&out, TaskText(task, style));
  if (report.state() != v1::JOB_STATE_SUCCEEDED) {
    absl::StrAppend(&out, "The job is ", JobStateText(report.state()),
                    "; this is what its finished tasks report.\n");
  }
  return absl::StrCat(out, VerdictText(report.verdict(), style));
}

absl::StatusOr<std::string> ReportJson(const v1::Report& report) { return MessageJson(report); }

absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  return ProtoJson(message, options);
}

absl::StatusOr<std::string> MessageJsonLine(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  return ProtoJson(message, options);
}

}  // namespace plumbline::client
