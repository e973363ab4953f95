#include "worker/jobs/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/safetensors.h"
#include "common/safetensors_writer.h"
#include "common/status.h"
#include "kernels/builtin.h"
#include "worker/jobs/task_failure.h"

namespace plumbline::jobs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DispatchTest : public testing::Test {
 protected:
  DispatchTest() {
    folder_ =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    device_ = *MakeCpuDevice(2, int64_t{1} << 30);
    kernel_identity_.sha256 = std::string(64, 'a');
    environment_.context.device = device_.get();
    environment_.context.registry = &registry_;
    environment_.context.clock = SystemClock();
    environment_.context.on_node = [](const v1::NodeEvent&) {};
    environment_.context.on_progress = [this](const v1::Progress& progress) {
      progress_ = progress;
    };
    environment_.context.check_cancelled = [this] { return cancelled_; };
    environment_.kernel_identity = &kernel_identity_;
    environment_.libraries = {{"openblas", "0.3.21 Haswell, 1 thread"}};
    environment_.threads = 2;
    environment_.checkpoints = &checkpoints_;
    environment_.output_folder = folder_;
    environment_.fetch = [this](const v1::InputFile& file,
                                absl::string_view field) -> absl::StatusOr<std::string> {
      const auto path = files_.find(file.artifact());
      if (path == files_.end()) return absl::NotFoundError(field);
      return path->second;
    };
  }

  absl::StatusOr<JobResult> Compare(const std::vector<TensorView>& a,
                                    const std::vector<TensorView>& b) {
    files_ = {{"artifacts/a", folder_ + "/a"}, {"artifacts/b", folder_ + "/b"}};
    EXPECT_TRUE(WriteSafetensors(files_["artifacts/a"], a).ok());
    EXPECT_TRUE(WriteSafetensors(files_["artifacts/b"], b).ok());
    return CompareStored();
  }

  absl::StatusOr<JobResult> CompareStored() {
    v1::JobSpec spec;
    spec.mutable_comparison()->mutable_tensors()->mutable_a()->set_artifact("artifacts/a");
    spec.mutable_comparison()->mutable_tensors()->mutable_b()->set_artifact("artifacts/b");
    return RunJob(spec, environment_);
  }

  static v1::Layout SmallLayout() {
    v1::Layout layout;
    layout.set_text_rows(7);
    layout.set_frames(2);
    layout.set_height(6);
    layout.set_width(8);
    layout.set_audio_latents(5);
    layout.add_keyframes(v1::KEYFRAME_FIRST);
    return layout;
  }

  static TensorView Floats(const std::string& name, const std::vector<float>& values,
                           std::vector<int64_t> shape) {
    return {{name, DType::kF32, std::move(shape)},
            absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                                values.size() * sizeof(float))};
  }

  std::string folder_;
  std::unique_ptr<Device> device_;
  Registry registry_ = MakeBuiltinRegistry();
  KernelIdentity kernel_identity_;
  CheckpointCache checkpoints_{{std::filesystem::absolute("tests/golden").string()}};
  std::map<std::string, std::string> files_;
  absl::Status cancelled_;
  v1::Progress progress_;
  JobEnvironment environment_;
};

TEST_F(DispatchTest, KindThatIsNotDoneIsNamed) {
  v1::JobSpec spec;
  spec.mutable_comparison()->mutable_runs();
  const absl::Status status = RunJob(spec, environment_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("comparison"));
  EXPECT_EQ(RunJob(v1::JobSpec(), environment_).status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(DispatchTest, TooLargeALayoutSaysTheMemoryThatItNeeds) {
  const auto small = MakeCpuDevice(1, 1 << 20);
  ASSERT_TRUE(small.ok()) << small.status();
  environment_.context.device = small->get();
  v1::JobSpec spec;
  spec.set_checkpoint("synthetic:tiny");
  spec.set_composition("candidate");
  *spec.mutable_block_replay()->add_layouts() = SmallLayout();
  const absl::Status status = RunJob(spec, environment_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_GT(GetNeededMemory(status), 1 << 20) << status;
}

TEST_F(DispatchTest, LayoutIsTheCapturedOne) {
  v1::JobSpec spec;
  *spec.mutable_layout()->mutable_layout() = SmallLayout();
  const absl::StatusOr<JobResult> result = RunJob(spec, environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::LayoutReport& report = result->report.layout();
  EXPECT_EQ(report.rows(), 53);
  EXPECT_EQ(report.keyframe_rows(), 12);
  ASSERT_EQ(result->files.size(), 1u);
  EXPECT_EQ(result->files[0].file_name, "layout-7,2,6,8,5,first.safetensors");
  EXPECT_EQ(result->files[0].role, v1::ARTIFACT_ROLE_TENSORS);
  const auto written = SafetensorsFile::Open(result->files[0].path);
  const auto captured = SafetensorsFile::Open("tests/golden/layouts.safetensors");
  ASSERT_TRUE(written.ok()) << written.status();
  ASSERT_TRUE(captured.ok()) << captured.status();
  int compared = 0;
  for (const TensorInfo& tensor : written->tensors()) {
    const TensorInfo* const reference = captured->Find("first_small." + tensor.name);
    if (reference == nullptr) continue;
    EXPECT_EQ(tensor.dtype, reference->dtype) << tensor.name;
    EXPECT_EQ(tensor.shape, reference->shape) << tensor.name;
    EXPECT_EQ(written->Bytes(tensor), captured->Bytes(*reference)) << tensor.name;
    ++compared;
  }
  EXPECT_EQ(compared, 5);
  EXPECT_EQ(report.tensors_size(), 7);
}

TEST_F(DispatchTest, BadLayoutNamesItsField) {
  v1::JobSpec spec;
  spec.mutable_layout()->mutable_layout()->set_text_rows(-1);
  const absl::Status status = RunJob(spec, environment_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("layout.layout.text_rows"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(DispatchTest, ComparisonMeasuresEveryTensor) {
  const std::vector<float> x = {3, 4, 0, 0}, y = {3, 4.5, 0, 0}, same = {1, 2};
  const auto result = Compare({Floats("x", y, {2, 2}), Floats("same", same, {2})},
                              {Floats("x", x, {2, 2}), Floats("same", same, {2})});
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::TensorFilesReport& report = result->report.tensor_files();
  ASSERT_EQ(report.tensors_size(), 2);
  EXPECT_EQ(report.tensors(0).name(), "same");
  EXPECT_TRUE(report.tensors(0).comparison().bitwise_equal());
  EXPECT_DOUBLE_EQ(report.tensors(1).comparison().relative_l2(), 0.1);
  EXPECT_EQ(report.tensors(1).comparison().reference(), "B");
  EXPECT_EQ(report.tensors(1).comparison().first_differing_row().row(), 0);
  EXPECT_EQ(report.different(), 1);
  EXPECT_FALSE(report.bitwise_equal());
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_NOT_JUDGED);
  EXPECT_EQ(progress_.done(), 2);
  EXPECT_EQ(progress_.total(), 2);
}

TEST_F(DispatchTest, EqualFilesPass) {
  const std::vector<float> x = {3, 4};
  const auto result = Compare({Floats("x", x, {2})}, {Floats("x", x, {2})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->report.tensor_files().bitwise_equal());
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_PASSED);
}

TEST_F(DispatchTest, OtherNamesAreComparedWithNoNumber) {
  const std::vector<float> x = {3, 4};
  const auto result = Compare({Floats("x", x, {2}), Floats("a", x, {2})},
                              {Floats("x", x, {2}), Floats("b", x, {2})});
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::TensorFilesReport& report = result->report.tensor_files();
  EXPECT_EQ(report.only_a(0), "a");
  EXPECT_EQ(report.only_b(0), "b");
  EXPECT_EQ(report.tensors_size(), 0);
  EXPECT_FALSE(report.bitwise_equal());
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(result->report.verdict().first_failure().entry(), "a");
}

TEST_F(DispatchTest, OtherShapesAreComparedWithNoNumber) {
  const std::vector<float> x = {3, 4};
  const auto result = Compare({Floats("x", x, {2, 1}), Floats("y", x, {2})},
                              {Floats("x", x, {1, 2}), Floats("y", x, {2})});
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::TensorFilesReport& report = result->report.tensor_files();
  ASSERT_EQ(report.tensors_size(), 1);
  EXPECT_EQ(report.tensors(0).comparison().incomparable(), "shape (2, 1) against (1, 2)");
  EXPECT_EQ(result->report.verdict().first_failure().gate(), "shape");
}

TEST_F(DispatchTest, ValueThatIsNotFiniteFails) {
  const std::vector<float> x = {3, 4}, y = {3, std::numeric_limits<float>::infinity()};
  const auto result = Compare({Floats("x", y, {2})}, {Floats("x", x, {2})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(result->report.verdict().first_failure().gate(), "finite");
}

TEST_F(DispatchTest, ErrorsNameFilesAsTheRequestDid) {
  files_ = {{"artifacts/a", folder_ + "/a"}, {"artifacts/b", folder_ + "/b"}};
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/a", "no safetensors").ok());
  const absl::Status status = CompareStored().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("comparison.tensors.a: artifacts/a"));
  EXPECT_THAT(status.message(), Not(HasSubstr(folder_)));
}

TEST_F(DispatchTest, CancellationEndsAComparison) {
  cancelled_ = absl::CancelledError("stop");
  const std::vector<float> x = {3, 4};
  EXPECT_EQ(Compare({Floats("x", x, {2})}, {Floats("x", x, {2})}).status(), cancelled_);
}

TEST_F(DispatchTest, BlockReplayReportsVerdictAndIdentities) {
  v1::JobSpec spec;
  spec.set_checkpoint("synthetic:tiny");
  spec.set_save_tensors(true);
  *spec.mutable_block_replay()->add_layouts() = SmallLayout();
  const absl::StatusOr<JobResult> result = RunJob(spec, environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::TaskReport& report = result->report;
  EXPECT_EQ(report.verdict().outcome(), v1::OUTCOME_PASSED) << report.verdict().sentence();
  EXPECT_EQ(report.composition(), "candidate");
  EXPECT_EQ(report.identity().sha256().size(), 64u);
  ASSERT_EQ(report.reference_identities().size(), 2u);
  const auto names = [](const v1::NumericalIdentity& identity) {
    std::vector<std::string> result;
    for (const v1::IdentityPart& part : identity.parts()) result.push_back(part.name());
    return result;
  };
  EXPECT_THAT(names(report.identity()),
              testing::ElementsAre("checkpoint", "composition", "device_class", "kernel"));
  EXPECT_THAT(names(report.reference_identities().at("provider/default")),
              testing::Contains("library.openblas"));
  ASSERT_EQ(result->files.size(), 1u);
  EXPECT_EQ(result->files[0].file_name, "tensors-7,2,6,8,5,first.safetensors");
  EXPECT_TRUE(SafetensorsFile::Open(result->files[0].path).ok());
}

TEST_F(DispatchTest, CheckpointOutsideTheRootsIsABadRequest) {
  v1::JobSpec spec;
  spec.set_checkpoint("../../etc");
  spec.mutable_block_replay();
  const absl::Status status = RunJob(spec, environment_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("checkpoint"));
}

TEST(TaskFailureTest, OnlyWhatAnotherTimeCanPutRightIsTriedAgain) {
  const auto class_of = [](absl::Status status) { return MakeTaskFailure(status).failure_class(); };
  EXPECT_EQ(class_of(FieldError("block", "is 9", "0 to 1")), v1::FAILURE_CLASS_BAD_REQUEST);
  EXPECT_EQ(class_of(absl::UnimplementedError("")), v1::FAILURE_CLASS_BAD_REQUEST);
  EXPECT_EQ(class_of(absl::NotFoundError("")), v1::FAILURE_CLASS_BAD_REQUEST);
  EXPECT_EQ(class_of(absl::InternalError("")), v1::FAILURE_CLASS_NUMERICAL);
  EXPECT_EQ(class_of(WithReason(absl::DataLossError(""), "STEP_INCONSISTENT")),
            v1::FAILURE_CLASS_NUMERICAL);
  EXPECT_EQ(class_of(WithReason(absl::DataLossError(""), "DIGEST_MISMATCH")),
            v1::FAILURE_CLASS_INFRASTRUCTURE);
  EXPECT_EQ(class_of(absl::UnavailableError("")), v1::FAILURE_CLASS_INFRASTRUCTURE);
  EXPECT_EQ(class_of(absl::CancelledError("")), v1::FAILURE_CLASS_CANCELLED);
}

TEST(TaskFailureTest, KeepsStatusAndDetails) {
  const v1::TaskFailure failure = MakeTaskFailure(FieldError("block", "is 9", "0 to 1"));
  EXPECT_EQ(failure.status().code(), 3);
  EXPECT_EQ(failure.status().message(), "block: is 9; accepted: 0 to 1");
  EXPECT_EQ(failure.status().details_size(), 1);
}

}  // namespace
}  // namespace plumbline::jobs
