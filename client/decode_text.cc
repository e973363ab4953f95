#include "client/decode_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/facts.h"
#include "client/measure_text.h"
#include "client/table.h"

namespace plumbline::client {
namespace {

std::string SecondsLine(const v1::DecodeReport& report) {
  return absl::StrCat("video ", MeasureText(report.video_seconds()), " s, audio ",
                      MeasureText(report.audio_seconds()), " s");
}

}  // namespace

std::string DecodedLine(const v1::DecodeReport& report) {
  std::string line;
  if (report.frames() > 0) {
    line = absl::StrCat(CountText(report.frames()), " frames of ", report.width(), " x ",
                        report.height());
  }
  if (report.samples() > 0) {
    absl::StrAppend(&line, line.empty() ? "" : ", ", CountText(report.samples()),
                    " samples a channel");
  }
  absl::StrAppend(&line, "; ", CountText(report.units()), report.units() == 1 ? " unit" : " units");
  if (report.units_kept() > 0) {
    absl::StrAppend(&line, ", ", CountText(report.units_kept()), " decoded before");
  }
  return line;
}

std::string DecodeText(const v1::TaskReport& task, const Style& style) {
  const v1::DecodeReport& report = task.decode();
  std::string out = style.Paint(Ink::kStrong, absl::StrCat("Latents of ", report.source()));
  absl::StrAppend(&out, "  ", style.Dot(), "  ", report.composition(), "\n\n");
  absl::StrAppend(&out, Fact("decoded", DecodedLine(report), style));
  if (report.frames() > 0) {
    absl::StrAppend(&out,
                    Fact("tiles",
                         absl::StrCat(report.tile_columns_size(), " x ", report.tile_rows_size(),
                                      ", from columns ", absl::StrJoin(report.tile_columns(), " "),
                                      " and lines ", absl::StrJoin(report.tile_rows(), " ")),
                         style));
  }
  absl::StrAppend(&out, Fact("time", SecondsLine(report), style));
  if (report.media_pending()) {
    absl::StrAppend(&out, Fact("MP4", "to be made by a worker that has FFmpeg", style));
  }
  if (report.tensors().empty()) return absl::StrCat(out, "\n");
  Table table({{"tensor"}, {"type"}, {"shape"}, {"sha256"}});
  for (const v1::TensorDigest& tensor : report.tensors()) {
    table.AddRow({Cell(tensor.name()), Cell(tensor.dtype()),
                  Cell(absl::StrCat("(", absl::StrJoin(tensor.shape(), ", "), ")")),
                  Cell(tensor.sha256(), Ink::kFaint)});
  }
  return absl::StrCat(out, "\n", table.Render(style), "\n");
}

}  // namespace plumbline::client
