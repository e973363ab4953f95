#include "worker/jobs/layout.h"

#include <utility>
#include <vector>

#include "common/safetensors_writer.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/h3/layout.h"
#include "worker/h3/packed_layout.h"
#include "worker/jobs/layout_proto.h"

namespace plumbline::jobs {
namespace {

template <typename T>
TensorView View(std::string name, DType dtype, const std::vector<T>& values,
                std::vector<int64_t> shape) {
  return {{std::move(name), dtype, std::move(shape)},
          absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                              values.size() * sizeof(T))};
}

template <typename T>
TensorView Vector(std::string name, DType dtype, const std::vector<T>& values) {
  return View(std::move(name), dtype, values, {static_cast<int64_t>(values.size())});
}

}  // namespace

absl::StatusOr<v1::LayoutReport> WriteLayout(const v1::LayoutSpec& spec, const std::string& path) {
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::LayoutSpec shape,
                             LayoutFromProto(spec.layout(), "layout.layout"));
  PLUMBLINE_ASSIGN_OR_RETURN(
      const h3::PackedLayout layout,
      h3::BuildPackedLayout(shape, h3::kReplayVideoTimestep, h3::kReplayAudioTimestep));
  const std::vector<TensorView> tensors = {
      View("position_ids", DType::kF64, layout.position_ids, {layout.Rows(), 3}),
      Vector("token_tags", DType::kI64, layout.token_tags),
      Vector("video_indices", DType::kI64, layout.video_indices),
      Vector("audio_indices", DType::kI64, layout.audio_indices),
      Vector("text_indices", DType::kI64, layout.text_indices),
      Vector("timestep", DType::kF32, layout.timestep),
      Vector("timestep_indices", DType::kI64, layout.timestep_indices),
  };
  PLUMBLINE_RETURN_IF_ERROR(WriteSafetensors(path, tensors));

  v1::LayoutReport report;
  *report.mutable_layout() = LayoutToProto(shape);
  report.set_rows(static_cast<int32_t>(shape.Rows()));
  report.set_text_rows(static_cast<int32_t>(shape.text_rows));
  report.set_keyframe_rows(static_cast<int32_t>(shape.KeyframeRows()));
  report.set_audio_rows(static_cast<int32_t>(shape.AudioRows()));
  report.set_video_rows(static_cast<int32_t>(shape.VideoRows()));
  for (const TensorView& view : tensors) {
    v1::LayoutReport::Tensor& tensor = *report.add_tensors();
    tensor.set_name(view.spec.name);
    tensor.set_dtype(std::string(DTypeName(view.spec.dtype)));
    tensor.mutable_shape()->Add(view.spec.shape.begin(), view.spec.shape.end());
    tensor.set_sha256(Sha256Hex(view.bytes));
  }
  return report;
}

}  // namespace plumbline::jobs
