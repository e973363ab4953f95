// The candidate's promises on bytes: the same on repeat, for any number of threads, in a batch with
// other data and among other rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "kernels/candidate/cpu/random_case.h"
#include "kernels/device.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

constexpr int64_t kMemoryBytes = int64_t{1} << 30;

// Enough rows for several of every kernel's blocks and runs, and enough keys for two panels.
CaseSizes LargeSizes() {
  CaseSizes sizes;
  sizes.rows = 293;
  return sizes;
}

NodeResult RunCase(const RandomCase& random_case, int threads) {
  const std::unique_ptr<Device> device = MakeCpuDevice(threads, kMemoryBytes).value();
  absl::StatusOr<NodeResult> result =
      RunCapturedNode(CandidateOperation(random_case.node.op), *device, random_case.node);
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

TEST(Invariance, RepeatsAndThreads) {
  for (const CaseSizes& sizes : {CaseSizes(), LargeSizes()}) {
    for (const RandomCase& random_case : MakeRandomCases(sizes)) {
      const NodeResult expected = RunCase(random_case, 1);
      for (const int threads : {1, 2, 8}) {
        ExpectEqual(expected, RunCase(random_case, threads),
                    random_case.node.name + ", " + std::to_string(threads) + " threads");
      }
    }
  }
}

TEST(Invariance, OtherBatchContents) {
  for (CaseSizes sizes : {CaseSizes(), LargeSizes()}) {
    const std::vector<RandomCase> alone = MakeRandomCases(sizes);
    sizes.item_seeds = {99, 1, 100};
    const std::vector<RandomCase> batched = MakeRandomCases(sizes);
    for (size_t i = 0; i < alone.size(); ++i) {
      if (!alone[i].batched) continue;
      const NodeResult expected = RunCase(alone[i], 1);
      for (const int threads : {1, 2, 8}) {
        ExpectRowsEqual(alone[i], expected, 0, RunCase(batched[i], threads), 1, sizes.rows,
                        alone[i].node.name + " in a batch");
      }
    }
  }
}

// So many heads that attention takes them in several groups, where alone they were one.
TEST(Invariance, ManyHeads) {
  CaseSizes sizes;
  sizes.rows = 1501;
  sizes.heads = 5;
  sizes.head_width = 128;
  const std::vector<RandomCase> alone = MakeRandomCases(sizes);
  sizes.item_seeds = {99, 100, 1};
  const std::vector<RandomCase> batched = MakeRandomCases(sizes);
  for (size_t i = 0; i < alone.size(); ++i) {
    if (alone[i].node.op != OpKind::kAttention) continue;
    ExpectRowsEqual(alone[i], RunCase(alone[i], 2), 0, RunCase(batched[i], 2), 2, sizes.rows,
                    "attention of many heads");
  }
}

TEST(Invariance, OtherRowCounts) {
  CaseSizes sizes;
  const int64_t rows = sizes.rows;
  const std::vector<RandomCase> few = MakeRandomCases(sizes);
  for (const int64_t more : {38, 64, 293}) {
    sizes.rows = more;
    const std::vector<RandomCase> many = MakeRandomCases(sizes);
    for (size_t i = 0; i < few.size(); ++i) {
      if (!few[i].rows_independent) continue;
      const NodeResult expected = RunCase(few[i], 1);
      for (const int threads : {1, 2, 8}) {
        ExpectRowsEqual(few[i], expected, 0, RunCase(many[i], threads), 0, rows,
                        few[i].node.name + " among " + std::to_string(more) + " rows");
      }
    }
  }
}

// A subset of rows, from the middle, gives those rows' bytes: rows do not depend on their place.
TEST(Invariance, RowSubsets) {
  for (RandomCase& random_case : MakeRandomCases(LargeSizes())) {
    if (!random_case.rows_independent) continue;
    const NodeResult whole = RunCase(random_case, 2);
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
    const NodeResult part = RunCase(random_case, 2);
    EXPECT_TRUE(BitwiseEqual(subset(whole.output->view()), part.output->view()))
        << random_case.node.name;
    for (size_t i = 0; i < whole.grad_inputs.size(); ++i) {
      if (whole.grad_inputs[i] == nullptr || !random_case.per_row[i]) continue;
      EXPECT_TRUE(BitwiseEqual(subset(whole.grad_inputs[i]->view()), part.grad_inputs[i]->view()))
          << random_case.node.name << ", gradient of input " << i;
    }
  }
}

}  // namespace
}  // namespace plumbline
