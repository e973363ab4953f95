// The candidate's promises on bytes, on a GPU: the same on repeat, in a batch with other data, and
// among other rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/candidate/cpu/random_case.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/registry.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

constexpr int64_t kRowCounts[] = {1, 2, 63, 264, 925};

NodeResult RunCase(const RandomCase& random_case) {
  static const Registry* const registry = [] {
    auto* filled = new Registry;
    RegisterCandidateCuda(*filled);
    return filled;
  }();
  const Operation& operation =
      *registry->Find("candidate", random_case.node.op, "", DeviceKind::kCuda).value()->operation;
  absl::StatusOr<NodeResult> result =
      RunNodeOnCuda(operation, *CudaDeviceForTest(), random_case.node);
  EXPECT_TRUE(result.ok()) << random_case.node.name << ": " << result.status();
  return *std::move(result);
}

// Rows [0, rows) of batch item `item`.
Tensor Part(const Tensor& tensor, int64_t item, int64_t rows) {
  Tensor part = tensor;
  part.batch = 1;
  part.rows = rows;
  part.data = static_cast<char*>(tensor.data) +
              item * tensor.batch_stride * static_cast<int64_t>(DTypeSize(tensor.dtype));
  return part;
}

void ExpectEqual(const NodeResult& expected, const NodeResult& actual, const std::string& what) {
  EXPECT_TRUE(BitwiseEqual(expected.output->view(), actual.output->view())) << what << ", output";
  for (size_t i = 0; i < expected.grad_inputs.size(); ++i) {
    if (expected.grad_inputs[i] == nullptr) continue;
    EXPECT_TRUE(BitwiseEqual(expected.grad_inputs[i]->view(), actual.grad_inputs[i]->view()))
        << what << ", gradient of input " << i;
  }
  for (size_t i = 0; i < expected.grad_parameters.size(); ++i) {
    EXPECT_TRUE(
        BitwiseEqual(expected.grad_parameters[i]->view(), actual.grad_parameters[i]->view()))
        << what << ", gradient of parameter " << i;
  }
}

// Everything that has a row for each row: output and gradients, rows [0, rows).
void ExpectRowsEqual(const RandomCase& random_case, const NodeResult& expected, int64_t item,
                     const NodeResult& actual, int64_t actual_item, int64_t rows,
                     const std::string& what) {
  const int64_t output_rows = std::min(rows, expected.output->view().rows);
  EXPECT_TRUE(BitwiseEqual(Part(expected.output->view(), item, output_rows),
                           Part(actual.output->view(), actual_item, output_rows)))
      << what << ", output";
  for (size_t i = 0; i < expected.grad_inputs.size(); ++i) {
    if (expected.grad_inputs[i] == nullptr || !random_case.per_row[i]) continue;
    EXPECT_TRUE(BitwiseEqual(Part(expected.grad_inputs[i]->view(), item, rows),
                             Part(actual.grad_inputs[i]->view(), actual_item, rows)))
        << what << ", gradient of input " << i;
  }
}

// Widths that the fast paths take, and widths that none takes.
std::vector<CaseSizes> AllSizes() {
  CaseSizes odd;
  CaseSizes released_heads;
  released_heads.hidden = 1344;
  released_heads.heads = 5;
  released_heads.head_width = 128;
  released_heads.frequencies = 16;
  return {odd, released_heads};
}

TEST(CandidateCudaInvariance, Repeats) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  for (CaseSizes sizes : AllSizes()) {
    sizes.rows = 925;
    for (const RandomCase& random_case : MakeRandomCases(sizes)) {
      const NodeResult expected = RunCase(random_case);
      for (int repeat = 0; repeat < 5; ++repeat) {
        ExpectEqual(expected, RunCase(random_case), random_case.node.name);
      }
    }
  }
}

TEST(CandidateCudaInvariance, OtherBatchContents) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  for (CaseSizes sizes : AllSizes()) {
    for (const int64_t rows : kRowCounts) {
      sizes.rows = rows;
      sizes.item_seeds = {1};
      const std::vector<RandomCase> alone = MakeRandomCases(sizes);
      sizes.item_seeds = {99, 1};
      const std::vector<RandomCase> batched = MakeRandomCases(sizes);
      for (size_t i = 0; i < alone.size(); ++i) {
        if (!alone[i].batched) continue;
        ExpectRowsEqual(alone[i], RunCase(alone[i]), 0, RunCase(batched[i]), 1, sizes.rows,
                        alone[i].node.name + " in a batch, rows " + std::to_string(rows));
      }
    }
  }
}

TEST(CandidateCudaInvariance, OtherRowCounts) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  for (CaseSizes sizes : AllSizes()) {
    sizes.rows = kRowCounts[std::size(kRowCounts) - 1];
    const std::vector<RandomCase> many = MakeRandomCases(sizes);
    std::vector<NodeResult> expected;
    for (const RandomCase& random_case : many) expected.push_back(RunCase(random_case));
    for (const int64_t rows : kRowCounts) {
      sizes.rows = rows;
      const std::vector<RandomCase> few = MakeRandomCases(sizes);
      for (size_t i = 0; i < few.size(); ++i) {
        if (!few[i].rows_independent) continue;
        ExpectRowsEqual(few[i], RunCase(few[i]), 0, expected[i], 0, rows,
                        few[i].node.name + ", rows " + std::to_string(rows));
      }
    }
  }
}

// Rows from the middle give those rows' bytes: they do not depend on their place.
TEST(CandidateCudaInvariance, RowSubsets) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  for (CaseSizes sizes : AllSizes()) {
    sizes.rows = 293;
    for (RandomCase& random_case : MakeRandomCases(sizes)) {
      if (!random_case.rows_independent) continue;
      const NodeResult whole = RunCase(random_case);
      constexpr int64_t kFirst = 131;
      constexpr int64_t kCount = 29;
      const auto subset = [](Tensor tensor) {
        tensor.data = static_cast<char*>(tensor.data) +
                      kFirst * tensor.row_stride * static_cast<int64_t>(DTypeSize(tensor.dtype));
        tensor.rows = kCount;
        return tensor;
      };
      const int64_t rows = random_case.node.output.rows;
      for (Tensor& input : random_case.node.inputs) {
        if (input.rows == rows) input = subset(input);
      }
      random_case.node.output.rows = kCount;
      random_case.node.grad_output = subset(random_case.node.grad_output);
      const NodeResult part = RunCase(random_case);
      EXPECT_TRUE(BitwiseEqual(subset(whole.output->view()), part.output->view()))
          << random_case.node.name;
      for (size_t i = 0; i < whole.grad_inputs.size(); ++i) {
        if (whole.grad_inputs[i] == nullptr || !random_case.per_row[i]) continue;
        EXPECT_TRUE(BitwiseEqual(subset(whole.grad_inputs[i]->view()), part.grad_inputs[i]->view()))
            << random_case.node.name << ", gradient of input " << i;
      }
    }
  }
}

}  // namespace
}  // namespace plumbline
