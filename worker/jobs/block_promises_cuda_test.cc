// What the candidate promises about bytes, of a whole block at the released width on a GPU: the
// same on repeat, beside other work on the card, among other rows and in a batch with other data.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "kernels/builtin.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/cuda/synthetic.h"
#include "worker/drift/block_entries.h"
#include "worker/drift/compare.h"
#include "worker/drift/row_selection.h"
#include "worker/drift/tensor_store.h"
#include "worker/h3/checkpoint.h"
#include "worker/h3/model_inputs.h"
#include "worker/h3/transformer_graph.h"
#include "worker/jobs/replay_execution.h"
#include "worker/jobs/replay_inputs.h"

namespace plumbline::jobs {
namespace {

using drift::BlockEntry;
using drift::RowSelection;
using drift::TensorStore;

constexpr char kCheckpoint[] = "synthetic:released:1";
constexpr int kRepeats = 100;
constexpr int kBusyRepeats = 20;

// Keeps the card's multiprocessors busy from a stream of its own.
class BusyStream {
 public:
  BusyStream() : thread_([this] { Run(); }) {
    while (launches_ == 0) std::this_thread::yield();
  }
  ~BusyStream() {
    stop_ = true;
    thread_.join();
  }
  int launches() const { return launches_; }

 private:
  void Run() {
    constexpr int64_t kValues = int64_t{16} << 20;
    cudaSetDevice(0);
    cudaStream_t stream;
    void* memory;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory, kValues * sizeof(float)), cudaSuccess);
    const Tensor tensor = Tensor::Dense(memory, DType::kF32, 1, 1, kValues);
    while (!stop_) {
      for (int i = 0; i < 8; ++i) {
        EXPECT_TRUE(FillSyntheticOnCuda(stream, "busy", 1, {1, 0}, tensor).ok());
      }
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      ++launches_;
    }
    cudaFree(memory);
    cudaStreamDestroy(stream);
  }

  std::atomic<bool> stop_ = false;
  std::atomic<int> launches_ = 0;
  std::thread thread_;
};

// Block 0 of the released model under the candidate, on one layout.
class Block {
 public:
  explicit Block(const std::string& layout)
      : weights_(h3::OpenCheckpoint(kCheckpoint, {}).value()),
        graph_(h3::BuildBlockGraph(weights_->config(), 0)),
        composition_(h3::ResolveComposition(h3::ParseComposition("candidate").value(), graph_,
                                            registry_, DeviceKind::kCuda)
                         .value()),
        device_weights_(weights_.get(), &device_) {
    v1::BlockReplaySpec spec;
    spec.add_layouts()->set_name(layout);
    spec.set_backward(true);
    inputs_ = MakeReplayInputs(spec, {}, weights_->config()).value();
    entries_ = std::make_unique<drift::BlockEntries>(weights_->config(), graph_, 0, inputs_.Rows(),
                                                     /*backward=*/true);
  }

  const drift::BlockEntries& entries() const { return *entries_; }
  const h3::Graph& graph() const { return graph_; }
  int64_t rows() const { return inputs_.Rows().packed; }

  DeviceInputs Inputs() { return MakeInputs(nullptr); }
  // Item 0 is that of Inputs().
  DeviceInputs BatchInputs() {
    const h3::BlockInputs other =
        h3::StandInBlockInputs(weights_->config(), inputs_.values.layout, h3::kOtherBatchItemSeed)
            .value();
    return MakeInputs(&other);
  }

  absl::Status Execute(const DeviceInputs& inputs, const ExecutionOptions& options,
                       h3::TapSink* sink, int times = 1) {
    const ReplayModel model{graph_, graph_.values()[graph_.outputs().front()].name, inputs_.Rows(),
                            registry_, device_};
    const ReplaySide side{&composition_, &device_weights_, &inputs, {}};
    const absl::StatusOr<std::unique_ptr<h3::Executor>> executor =
        MakeExecution(model, side, options, sink);
    if (!executor.ok()) return executor.status();
    for (int i = 0; i < times; ++i) {
      const absl::Status ran = (*executor)->Run();
      if (!ran.ok()) return ran;
    }
    for (const h3::NodeTrace& trace : (*executor)->trace()) {
      EXPECT_EQ(trace.status, BindingStatus::kBound) << trace.node;
    }
    return absl::OkStatus();
  }

  // Runs once and keeps every tensor.
  void Record(const ExecutionOptions& options, TensorStore* store) {
    RecordingSink sink(*entries_, store, [](size_t) { return absl::OkStatus(); });
    EXPECT_TRUE(Execute(Inputs(), options, &sink).ok());
  }

  // Runs `times` times and expects the bytes of `first` in every entry that is `wanted`.
  void ExpectSame(const TensorStore& first, const DeviceInputs& inputs,
                  const ExecutionOptions& options, const std::string& variation,
                  const std::function<bool(const BlockEntry&)>& wanted, int times = 1,
                  const RowSelection* rows_of_first = nullptr) {
    std::map<size_t, v1::EqualityCheck> checks;
    EqualitySink::Options sink_options;
    sink_options.variation = variation;
    sink_options.selection = rows_of_first;
    sink_options.wants = wanted;
    sink_options.check = [&](size_t entry) { return &checks[entry]; };
    sink_options.row_namer = [](const BlockEntry&) { return drift::NameOtherRow; };
    sink_options.tick = [] { return absl::OkStatus(); };
    EqualitySink sink(*entries_, first, &device_, std::move(sink_options));
    const absl::Status ran = Execute(inputs, options, &sink, times);
    ASSERT_TRUE(ran.ok()) << variation << ": " << ran;
    EXPECT_FALSE(checks.empty()) << variation;
    for (const auto& [entry, check] : checks) {
      EXPECT_EQ(check.result(), v1::EQUALITY_EQUAL)
          << variation << ": " << (*entries_)[entry].name << ": " << check.ShortDebugString();
      EXPECT_EQ(check.executions(), times) << variation << ": " << (*entries_)[entry].name;
    }
  }

 private:
  DeviceInputs MakeInputs(const h3::BlockInputs* other) {
    return DeviceInputs::Make(device_, inputs_.values, other, /*backward=*/true).value();
  }

  Device& device_ = *CudaDeviceForTest();
  const Registry registry_ = MakeBuiltinRegistry();
  const std::shared_ptr<const h3::WeightSource> weights_;
  const h3::Graph graph_;
  const h3::ResolvedComposition composition_;
  h3::DeviceWeights device_weights_;
  ReplayInputs inputs_;
  std::unique_ptr<drift::BlockEntries> entries_;
};

bool All(const BlockEntry&) { return true; }
bool DoesNotSumRows(const BlockEntry& entry) { return !entry.sums_rows; }
bool IsRowWise(const BlockEntry& entry) { return entry.row_wise && !entry.sums_rows; }

TEST(BlockPromises, HundredExecutionsHaveTheSameBytes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Block block("small");
  TensorStore first(CudaDeviceForTest());
  block.Record({/*backward=*/true}, &first);
  block.ExpectSame(first, block.Inputs(), {/*backward=*/true}, "repeat", All, kRepeats);
}

TEST(BlockPromises, ABusyStreamChangesNothing) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  for (const char* layout : {"tiny", "medium"}) {
    Block block(layout);
    TensorStore first(CudaDeviceForTest());
    block.Record({/*backward=*/true}, &first);
    const BusyStream busy;
    block.ExpectSame(first, block.Inputs(), {/*backward=*/true},
                     absl::StrCat(layout, " beside a busy stream"), All, kBusyRepeats);
    EXPECT_GT(busy.launches(), 1);
  }
}

// Compared by whoever runs the program twice, the second time beside another process.
TEST(BlockPromises, SaysTheDigestOfABlock) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Block block("small");
  TensorStore store(CudaDeviceForTest());
  block.Record({/*backward=*/true}, &store);
  Sha256 all;
  for (const BlockEntry& entry : block.entries().all()) {
    all.Update(absl::StrCat(entry.name, " ", store.Sha256(entry.tensor_name).value(), "\n"));
  }
  std::printf("block digest: %s\n", all.FinishHex().c_str());
}

TEST(BlockPromises, OtherRowsChangeNothing) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Block block("medium");
  ASSERT_EQ(block.rows(), 3160);
  TensorStore first(CudaDeviceForTest());
  block.Record({/*backward=*/true}, &first);
  const DeviceInputs inputs = block.Inputs();
  const RowSelection whole{0, 1, 3160};
  for (const RowSelection& selection :
       {RowSelection{1579, 1, 1}, RowSelection{1000, 1, 2}, RowSelection{5, 50, 63},
        RowSelection{3, 11, 264}, RowSelection{2, 3, 925}, whole}) {
    // Fed with the rows of the whole: attention, which sees other rows now, would change them.
    const drift::SelectedRows fed(block.graph(), first, selection);
    block.ExpectSame(first, inputs, {/*backward=*/true, &fed, &selection},
                     absl::StrCat("rows ", selection.count), IsRowWise, 1, &selection);
  }
}

TEST(BlockPromises, AnotherBatchItemChangesNothing) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Block block("medium");
  const DeviceInputs batch = block.BatchInputs();
  for (const int64_t rows : {1, 2, 63, 264, 925, 3160}) {
    const RowSelection selection{0, 1, rows};
    TensorStore alone(CudaDeviceForTest());
    block.Record({/*backward=*/true, nullptr, &selection}, &alone);
    block.ExpectSame(alone, batch, {/*backward=*/true, nullptr, &selection, /*batch=*/2},
                     absl::StrCat("rows ", rows, " in a batch of 2"), DoesNotSumRows);
  }
}

}  // namespace
}  // namespace plumbline::jobs
