#include "kernels/cuda/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"

namespace plumbline::cuda {
namespace {

constexpr int64_t kUnitBytes = 16;  // of addresses and strides
constexpr int64_t kValueBytes = 2;

// From the driver, at run time: the program starts where there is none.
PFN_cuTensorMapEncodeTiled_v12000 FindEncode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &found);
  if (error != cudaSuccess) cudaGetLastError();
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

absl::Status Encode(const Tensor& tensor, int dimensions, const cuuint64_t* sizes,
                    const cuuint64_t* stride_bytes, const cuuint32_t* box, CUtensorMap* map) {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = FindEncode();
  if (encode == nullptr) {
    return absl::FailedPreconditionError("the CUDA driver has no cuTensorMapEncodeTiled");
  }
  const cuuint32_t steps[] = {1, 1, 1, 1};
  const CUresult result = encode(
      map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<cuuint32_t>(dimensions), tensor.data,
      sizes, stride_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("tensor map of ", tensor.batch, " x ", tensor.rows, " x ",
                                          tensor.width, ": driver error ",
                                          static_cast<int>(result)));
}

cuuint64_t Bytes(int64_t values) { return static_cast<cuuint64_t>(values * kValueBytes); }

}  // namespace

bool IsMappable(const Tensor& tensor) {
  return tensor.dtype == DType::kBF16 &&
         reinterpret_cast<uint64_t>(tensor.data) % kUnitBytes == 0 &&
         tensor.row_stride * kValueBytes % kUnitBytes == 0 &&
         (tensor.batch == 1 || tensor.batch_stride * kValueBytes % kUnitBytes == 0);
}

absl::Status MapMatrix(const Tensor& tensor, int box_rows, CUtensorMap* map) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(tensor.width),
                              static_cast<cuuint64_t>(tensor.batch * tensor.rows)};
  const cuuint64_t strides[] = {Bytes(tensor.row_stride)};
  const cuuint32_t box[] = {kBoxWidth, static_cast<cuuint32_t>(box_rows)};
  return Encode(tensor, 2, sizes, strides, box, map);
}

absl::Status MapHeads(const Tensor& tensor, int64_t head_width, int box_rows, CUtensorMap* map) {
  const cuuint64_t sizes[] = {
      static_cast<cuuint64_t>(head_width), static_cast<cuuint64_t>(tensor.rows),
      static_cast<cuuint64_t>(tensor.width / head_width), static_cast<cuuint64_t>(tensor.batch)};
  // A single item's stride is free, and need not be one that can be addressed.
  const int64_t batch_stride = tensor.batch == 1 ? tensor.row_stride : tensor.batch_stride;
  const cuuint64_t strides[] = {Bytes(tensor.row_stride), Bytes(head_width), Bytes(batch_stride)};
  const cuuint32_t box[] = {kBoxWidth, static_cast<cuuint32_t>(box_rows), 1, 1};
  return Encode(tensor, 4, sizes, strides, box, map);
}

}  // namespace plumbline::cuda
