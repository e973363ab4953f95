// How calls are answered: gradients that nobody wants, strided tables, the promised order of table
// sums, and calls that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/candidate/cpu/random_case.h"
#include "kernels/device.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;

// A node after its forward, ready for backwards.
class Prepared {
 public:
  explicit Prepared(const RandomCase& random_case)
      : node_(random_case.node),
        operation_(CandidateOperation(node_.op)),
        output_(node_.output.dtype, node_.output.batch, node_.output.rows, node_.output.width),
        device_(MakeCpuDevice(2, int64_t{1} << 30).value()) {
    ForwardCall call;
    call.inputs = node_.inputs;
    call.parameters = node_.parameters;
    call.attributes = node_.attributes;
    call.output = output_.view();
    saved_ = device_->Allocate(operation_.SavedBytes(call)).value();
    call.saved = saved_.data();
    ExecutionContext context = device_->Context();
    const size_t bytes = operation_.ForwardWorkspaceBytes(call, context);
    const DeviceBuffer workspace = device_->Allocate(bytes).value();
    context.workspace = absl::MakeSpan(static_cast<uint8_t*>(workspace.data()), bytes);
    EXPECT_TRUE(operation_.Forward(context, call).ok());
  }

  void Backward(const std::vector<Tensor>& grad_inputs,
                const std::vector<Tensor>& grad_parameters) {
    BackwardCall call;
    call.inputs = node_.inputs;
    call.parameters = node_.parameters;
    call.attributes = node_.attributes;
    call.output = output_.view();
    call.saved = saved_.data();
    call.grad_output = node_.grad_output;
    call.grad_inputs = grad_inputs;
    call.grad_parameters = grad_parameters;
    ExecutionContext context = device_->Context();
    const size_t bytes = operation_.BackwardWorkspaceBytes(call, context);
    const DeviceBuffer workspace = device_->Allocate(bytes).value();
    std::memset(workspace.data(), 0xFF, bytes);
    context.workspace = absl::MakeSpan(static_cast<uint8_t*>(workspace.data()), bytes);
    EXPECT_TRUE(operation_.Backward(context, call).ok());
  }

 private:
  const CapturedNode& node_;
  const Operation& operation_;
  HostTensor output_;
  std::unique_ptr<Device> device_;
  DeviceBuffer saved_;
};

HostTensor LikeTensor(const Tensor& tensor) {
  return HostTensor(tensor.dtype, tensor.batch, tensor.rows, tensor.width);
}

CaseSizes Sizes() {
  CaseSizes sizes;
  sizes.item_seeds = {1, 2};
  return sizes;
}

TEST(Call, AGradientDoesNotDependOnWhichOthersAreWanted) {
  const std::unique_ptr<Device> device = MakeCpuDevice(2, int64_t{1} << 30).value();
  for (const RandomCase& random_case : MakeRandomCases(Sizes())) {
    const CapturedNode& node = random_case.node;
    const NodeResult all = RunCapturedNode(CandidateOperation(node.op), *device, node).value();
    Prepared prepared(random_case);
    const std::vector<Tensor> no_inputs(node.inputs.size());
    const std::vector<Tensor> no_parameters(node.parameters.size());
    prepared.Backward(no_inputs, no_parameters);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (all.grad_inputs[i] == nullptr) continue;
      const HostTensor gradient = LikeTensor(all.grad_inputs[i]->view());
      std::vector<Tensor> wanted = no_inputs;
      wanted[i] = gradient.view();
      prepared.Backward(wanted, no_parameters);
      EXPECT_TRUE(BitwiseEqual(all.grad_inputs[i]->view(), gradient.view()))
          << node.name << ", gradient of input " << i << " alone";
    }
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      const HostTensor gradient = LikeTensor(all.grad_parameters[i]->view());
      std::vector<Tensor> wanted = no_parameters;
      wanted[i] = gradient.view();
      prepared.Backward(no_inputs, wanted);
      EXPECT_TRUE(BitwiseEqual(all.grad_parameters[i]->view(), gradient.view()))
          << node.name << ", gradient of parameter " << i << " alone";
    }
  }
}

TEST(Call, TableGradientsGoIntoColumnsOfAWiderTable) {
  constexpr int64_t kFirstColumn = 9;
  const std::unique_ptr<Device> device = MakeCpuDevice(2, int64_t{1} << 30).value();
  int tables = 0;
  for (const RandomCase& random_case : MakeRandomCases(Sizes())) {
    const CapturedNode& node = random_case.node;
    const NodeResult dense = RunCapturedNode(CandidateOperation(node.op), *device, node).value();
    Prepared prepared(random_case);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Tensor& input = node.inputs[i];
      if (dense.grad_inputs[i] == nullptr || input.row_stride == input.width) continue;
      ++tables;
      const int64_t width = input.width + 2 * kFirstColumn;
      const HostTensor wide(input.dtype, 1, input.rows, width);
      std::memset(wide.view().data, 0xFF, wide.view().NumBytes());
      std::vector<Tensor> wanted(node.inputs.size());
      wanted[i] = wide.view().Columns(kFirstColumn, input.width);
      prepared.Backward(wanted, std::vector<Tensor>(node.parameters.size()));
      EXPECT_TRUE(BitwiseEqual(dense.grad_inputs[i]->view(), wanted[i])) << node.name;
      for (int64_t row = 0; row < input.rows; ++row) {
        for (int64_t column = 0; column < width; ++column) {
          if (column >= kFirstColumn && column < kFirstColumn + input.width) continue;
          ASSERT_EQ(wide.view().Row<bfloat16>(row)[column].bits, 0xFFFF)
              << node.name << ", input " << i << ", row " << row << ", column " << column;
        }
      }
    }
  }
  EXPECT_EQ(tables, 3);  // scale, shift and gate
}

// The float32 sum in row order, batch item after item, rounded once: exactly.
TEST(Call, TableGradientIsAFloat32SumInRowOrder) {
  CaseSizes sizes = Sizes();
  sizes.rows = 293;
  const std::unique_ptr<Device> device = MakeCpuDevice(2, int64_t{1} << 30).value();
  for (const RandomCase& random_case : MakeRandomCases(sizes)) {
    const CapturedNode& node = random_case.node;
    if (node.op != OpKind::kGatedResidual) continue;
    const NodeResult result = RunCapturedNode(CandidateOperation(node.op), *device, node).value();
    const Tensor& branch = node.inputs[1];
    const Tensor& index = node.inputs[3];
    const HostTensor expected = LikeTensor(node.inputs[2]);
    for (int64_t table_row = 0; table_row < expected.view().rows; ++table_row) {
      for (int64_t column = 0; column < branch.width; ++column) {
        float sum = 0;
        for (int64_t item = 0; item < branch.batch; ++item) {
          for (int64_t row = 0; row < branch.rows; ++row) {
            if (*index.Row<int64_t>(row) != table_row) continue;
            sum += RoundThroughBf16(WidenBf16(node.grad_output.Row<bfloat16>(row, item)[column]) *
                                    WidenBf16(branch.Row<bfloat16>(row, item)[column]));
          }
        }
        expected.view().Row<bfloat16>(table_row)[column] = RoundToBf16(sum);
      }
    }
    EXPECT_TRUE(BitwiseEqual(expected.view(), result.grad_inputs[2]->view()));
  }
}

TEST(Call, RefusesWrongTypesShapesAndCounts) {
  for (const RandomCase& random_case : MakeRandomCases(Sizes())) {
    const CapturedNode& node = random_case.node;
    const Operation& operation = CandidateOperation(node.op);
    const auto check = [&](const std::function<void(CapturedNode&)>& spoil) {
      CapturedNode spoilt;
      spoilt.inputs = node.inputs;
      spoilt.parameters = node.parameters;
      spoilt.output = node.output;
      spoilt.attributes = node.attributes;
      spoil(spoilt);
      ForwardCall call;
      call.inputs = spoilt.inputs;
      call.parameters = spoilt.parameters;
      call.output = spoilt.output;
      call.attributes = spoilt.attributes;
      return operation.Check(call);
    };
    EXPECT_TRUE(check([](CapturedNode&) {}).ok()) << node.name;
    const absl::Status fewer = check([](CapturedNode& call) { call.inputs.pop_back(); });
    EXPECT_EQ(fewer.code(), absl::StatusCode::kInvalidArgument) << node.name;
    EXPECT_THAT(std::string(fewer.message()), HasSubstr("inputs; it takes")) << node.name;
    const absl::Status type = check([](CapturedNode& call) { call.inputs[0].dtype = DType::kF16; });
    EXPECT_EQ(type.code(), absl::StatusCode::kInvalidArgument) << node.name;
    EXPECT_THAT(std::string(type.message()), HasSubstr("is F16; accepted: ")) << node.name;
    const absl::Status shape = check([](CapturedNode& call) { ++call.output.rows; });
    EXPECT_EQ(shape.code(), absl::StatusCode::kInvalidArgument) << node.name;
    EXPECT_THAT(std::string(shape.message()), HasSubstr("it must be (")) << node.name;
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      const absl::Status parameter = check([i](CapturedNode& call) { ++call.parameters[i].batch; });
      EXPECT_EQ(parameter.code(), absl::StatusCode::kInvalidArgument)
          << node.name << ", parameter " << i;
    }
  }
}

}  // namespace
}  // namespace plumbline
