// Norms of so many rows that each block of threads goes through several: the bytes of the same rows
// in calls of few.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/cuda/synthetic.h"
#include "kernels/registry.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kRows = 6151;
constexpr int64_t kFewRows = 700;
constexpr int64_t kTableRows = 5;

struct RowRange {
  int64_t item;
  int64_t items;
  int64_t row;
  int64_t rows;
};

// Those rows of a tensor; of all its items where it has one.
Tensor Part(const Tensor& tensor, const RowRange& range) {
  Tensor part = tensor;
  const int64_t item = tensor.batch == 1 ? 0 : range.item;
  part.batch = std::min(range.items, tensor.batch);
  part.rows = range.rows;
  part.data = static_cast<char*>(tensor.data) +
              (item * tensor.batch_stride + range.row * tensor.row_stride) *
                  static_cast<int64_t>(DTypeSize(tensor.dtype));
  return part;
}

CudaTensor Synthetic(const std::string& name, int64_t batch, int64_t rows, int64_t width) {
  Device& device = *CudaDeviceForTest();
  CudaTensor tensor =
      CudaTensor::Poisoned(device, Tensor::Dense(nullptr, DType::kBF16, batch, rows, width))
          .value();
  const cudaStream_t stream = static_cast<cudaStream_t>(device.Context().stream);
  EXPECT_TRUE(FillSyntheticOnCuda(stream, name, 1, {1, 0}, tensor.view()).ok());
  return tensor;
}

// A norm of rows of `width`, modulated where `index` says by which rows of the tables.
class Norm {
 public:
  Norm(int64_t width, const HostTensor* index)
      : x_(Synthetic("x", kBatch, kRows, width)),
        weight_(Synthetic("weight", 1, 1, width)),
        scale_(Synthetic("scale", 1, kTableRows, width)),
        shift_(Synthetic("shift", 1, kTableRows, width)) {
    RegisterCandidateCuda(registry_);
    if (index == nullptr) return;
    index_.push_back(CudaTensor::Upload(*CudaDeviceForTest(), index->view()).value());
  }

  // Output and saved state of those rows, from a call for them alone.
  std::vector<HostTensor> Run(const RowRange& range) const {
    Device& device = *CudaDeviceForTest();
    const auto result = [&](DType dtype, int64_t width) {
      const Tensor shape = Tensor::Dense(nullptr, dtype, range.items, range.rows, width);
      return CudaTensor::Poisoned(device, shape).value();
    };
    const CudaTensor output = result(DType::kBF16, x_.view().width);
    const CudaTensor saved = result(DType::kF32, 1);
    std::vector<Tensor> inputs = {Part(x_.view(), range)};
    for (const CudaTensor& index : index_) {
      inputs.insert(inputs.end(), {scale_.view(), shift_.view(), Part(index.view(), range)});
    }
    ForwardCall call;
    call.inputs = inputs;
    call.parameters = absl::MakeConstSpan(&weight_.view(), 1);
    call.attributes.epsilon = 1e-5f;
    call.output = output.view();
    call.saved = saved.view().data;
    const OpKind op = index_.empty() ? OpKind::kRmsNorm : OpKind::kModulatedRmsNorm;
    const Operation& operation =
        *registry_.Find("candidate", op, "", DeviceKind::kCuda).value()->operation;
    EXPECT_TRUE(operation.Forward(device.Context(), call).ok());
    std::vector<HostTensor> results;
    for (const CudaTensor* tensor : {&output, &saved}) {
      results.push_back(tensor->Download(device).value());
    }
    return results;
  }

 private:
  Registry registry_;
  CudaTensor x_, weight_, scale_, shift_;
  std::vector<CudaTensor> index_;
};

void ExpectRowsOfFew(const Norm& norm) {
  const std::vector<HostTensor> all = norm.Run({0, kBatch, 0, kRows});
  for (int64_t item = 0; item < kBatch; ++item) {
    for (int64_t row = 0; row < kRows; row += kFewRows) {
      const RowRange range = {item, 1, row, std::min(kFewRows, kRows - row)};
      const std::vector<HostTensor> few = norm.Run(range);
      for (size_t i = 0; i < few.size(); ++i) {
        EXPECT_TRUE(BitwiseEqual(Part(all[i].view(), range), few[i].view()))
            << "item " << item << ", rows from " << row << (i == 1 ? ", saved state" : "");
      }
    }
  }
}

class NormsOfManyRows : public testing::TestWithParam<int64_t> {};

TEST_P(NormsOfManyRows, Plain) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  ExpectRowsOfFew(Norm(GetParam(), nullptr));
}

// Table rows in long runs, and changing from row to row.
TEST_P(NormsOfManyRows, Modulated) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  for (const bool runs : {true, false}) {
    HostTensor index(DType::kI64, 1, kRows, 1);
    for (int64_t row = 0; row < kRows; ++row) {
      *index.view().Row<int64_t>(row) = runs ? row * kTableRows / kRows : row * row % kTableRows;
    }
    ExpectRowsOfFew(Norm(GetParam(), &index));
  }
}

INSTANTIATE_TEST_SUITE_P(Width, NormsOfManyRows, testing::Values(520, 5376),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace plumbline
