// Each fused forward against the unfused operations of the candidate: the same bytes, saved state
// included, whichever of the outputs between are asked for.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/device.h"
#include "kernels/numerics/synthetic.h"
#include "kernels/registry.h"
#include "kernels/testing/bitwise.h"
#include "kernels/testing/block_capture.h"

namespace plumbline {
namespace {

constexpr DType kBF16 = DType::kBF16;
constexpr int64_t kHidden = 40;
constexpr int64_t kHeads = 3;
constexpr int64_t kHeadWidth = 22;
constexpr int64_t kTableRows = 5;

// One node of a chain, its tensors by number: numbers from 0 are the chain's own tensors, an output
// of an earlier node n is kOutput + n.
constexpr int kOutput = 100;
struct ChainNode {
  OpKind op;
  std::vector<int> inputs;
  std::vector<int> parameters;
  Tensor output;  // the shape alone
  Attributes attributes;
};

// The nodes that a fused operation covers, with random tensors.
class Chain {
 public:
  int Add(DType dtype, int64_t batch, int64_t rows, int64_t width) {
    Tensor tensor = Allocate(dtype, batch, rows, width);
    tensors_.push_back(tensor);
    return static_cast<int>(tensors_.size()) - 1;
  }
  int AddValues(int64_t batch, int64_t rows, int64_t width, SyntheticRecipe recipe) {
    const int number = Add(kBF16, batch, rows, width);
    const Tensor& tensor = tensors_[number];
    FillSynthetic("fused." + std::to_string(number), 3, recipe, 0,
                  absl::MakeSpan(tensor.Row<bfloat16>(0), tensor.NumElements()));
    return number;
  }
  // Columns of the last tensor that was added, as a tensor of its own.
  int AddColumns(int of, int64_t first, int64_t count) {
    tensors_.push_back(tensors_[of].Columns(first, count));
    return static_cast<int>(tensors_.size()) - 1;
  }
  int AddIndex(int64_t rows) {
    const int number = Add(DType::kI64, 1, rows, 1);
    for (int64_t row = 0; row < rows; ++row) {
      *tensors_[number].Row<int64_t>(row) = row * row % kTableRows;
    }
    return number;
  }
  int AddPositions(int64_t rows, double step) {
    const int number = Add(DType::kF64, 1, rows, 3);
    for (int64_t i = 0; i < 3 * rows; ++i) {
      tensors_[number].Row<double>(0)[i] = step * static_cast<double>(i * i % 101);
    }
    return number;
  }
  void AddNode(ChainNode node) { nodes_.push_back(std::move(node)); }
  size_t size() const { return nodes_.size(); }

  // The calls with new outputs; output n is left null where bit n of `untapped` is set, and saved
  // state where `saves` is false. The calls stay valid while the chain lives.
  struct Calls {
    std::vector<std::vector<Tensor>> inputs, parameters;
    std::vector<ForwardCall> calls;
    std::vector<size_t> saved_bytes;
  };
  std::unique_ptr<Calls> MakeCalls(const Registry& registry, unsigned untapped, bool saves) {
    auto made = std::make_unique<Calls>();
    made->inputs.resize(nodes_.size());
    made->parameters.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ChainNode& node = nodes_[i];
      for (const int number : node.inputs) {
        made->inputs[i].push_back(number >= kOutput ? made->calls[number - kOutput].output
                                                    : tensors_[number]);
      }
      for (const int number : node.parameters) made->parameters[i].push_back(tensors_[number]);
      ForwardCall call;
      call.inputs = made->inputs[i];
      call.parameters = made->parameters[i];
      call.attributes = node.attributes;
      const Tensor& shape = node.output;
      call.output =
          (untapped >> i & 1) != 0 ? shape : Allocate(kBF16, shape.batch, shape.rows, shape.width);
      made->saved_bytes.push_back(OperationOf(registry, node.op).SavedBytes(call));
      if (saves) {
        call.saved = Allocate(DType::kU8, 1, 1, static_cast<int64_t>(made->saved_bytes[i])).data;
      }
      made->calls.push_back(call);
    }
    return made;
  }

  // Runs the operations one by one.
  void RunUnfused(const Registry& registry, Device& device, Calls& calls) const {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Operation& operation = OperationOf(registry, nodes_[i].op);
      ASSERT_TRUE(operation.Check(calls.calls[i]).ok()) << operation.Check(calls.calls[i]);
      ExecutionContext context = device.Context();
      const size_t bytes = operation.ForwardWorkspaceBytes(calls.calls[i], context);
      const DeviceBuffer workspace = device.Allocate(bytes).value();
      context.workspace = absl::MakeSpan(static_cast<uint8_t*>(workspace.data()), bytes);
      ASSERT_TRUE(operation.Forward(context, calls.calls[i]).ok());
    }
  }

 private:
  static const Operation& OperationOf(const Registry& registry, OpKind op) {
    return *registry.Find("candidate", op, "", DeviceKind::kCpu).value()->operation;
  }

  Tensor Allocate(DType dtype, int64_t batch, int64_t rows, int64_t width) {
    memory_.push_back(std::make_unique<HostTensor>(dtype, batch, rows, width));
    const Tensor tensor = memory_.back()->view();
    std::memset(tensor.data, 0xFF, tensor.NumBytes());
    return tensor;
  }

  std::vector<std::unique_ptr<HostTensor>> memory_;
  std::vector<Tensor> tensors_;
  std::vector<ChainNode> nodes_;
};

void RunFused(const FusedOperation& operation, Device& device,
              absl::Span<const ForwardCall> calls) {
  ASSERT_TRUE(operation.Check(calls).ok()) << operation.Check(calls);
  // Sizes are asked for with null tensors.
  std::vector<ForwardCall> shapes(calls.begin(), calls.end());
  std::vector<std::vector<Tensor>> inputs, parameters;
  for (ForwardCall& call : shapes) {
    inputs.emplace_back(call.inputs.begin(), call.inputs.end());
    parameters.emplace_back(call.parameters.begin(), call.parameters.end());
    for (Tensor& tensor : inputs.back()) tensor.data = nullptr;
    for (Tensor& tensor : parameters.back()) tensor.data = nullptr;
    call.output.data = nullptr;
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    shapes[i].inputs = inputs[i];
    shapes[i].parameters = parameters[i];
  }
  ExecutionContext context = device.Context();
  const size_t bytes = operation.WorkspaceBytes(shapes, context);
  const DeviceBuffer workspace = device.Allocate(bytes).value();
  std::memset(workspace.data(), 0xFF, bytes);
  context.workspace = absl::MakeSpan(static_cast<uint8_t*>(workspace.data()), bytes);
  ASSERT_TRUE(operation.Forward(context, calls).ok());
}

// `between` has a bit for each output that may be left out.
void ExpectFusedEqualsUnfused(const std::string& name, Chain& chain, unsigned between) {
  Registry registry;
  RegisterCandidateCpu(registry);
  const FusedOperation* fused = nullptr;
  for (const FusedRegistration* registration : registry.Fused("candidate", DeviceKind::kCpu)) {
    if (registration->name == name) fused = registration->operation.get();
  }
  ASSERT_NE(fused, nullptr) << name;
  for (const int threads : {1, 2, 8}) {
    const std::unique_ptr<Device> device = MakeCpuDevice(threads, int64_t{1} << 30).value();
    const std::unique_ptr<Chain::Calls> expected = chain.MakeCalls(registry, 0, true);
    chain.RunUnfused(registry, *device, *expected);
    for (unsigned untapped = 0; untapped <= between; ++untapped) {
      if ((untapped & ~between) != 0) continue;
      for (const bool saves : {true, false}) {
        const std::unique_ptr<Chain::Calls> actual = chain.MakeCalls(registry, untapped, saves);
        RunFused(*fused, *device, actual->calls);
        for (size_t i = 0; i < chain.size(); ++i) {
          const std::string where = name + ", node " + std::to_string(i) + ", untapped " +
                                    std::to_string(untapped) + ", " + std::to_string(threads) +
                                    " threads";
          if (!actual->calls[i].output.IsNull()) {
            EXPECT_TRUE(BitwiseEqual(expected->calls[i].output, actual->calls[i].output)) << where;
          }
          if (saves) {
            EXPECT_EQ(std::memcmp(expected->calls[i].saved, actual->calls[i].saved,
                                  actual->saved_bytes[i]),
                      0)
                << where << ", saved state";
          }
        }
      }
    }
  }
}

struct Size {
  int64_t batch, rows;
};
constexpr Size kSizes[] = {{1, 37}, {2, 37}, {1, 1}, {2, 501}};

Tensor ShapeOf(const Size& size, int64_t width) {
  return Tensor::Dense(nullptr, kBF16, size.batch, size.rows, width);
}

TEST(Fused, ResidualNorm) {
  for (const Size& size : kSizes) {
    Chain chain;
    const int x = chain.AddValues(size.batch, size.rows, kHidden, {1.5, 0});
    const int branch = chain.AddValues(size.batch, size.rows, kHidden, {1.5, 0});
    const int table = chain.AddValues(1, kTableRows, 6 * kHidden, {1, 0});
    const int gate = chain.AddColumns(table, 2 * kHidden, kHidden);
    const int shift = chain.AddColumns(table, 3 * kHidden, kHidden);
    const int scale = chain.AddColumns(table, 4 * kHidden, kHidden);
    const int index = chain.AddIndex(size.rows);
    const int weight = chain.AddValues(1, 1, kHidden, {0.5, 1});
    Attributes norm;
    norm.epsilon = 1e-5f;
    chain.AddNode(
        {OpKind::kGatedResidual, {x, branch, gate, index}, {}, ShapeOf(size, kHidden), {}});
    chain.AddNode({OpKind::kModulatedRmsNorm,
                   {kOutput + 0, scale, shift, index},
                   {weight},
                   ShapeOf(size, kHidden),
                   norm});
    ExpectFusedEqualsUnfused("candidate/residual_norm", chain, 0b01);
  }
}

TEST(Fused, QkNormRope) {
  for (const bool shared_positions : {true, false}) {
    for (const Size& size : kSizes) {
      Chain chain;
      const int q = chain.AddValues(size.batch, size.rows, kHeads * kHeadWidth, {1.5, 0});
      const int k = chain.AddValues(size.batch, size.rows, kHeads * kHeadWidth, {1.5, 0});
      const int q_weight = chain.AddValues(1, 1, kHeadWidth, {0.5, 1});
      const int k_weight = chain.AddValues(1, 1, kHeadWidth, {0.5, 1});
      const int positions = chain.AddPositions(size.rows, 0.37);
      const int k_positions = shared_positions ? positions : chain.AddPositions(size.rows, 0.41);
      Attributes norm;
      norm.epsilon = 1e-5f;
      Attributes rope;
      rope.head_width = kHeadWidth;
      rope.rotary_frequencies = 3;
      rope.rotary_theta = 10000;
      const Tensor shape = ShapeOf(size, kHeads * kHeadWidth);
      chain.AddNode({OpKind::kRmsNorm, {q}, {q_weight}, shape, norm});
      chain.AddNode({OpKind::kRmsNorm, {k}, {k_weight}, shape, norm});
      chain.AddNode({OpKind::kRope, {kOutput + 0, positions}, {}, shape, rope});
      chain.AddNode({OpKind::kRope, {kOutput + 1, k_positions}, {}, shape, rope});
      ExpectFusedEqualsUnfused("candidate/qk_norm_rope", chain, 0b0011);
    }
  }
}

TEST(Fused, GateUpSwiGlu) {
  constexpr int64_t kInner = 33;
  for (const Size& size : kSizes) {
    Chain chain;
    const int x = chain.AddValues(size.batch, size.rows, kHidden, {1.5, 0});
    const int weight = chain.AddValues(1, 2 * kInner, kHidden, {0.3, 0});
    chain.AddNode({OpKind::kLinear, {x}, {weight}, ShapeOf(size, 2 * kInner), {}});
    chain.AddNode({OpKind::kSwiGlu, {kOutput + 0}, {}, ShapeOf(size, kInner), {}});
    ExpectFusedEqualsUnfused("candidate/gate_up_swiglu", chain, 0b01);
  }
}

TEST(Fused, ChecksEveryCoveredNode) {
  Registry registry;
  RegisterCandidateCpu(registry);
  for (const FusedRegistration* registration : registry.Fused("candidate", DeviceKind::kCpu)) {
    EXPECT_EQ(registration->operation->Check({}).code(), absl::StatusCode::kInvalidArgument)
        << registration->name;
    const std::vector<ForwardCall> empty(registration->nodes.size());
    EXPECT_EQ(registration->operation->Check(empty).code(), absl::StatusCode::kInvalidArgument)
        << registration->name;
  }
}

}  // namespace
}  // namespace plumbline
