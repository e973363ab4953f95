// Each fused forward on a GPU against the unfused operations: the same bytes, saved state included,
// whichever of the outputs between are asked for; and in the fast kernels' widths and in others.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/numerics/synthetic.h"
#include "kernels/registry.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

constexpr int64_t kTableRows = 5;
constexpr int64_t kRows = 37;
constexpr int64_t kBatch = 2;

const Registry& CandidateRegistry() {
  static const Registry* const registry = [] {
    auto* filled = new Registry;
    RegisterCandidateCuda(*filled);
    return filled;
  }();
  return *registry;
}

// Nodes in order; an input kOutput + n is the output of node n.
constexpr int kOutput = 100;
struct ChainNode {
  OpKind op;
  std::vector<int> inputs;
  std::vector<int> parameters;
  int64_t output_width;
  Attributes attributes;
};

class Chain {
 public:
  int AddValues(int64_t batch, int64_t rows, int64_t width) {
    HostTensor host(DType::kBF16, batch, rows, width);
    const Tensor& view = host.view();
    FillSynthetic("fused." + std::to_string(tensors_.size()), 3, {1.5, 0}, 0,
                  absl::MakeSpan(view.Row<bfloat16>(0), static_cast<size_t>(view.NumElements())));
    return Upload(view);
  }
  int AddIndex() {
    HostTensor host(DType::kI64, 1, kRows, 1);
    for (int64_t row = 0; row < kRows; ++row) {
      *host.view().Row<int64_t>(row) = row * row % kTableRows;
    }
    return Upload(host.view());
  }
  int AddPositions() {
    HostTensor host(DType::kF64, 1, kRows, 3);
    for (int64_t i = 0; i < 3 * kRows; ++i) {
      host.view().Row<double>(0)[i] = 0.37 * static_cast<double>(i * i % 1001);
    }
    return Upload(host.view());
  }
  void AddNode(ChainNode node) { nodes_.push_back(std::move(node)); }

  struct Run {
    std::vector<HostTensor> outputs;  // and saved states
    std::vector<int> nodes;           // whose they are
  };

  // Runs the chain by `fused`, or by its own operations where that is null. Output n stays null
  // where bit n of `untapped` is set.
  Run Execute(const FusedOperation* fused, unsigned untapped, bool saves) const {
    Device& device = *CudaDeviceForTest();
    std::vector<CudaTensor> memory;
    std::vector<Tensor> outputs, saved;
    std::vector<std::vector<Tensor>> inputs(nodes_.size()), parameters(nodes_.size());
    std::vector<ForwardCall> calls;
    const auto poisoned = [&](const Tensor& shape) {
      memory.push_back(CudaTensor::Poisoned(device, shape).value());
      return memory.back().view();
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ChainNode& node = nodes_[i];
      for (const int number : node.inputs) {
        inputs[i].push_back(number >= kOutput ? outputs[number - kOutput]
                                              : tensors_[number].view());
      }
      for (const int number : node.parameters) parameters[i].push_back(tensors_[number].view());
      ForwardCall call;
      call.inputs = inputs[i];
      call.parameters = parameters[i];
      call.attributes = node.attributes;
      call.output = Tensor::Dense(nullptr, DType::kBF16, kBatch, kRows, node.output_width);
      const int64_t saved_bytes = static_cast<int64_t>(OperationOf(i).SavedBytes(call));
      if ((untapped >> i & 1) == 0) call.output = poisoned(call.output);
      saved.push_back(Tensor::Dense(nullptr, DType::kU8, 1, 1, saved_bytes));
      if (saves && saved_bytes > 0) saved.back() = poisoned(saved.back());
      call.saved = saved.back().data;
      outputs.push_back(call.output);
      calls.push_back(call);
    }
    const auto with_workspace = [&](size_t bytes) {
      ExecutionContext context = device.Context();
      const Tensor workspace =
          poisoned(Tensor::Dense(nullptr, DType::kU8, 1, 1, static_cast<int64_t>(bytes)));
      context.workspace = absl::MakeSpan(static_cast<uint8_t*>(workspace.data), bytes);
      return context;
    };
    if (fused != nullptr) {
      EXPECT_TRUE(fused->Check(calls).ok()) << fused->Check(calls);
      const size_t bytes = fused->WorkspaceBytes(calls, device.Context());
      EXPECT_TRUE(fused->Forward(with_workspace(bytes), calls).ok());
    } else {
      for (size_t i = 0; i < calls.size(); ++i) {
        const size_t bytes = OperationOf(i).ForwardWorkspaceBytes(calls[i], device.Context());
        EXPECT_TRUE(OperationOf(i).Forward(with_workspace(bytes), calls[i]).ok());
      }
    }
    EXPECT_TRUE(device.Synchronize().ok());
    Run run;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const Tensor& tensor : {outputs[i], saved[i]}) {
        if (tensor.IsNull()) continue;
        HostTensor host(tensor.dtype, tensor.batch, tensor.rows, tensor.width);
        EXPECT_TRUE(device.CopyToHost(tensor, host.view().data).ok());
        run.outputs.push_back(std::move(host));
        run.nodes.push_back(static_cast<int>(2 * i) + (tensor.data == saved[i].data ? 1 : 0));
      }
    }
    return run;
  }

 private:
  const Operation& OperationOf(size_t node) const {
    return *CandidateRegistry()
                .Find("candidate", nodes_[node].op, "", DeviceKind::kCuda)
                .value()
                ->operation;
  }
  int Upload(const Tensor& host) {
    tensors_.push_back(CudaTensor::Upload(*CudaDeviceForTest(), host).value());
    return static_cast<int>(tensors_.size()) - 1;
  }

  std::vector<CudaTensor> tensors_;
  std::vector<ChainNode> nodes_;
};

// `between` has a bit for each output that may be left out.
void ExpectFusedEqualsUnfused(const std::string& name, const Chain& chain, unsigned between) {
  const FusedOperation* fused = nullptr;
  for (const FusedRegistration* registration :
       CandidateRegistry().Fused("candidate", DeviceKind::kCuda)) {
    if (registration->name == name) fused = registration->operation.get();
  }
  ASSERT_NE(fused, nullptr) << name;
  const Chain::Run expected = chain.Execute(nullptr, 0, true);
  for (unsigned untapped = 0; untapped <= between; ++untapped) {
    if ((untapped & ~between) != 0) continue;
    for (const bool saves : {true, false}) {
      const Chain::Run actual = chain.Execute(fused, untapped, saves);
      for (size_t i = 0, j = 0; i < actual.nodes.size(); ++i) {
        while (expected.nodes[j] != actual.nodes[i]) ++j;
        EXPECT_TRUE(BitwiseEqual(expected.outputs[j].view(), actual.outputs[i].view()))
            << name << ", untapped " << untapped << ", node " << actual.nodes[i] / 2
            << (actual.nodes[i] % 2 == 1 ? ", saved state" : "");
      }
    }
  }
}

TEST(FusedCuda, ResidualNorm) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  for (const int64_t width :
       {int64_t{40}, int64_t{43}, int64_t{1344}, int64_t{5376}, int64_t{6000}}) {
    Chain chain;
    const int x = chain.AddValues(kBatch, kRows, width);
    const int branch = chain.AddValues(kBatch, kRows, width);
    const int gate = chain.AddValues(1, kTableRows, width);
    const int scale = chain.AddValues(1, kTableRows, width);
    const int shift = chain.AddValues(1, kTableRows, width);
    const int index = chain.AddIndex();
    const int weight = chain.AddValues(1, 1, width);
    Attributes attributes;
    attributes.epsilon = 1e-5f;
    chain.AddNode({OpKind::kGatedResidual, {x, branch, gate, index}, {}, width, {}});
    chain.AddNode(
        {OpKind::kModulatedRmsNorm, {kOutput, scale, shift, index}, {weight}, width, attributes});
    ExpectFusedEqualsUnfused("candidate/residual_norm", chain, 0b01);
  }
}

struct HeadSizes {
  int64_t heads;
  int64_t head_width;
  int64_t frequencies;
};

TEST(FusedCuda, NormRope) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  for (const HeadSizes& sizes : {HeadSizes{3, 22, 3}, HeadSizes{3, 128, 16}, HeadSizes{56, 128, 16},
                                 HeadSizes{17, 128, 8}}) {
    Chain chain;
    const int64_t width = sizes.heads * sizes.head_width;
    const int q = chain.AddValues(kBatch, kRows, width);
    const int k = chain.AddValues(kBatch, kRows, width);
    const int q_weight = chain.AddValues(1, 1, sizes.head_width);
    const int k_weight = chain.AddValues(1, 1, sizes.head_width);
    const int positions = chain.AddPositions();
    Attributes attributes;
    attributes.epsilon = 1e-5f;
    attributes.head_width = sizes.head_width;
    attributes.rotary_frequencies = sizes.frequencies;
    attributes.rotary_theta = 10000;
    chain.AddNode({OpKind::kRmsNorm, {q}, {q_weight}, width, attributes});
    chain.AddNode({OpKind::kRmsNorm, {k}, {k_weight}, width, attributes});
    chain.AddNode({OpKind::kRope, {kOutput, positions}, {}, width, attributes});
    chain.AddNode({OpKind::kRope, {kOutput + 1, positions}, {}, width, attributes});
    ExpectFusedEqualsUnfused("candidate/qk_norm_rope", chain, 0b0011);
  }
}

}  // namespace
}  // namespace plumbline
