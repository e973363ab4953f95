// The faulty operations against formulas in float64, and the table of faults against what there is.
// That a replay finds each fault is tested with the job.
#include "worker/drift/faults.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/builtin.h"
#include "kernels/numerics/bfloat16.h"
#include "worker/h3/checkpoint.h"
#include "worker/h3/composition.h"
#include "worker/h3/layout.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::drift {
namespace {

using Matrix = std::vector<std::vector<double>>;

// bfloat16 rows in the host's memory.
struct Rows {
  Rows(int64_t rows, int64_t width) : values(rows * width) {
    tensor = Tensor::Dense(values.data(), DType::kBF16, 1, rows, width);
  }
  Rows(const Rows&) = delete;

  void Fill(std::mt19937* random) {
    std::normal_distribution<float> normal;
    for (bfloat16& value : values) value = RoundToBf16(normal(*random));
  }
  Matrix Wide() const {
    Matrix wide(tensor.rows, std::vector<double>(tensor.width));
    for (int64_t row = 0; row < tensor.rows; ++row) {
      for (int64_t i = 0; i < tensor.width; ++i)
        wide[row][i] = WidenBf16(tensor.Row<bfloat16>(row)[i]);
    }
    return wide;
  }

  std::vector<bfloat16> values;
  Tensor tensor;
};

double RelativeL2(const Matrix& reference, const Matrix& x) {
  double difference = 0, norm = 0;
  for (size_t row = 0; row < reference.size(); ++row) {
    for (size_t i = 0; i < reference[row].size(); ++i) {
      difference += std::pow(reference[row][i] - x[row][i], 2);
      norm += std::pow(reference[row][i], 2);
    }
  }
  return std::sqrt(difference / norm);
}

class FaultsTest : public testing::Test {
 protected:
  FaultsTest()
      : device_(*MakeCpuDevice(2, int64_t{1} << 30)),
        weights_(*h3::OpenCheckpoint("synthetic:tiny", {})),
        graph_(h3::BuildBlockGraph(weights_->config(), 0)),
        composition_(*h3::ResolveComposition(*h3::ParseComposition("candidate"), graph_, registry_,
                                             DeviceKind::kCpu)),
        seed_(std::random_device()()),
        random_(seed_) {}

  Fault Make(absl::string_view name) {
    auto fault =
        MakeBlockFault(name, {graph_, 0, *weights_, registry_, *device_, *composition_.grad_sum});
    EXPECT_TRUE(fault.ok()) << fault.status();
    return *std::move(fault);
  }

  // The faulty operation of a node.
  std::shared_ptr<const Operation> Faulty(const Fault& fault, absl::string_view role) {
    const h3::NodeId node = *graph_.FindNode(absl::StrCat("block.0/", role));
    for (const h3::OperationFault& change : fault.operations) {
      if (change.node == graph_.nodes()[node].name) {
        return change.decorate(composition_.nodes[node]->operation);
      }
    }
    ADD_FAILURE() << "the fault does not touch " << role;
    return composition_.nodes[node]->operation;
  }

  ExecutionContext Context(size_t workspace_bytes) {
    workspace_.resize(workspace_bytes + 64);
    ExecutionContext context = device_->Context();
    const size_t skip = (64 - reinterpret_cast<uintptr_t>(workspace_.data()) % 64) % 64;
    context.workspace = absl::MakeSpan(workspace_).subspan(skip, workspace_bytes);
    return context;
  }

  void Forward(const Operation& operation, ForwardCall call) {
    ASSERT_TRUE(operation.Check(call).ok()) << operation.Check(call);
    saved_.assign(operation.SavedBytes(call) / 8 + 8, 0);
    call.saved = saved_.data();
    const absl::Status done =
        operation.Forward(Context(operation.ForwardWorkspaceBytes(call, device_->Context())), call);
    ASSERT_TRUE(done.ok()) << done;
  }
  void Backward(const Operation& operation, BackwardCall call) {
    call.saved = saved_.data();
    const absl::Status done = operation.Backward(
        Context(operation.BackwardWorkspaceBytes(call, device_->Context())), call);
    ASSERT_TRUE(done.ok()) << done;
  }

  const std::unique_ptr<Device> device_;
  const Registry registry_ = MakeBuiltinRegistry();
  const std::shared_ptr<const h3::WeightSource> weights_;
  const h3::Graph graph_;
  const h3::ResolvedComposition composition_;
  const uint32_t seed_;
  std::mt19937 random_;
  std::vector<uint8_t> workspace_;
  std::vector<uint64_t> saved_;
};

TEST_F(FaultsTest, WordsOfRequestsAreThoseOfTheGraph) {
  EXPECT_EQ(absl::StrJoin(BlockNodes(), " "), absl::StrJoin(h3::BlockRoles(), " "));
  EXPECT_EQ(absl::StrJoin(NodeGroups(), " "), absl::StrJoin(h3::CompositionGroups(), " "));
  std::vector<std::string> names;
  for (const NamedLayout& layout : NamedLayouts()) {
    names.emplace_back(layout.name);
    EXPECT_EQ(h3::FormatLayout(*h3::ParseLayout(layout.name, "layout")), layout.sizes);
  }
  EXPECT_EQ(absl::StrJoin(names, ", "), h3::NamedLayouts());
  for (const FaultInfo& fault : Faults()) {
    if (fault.job == "block-replay") Make(fault.name);
  }
}

TEST_F(FaultsTest, LastKeysAreDroppedForwardAndBackward) {
  SCOPED_TRACE(testing::Message() << "seed " << seed_);
  for (int64_t rows : {2, 7, 19, 64}) {
    const int64_t kept = rows - std::max<int64_t>(1, rows / 8), width = 16;
    Rows q(rows, width), k(rows, width), v(rows, width), out(rows, width), g(rows, width);
    Rows dq(rows, width), dk(rows, width), dv(rows, width);
    for (Rows* input : {&q, &k, &v, &g}) input->Fill(&random_);
    const Fault fault = Make("last-keys");
    const auto operation = Faulty(fault, "attention");
    const Tensor inputs[] = {q.tensor, k.tensor, v.tensor};
    const Tensor gradients[] = {dq.tensor, dk.tensor, dv.tensor};
    ForwardCall forward;
    forward.inputs = inputs;
    forward.attributes.head_width = width;
    forward.output = out.tensor;
    Forward(*operation, forward);
    BackwardCall backward;
    backward.inputs = inputs;
    backward.attributes = forward.attributes;
    backward.output = out.tensor;
    backward.grad_output = g.tensor;
    backward.grad_inputs = gradients;
    Backward(*operation, backward);

    const Matrix Q = q.Wide(), K = k.Wide(), V = v.Wide(), G = g.Wide();
    Matrix O(rows, std::vector<double>(width)), DQ = O, DK = O, DV = O;
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    for (int64_t i = 0; i < rows; ++i) {
      std::vector<double> p(kept), dp(kept);
      double sum = 0, delta = 0;
      for (int64_t j = 0; j < kept; ++j) {
        double s = 0;
        for (int64_t c = 0; c < width; ++c) s += Q[i][c] * K[j][c];
        sum += p[j] = std::exp(s * scale);
      }
      for (int64_t j = 0; j < kept; ++j) {
        p[j] /= sum;
        for (int64_t c = 0; c < width; ++c) {
          O[i][c] += p[j] * V[j][c];
          dp[j] += G[i][c] * V[j][c];
          DV[j][c] += p[j] * G[i][c];
        }
        delta += p[j] * dp[j];
      }
      for (int64_t j = 0; j < kept; ++j) {
        const double ds = p[j] * (dp[j] - delta) * scale;
        for (int64_t c = 0; c < width; ++c) {
          DQ[i][c] += ds * K[j][c];
          DK[j][c] += ds * Q[i][c];
        }
      }
    }
    EXPECT_LT(RelativeL2(O, out.Wide()), 5e-3) << rows << " rows";
    EXPECT_LT(RelativeL2(DV, dv.Wide()), 1e-2) << rows << " rows";
    if (kept > 1) {  // of a single key the gradients of the scores vanish
      EXPECT_LT(RelativeL2(DQ, dq.Wide()), 1e-2) << rows << " rows";
      EXPECT_LT(RelativeL2(DK, dk.Wide()), 1e-2) << rows << " rows";
    }
    for (int64_t row = kept; row < rows; ++row) {
      for (const Rows* gradient : {&dk, &dv}) {
        const Matrix wide = gradient->Wide();
        EXPECT_EQ(wide[row], std::vector<double>(width));
      }
    }
  }
}

TEST_F(FaultsTest, FullRopeTurnsEveryChannel) {
  SCOPED_TRACE(testing::Message() << "seed " << seed_);
  constexpr int64_t kRows = 5, kHead = 128, kHeads = 2, kFrequencies = 22;
  Rows x(kRows, kHeads * kHead), out(kRows, kHeads * kHead), back(kRows, kHeads * kHead);
  x.Fill(&random_);
  std::vector<double> positions(kRows * 3);
  for (double& position : positions) position = random_() % 50;
  const Tensor inputs[] = {x.tensor, Tensor::Dense(positions.data(), DType::kF64, 1, kRows, 3)};
  const Fault fault = Make("rope-128");
  const auto operation = Faulty(fault, "rope_q");
  ForwardCall forward;
  forward.inputs = inputs;
  forward.attributes.head_width = kHead;
  forward.attributes.rotary_frequencies = 16;
  forward.attributes.rotary_theta = 10000;
  forward.output = out.tensor;
  Forward(*operation, forward);
  const Matrix X = x.Wide();
  Matrix expected = X;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t channel = 0; channel < kHeads * kHead; ++channel) {
      const int64_t head = channel / kHead * kHead, j = channel % kHead % (kHead / 2);
      const double angle = positions[row * 3 + j / kFrequencies] *
                           std::pow(10000, -2.0 * (j % kFrequencies) / (2 * kFrequencies));
      const double x1 = X[row][head + j], x2 = X[row][head + j + kHead / 2];
      expected[row][channel] = channel % kHead < kHead / 2
                                   ? x1 * std::cos(angle) - x2 * std::sin(angle)
                                   : x2 * std::cos(angle) + x1 * std::sin(angle);
    }
  }
  EXPECT_LT(RelativeL2(expected, out.Wide()), 6e-3);

  // A rotation's transpose is its inverse.
  const Tensor gradients[] = {back.tensor, Tensor()};
  BackwardCall backward;
  backward.inputs = inputs;
  backward.attributes = forward.attributes;
  backward.output = out.tensor;
  backward.grad_output = out.tensor;
  backward.grad_inputs = gradients;
  Backward(*operation, backward);
  EXPECT_LT(RelativeL2(X, back.Wide()), 1e-2);
}

TEST_F(FaultsTest, SplitProductsRoundTheirParts) {
  SCOPED_TRACE(testing::Message() << "seed " << seed_);
  constexpr int64_t kInputs = 60, kOutputs = 9;
  const Fault fault = Make("split-by-rows");
  const auto operation = Faulty(fault, "q_proj");
  // 1 + floor(log2 rows) mod 3.
  for (const auto& [rows, parts] : {std::pair<int, int>{1, 1}, {3, 2}, {5, 3}, {8, 1}, {31, 2}}) {
    Rows x(rows, kInputs), w(kOutputs, kInputs), out(rows, kOutputs);
    x.Fill(&random_);
    w.Fill(&random_);
    ForwardCall call;
    call.inputs = absl::MakeConstSpan(&x.tensor, 1);
    call.parameters = absl::MakeConstSpan(&w.tensor, 1);
    call.output = out.tensor;
    Forward(*operation, call);
    const Matrix X = x.Wide(), W = w.Wide(), found = out.Wide();
    int differing = 0;
    for (int row = 0; row < rows; ++row) {
      for (int64_t n = 0; n < kOutputs; ++n) {
        float total = 0;
        for (int part = 0; part < parts; ++part) {
          double sum = 0;
          for (int64_t i = kInputs * part / parts; i < kInputs * (part + 1) / parts; ++i) {
            sum += X[row][i] * W[n][i];
          }
          total = RoundThroughBf16(total + RoundThroughBf16(static_cast<float>(sum)));
        }
        differing += total != found[row][n];
      }
    }
    // But for ties that float32 and float64 see differently.
    EXPECT_LE(differing, rows * kOutputs / 50) << rows << " rows in " << parts << " parts";
  }
}

TEST_F(FaultsTest, SwigluReadsItsHalvesSwapped) {
  SCOPED_TRACE(testing::Message() << "seed " << seed_);
  Rows x(6, 20), out(6, 10);
  x.Fill(&random_);
  const Fault fault = Make("swiglu-halves");
  ForwardCall call;
  call.inputs = absl::MakeConstSpan(&x.tensor, 1);
  call.output = out.tensor;
  Forward(*Faulty(fault, "swiglu"), call);
  const Matrix X = x.Wide();
  Matrix expected(6, std::vector<double>(10));
  for (int row = 0; row < 6; ++row) {
    for (int i = 0; i < 10; ++i) {
      expected[row][i] = X[row][i + 10] * X[row][i] / (1 + std::exp(-X[row][i]));
    }
  }
  EXPECT_LT(RelativeL2(expected, out.Wide()), 5e-3);
}

TEST_F(FaultsTest, WeightFaultsMoveWholeHeads) {
  const int64_t head = weights_->config().attention_head_dim;
  const auto rows = [&](const h3::WeightSource& source, absl::string_view name, int64_t first) {
    const auto view = source.Get(absl::StrCat("transformer_blocks.0.attn.", name, ".weight"));
    EXPECT_TRUE(view.ok()) << view.status();
    const size_t row_bytes = view->tensor.width * 2;
    return std::string(reinterpret_cast<const char*>(view->Bytes().data()) + first * row_bytes,
                       head * row_bytes);
  };
  // Fused, the native rows are q0 k0 v0 q1 k1 v1; in thirds: (q0 k0) (v0 q1) (k1 v1).
  const Fault native = Make("native-qkv");
  EXPECT_EQ(rows(*native.weights, "to_q", 0), rows(*weights_, "to_q", 0));
  EXPECT_EQ(rows(*native.weights, "to_q", head), rows(*weights_, "to_k", 0));
  EXPECT_EQ(rows(*native.weights, "to_k", 0), rows(*weights_, "to_v", 0));
  EXPECT_EQ(rows(*native.weights, "to_k", head), rows(*weights_, "to_q", head));
  EXPECT_EQ(rows(*native.weights, "to_v", 0), rows(*weights_, "to_k", head));
  EXPECT_EQ(rows(*native.weights, "to_v", head), rows(*weights_, "to_v", head));
  const Fault heads = Make("qk-heads");
  EXPECT_EQ(rows(*heads.weights, "to_q", 0), rows(*weights_, "to_q", head));
  EXPECT_EQ(rows(*heads.weights, "to_k", head), rows(*weights_, "to_k", 0));
  EXPECT_EQ(rows(*heads.weights, "to_v", 0), rows(*weights_, "to_v", 0));
  EXPECT_NE(*heads.weights->Digest(), *weights_->Digest());
  EXPECT_NE(*heads.weights->Identity(), *weights_->Identity());
}

}  // namespace
}  // namespace plumbline::drift
