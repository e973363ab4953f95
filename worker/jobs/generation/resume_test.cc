// A generation goes on where it was ended, and ends with the same bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/sha256.h"
#include "common/status.h"
#include "kernels/identity/coverage.h"
#include "worker/jobs/generation/fixture.h"

namespace plumbline::jobs {
namespace {

using ::testing::HasSubstr;

// A coordinator's store as an attempt that may be killed sees it: what is being acknowledged when
// the attempt dies may or may not have been stored.
class MortalStore : public steps::StepStore {
 public:
  explicit MortalStore(steps::MemoryStepStore* store) : store_(*store) {}

  // From now on nothing reaches the store, but what was on its way if `pending_arrives`.
  void Kill(bool pending_arrives) {
    if (dead_) return;
    dead_ = true;
    if (pending_arrives) Arrive();
  }

  absl::StatusOr<v1::Run> GetRun(const std::string& run) override { return store_.GetRun(run); }
  absl::Status Begin(const steps::RunFacts& facts) override { return store_.Begin(facts); }
  absl::Status Fetch(const std::string& run, int32_t first, int32_t count,
                     absl::FunctionRef<absl::Status(steps::SavedStep step)> sink) override {
    return store_.Fetch(run, first, count, sink);
  }
  absl::Status Save(const steps::RunFacts& facts, steps::SavedStep step) override {
    PLUMBLINE_RETURN_IF_ERROR(Flush());
    facts_ = facts;
    pending_ = std::move(step);
    return absl::OkStatus();
  }
  absl::Status Flush() override {
    if (dead_) return absl::CancelledError("dead");
    Arrive();
    return absl::OkStatus();
  }
  std::vector<v1::StepRecord> TakeAcknowledged() override {
    return dead_ ? std::vector<v1::StepRecord>() : store_.TakeAcknowledged();
  }

 private:
  void Arrive() {
    if (pending_.has_value()) {
      EXPECT_TRUE(store_.Save(facts_, *std::exchange(pending_, std::nullopt)).ok());
    }
  }

  steps::MemoryStepStore& store_;
  steps::RunFacts facts_;
  std::optional<steps::SavedStep> pending_;
  bool dead_ = false;
};

class ResumeTest : public GenerationTest {
 protected:
  ResumeTest() {
    log_path_ = environment_.output_folder + "/log";
    log_ = std::fopen(log_path_.c_str(), "w");
    LogOptions options;
    options.format = LogFormat::kJson;
    options.file = log_;
    ConfigureLogging(options);
  }
  ~ResumeTest() override {
    ConfigureLogging(LogOptions());
    std::fclose(log_);
  }

  struct Computation {
    std::string run;
    int step;
    int64_t fencing_token;
  };
  // What the log says was computed since the last call, but for what was computed again on purpose.
  std::vector<Computation> TakeLogged() {
    std::vector<Computation> computations;
    const std::string log = *ReadFile(log_path_, 1 << 24);
    const absl::string_view fresh = absl::string_view(log).substr(log_taken_);
    log_taken_ = log.size();
    for (absl::string_view line : absl::StrSplit(fresh, '\n')) {
      if (line.empty()) continue;
      const auto entry = nlohmann::json::parse(std::string(line));
      if (entry["message"] != "computing step" || entry["origin"] != "STEP_ORIGIN_COMPUTED") {
        continue;
      }
      computations.push_back({entry["run"], entry["step"], entry["fencing_token"]});
    }
    return computations;
  }

  absl::StatusOr<JobResult> Attempt(const v1::JobSpec& spec) {
    environment_.generation.attempt = ++attempt_;
    environment_.generation.fencing_token = 100 + attempt_;
    return Run(spec);
  }

  // An uninterrupted run in a store of its own.
  struct Whole {
    std::string run;
    std::vector<std::vector<std::string>> steps;
    std::vector<std::string> latents;
  };
  Whole RunWhole(const v1::JobSpec& spec) {
    const absl::StatusOr<JobResult> result = Run(spec);
    EXPECT_TRUE(result.ok()) << result.status();
    Whole whole = {run_, StoredSteps(run_), LatentDigests(*result)};
    Forget();
    return whole;
  }
  // As if nothing had ever run.
  void Forget() {
    store_ = steps::MemoryStepStore();
    environment_.generation.sensitivity.clear();
    steps_.clear();
    attempt_ = 0;
  }

  void ExpectSame(const JobResult& result, const Whole& whole) {
    EXPECT_EQ(run_, whole.run);
    EXPECT_EQ(StoredSteps(run_), whole.steps);
    EXPECT_EQ(LatentDigests(result), whole.latents);
    EXPECT_EQ(result.report.generation().sensitivity_size(), 5);
    EXPECT_EQ(result.report.verdict().outcome(), v1::OUTCOME_PASSED);
    EXPECT_FALSE(result.report.generation().trace().groups().empty());
  }

  // The step `index` of the run, changed by `change` and put back.
  void Change(int32_t index, const std::function<void(steps::SavedStep*)>& change) {
    steps::RunFacts facts;
    facts.identity.set_sha256(run_.substr(5));
    std::optional<steps::SavedStep> changed;
    ASSERT_TRUE(store_
                    .Fetch(run_, index, 1,
                           [&](steps::SavedStep step) {
                             changed = std::move(step);
                             return absl::OkStatus();
                           })
                    .ok());
    ASSERT_TRUE(changed.has_value());
    change(&*changed);
    store_.Put(facts, *std::move(changed));
  }

  int attempt_ = 0;
  std::string log_path_;
  size_t log_taken_ = 0;
  std::FILE* log_;
};

TEST_F(ResumeTest, PreemptedBeforeEveryStepIsTheSameRun) {
  const v1::JobSpec spec = Spec("candidate");
  const Whole whole = RunWhole(spec);
  TakeLogged();
  absl::StatusOr<JobResult> result;
  for (int end = 1;; ++end) {
    // The worker is told to end while the step `end - 1` runs.
    environment_.generation.should_yield = [&] {
      return !steps_.empty() && steps_.back().step() + 1 >= end &&
             steps_.back().origin() == v1::STEP_ORIGIN_COMPUTED;
    };
    steps_.clear();
    result = Attempt(spec);
    if (result.ok()) break;
    ASSERT_TRUE(absl::IsCancelled(result.status())) << result.status();
    ASSERT_LE(end, 3 * kSteps);
  }
  ExpectSame(*result, whole);
  EXPECT_GE(attempt_, kSteps);
  // Nothing was lost, so nothing was computed twice.
  EXPECT_EQ(TakeLogged().size(), static_cast<size_t>(kSteps));
}

TEST_F(ResumeTest, KilledAnywhereItIsTheSameRun) {
  const auto seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const v1::JobSpec spec = Spec("candidate");
  const Whole whole = RunWhole(spec);
  // Segments; a whole run with its checks has some fifty.
  constexpr int kLongestLife = 30;
  int kills = 0;
  int runs = 0;
  while (kills < 200) {
    ++runs;
    Forget();
    TakeLogged();
    absl::StatusOr<JobResult> result;
    do {
      MortalStore store(&store_);
      int life = std::uniform_int_distribution<int>(0, kLongestLife)(random);
      const bool pending_arrives = random() % 2 == 0;
      std::set<int> acknowledged;
      if (const absl::StatusOr<v1::Run> run = store_.GetRun(whole.run); run.ok()) {
        for (const v1::StepRecord& step : run->steps()) acknowledged.insert(step.index());
      }
      environment_.generation.steps = &store;
      environment_.context.check_cancelled = [&]() -> absl::Status {
        if (--life > 0) return absl::OkStatus();
        store.Kill(pending_arrives);
        return absl::CancelledError("killed");
      };
      result = Attempt(spec);
      const std::vector<Computation> computations = TakeLogged();
      for (const Computation& computation : computations) {
        EXPECT_EQ(acknowledged.count(computation.step), 0u)
            << "step " << computation.step << " was computed after it was saved";
        EXPECT_EQ(computation.run, whole.run);
        EXPECT_EQ(computation.fencing_token, 100 + attempt_);
      }
      const absl::StatusOr<v1::Run> run = store_.GetRun(whole.run);
      const int saved = run.ok() ? run->steps_size() : 0;
      EXPECT_LE(static_cast<int>(computations.size()),
                saved - static_cast<int>(acknowledged.size()) + 2)
          << "an attempt lost more than two computations";
      if (!result.ok()) {
        ASSERT_TRUE(absl::IsCancelled(result.status())) << result.status();
        ++kills;
      }
    } while (!result.ok());
    ExpectSame(*result, whole);
  }
  std::printf("%d kills, %d runs\n", kills, runs);
}

// The identity of a build of the tree under `root`.
KernelIdentity IdentityOfTree(const std::string& root) {
  std::string lines;
  const std::vector<std::string> paths = *ListSources(root, CudaSources::kBuilt);
  for (const std::string& path : paths) {
    absl::StrAppend(&lines, Sha256Hex(*ReadFile(root + "/" + path, 1 << 20)), "  ", path, "\n");
  }
  return *MakeKernelIdentity(lines, "//kernels:ops -O3\n", "gcc 12.2.0", "x86_64 avx2 fma");
}

TEST_F(ResumeTest, ABuildWithOtherOrchestrationGoesOnAndOneWithOtherKernelsStartsAnew) {
  const std::string root = environment_.output_folder + "/tree";
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root + "/" + path).parent_path());
    ASSERT_TRUE(WriteFileAtomically(root + "/" + path, text).ok());
  };
  write("WORKSPACE", "");
  write("kernels/golden/cpu/linear.cc", "int x;\n");
  write("worker/h3/sampler.cc", "int x;\n");
  write("worker/jobs/generation/run.cc", "int x;\n");
  write("server/coordinator.cc", "int x;\n");
  kernel_identity_ = IdentityOfTree(root);
  const v1::JobSpec spec = Spec("candidate");
  int evaluations_left = 2 * 4 + 1;  // Four segments each.
  environment_.context.check_cancelled = [&] {
    return --evaluations_left > 0 ? absl::OkStatus() : absl::CancelledError("killed");
  };
  ASSERT_TRUE(absl::IsCancelled(Attempt(spec).status()));
  const std::string run = run_;
  ASSERT_GT(StoredSteps(run).size(), 0u);
  environment_.context.check_cancelled = [] { return absl::OkStatus(); };

  write("worker/jobs/generation/run.cc", "int y;\n");
  write("server/coordinator.cc", "int y;\n");
  kernel_identity_ = IdentityOfTree(root);
  const size_t saved = StoredSteps(run).size();
  absl::StatusOr<JobResult> result = Attempt(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(run_, run);
  EXPECT_EQ(result->report.generation().steps_replayed(), static_cast<int>(saved));

  for (const char* path : {"kernels/golden/cpu/linear.cc", "worker/h3/sampler.cc"}) {
    write(path, "int y;\n");
    kernel_identity_ = IdentityOfTree(root);
    result = Attempt(spec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_NE(run_, run);
    EXPECT_EQ(result->report.generation().steps_replayed(), 0) << path;
  }
}

TEST_F(ResumeTest, FinishedRunIsReusedAndNothingIsComputed) {
  const v1::JobSpec spec = Spec("candidate");
  const absl::StatusOr<JobResult> first = Attempt(spec);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(TakeLogged().size(), static_cast<size_t>(kSteps));
  attempt_ = 0;
  environment_.generation.sensitivity.clear();
  const absl::StatusOr<JobResult> second = Attempt(spec);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(TakeLogged().empty());
  EXPECT_TRUE(second->report.generation().reused());
  EXPECT_EQ(second->report.generation().steps_replayed(), kSteps);
  EXPECT_EQ(LatentDigests(*second), LatentDigests(*first));
  // Both are in the records of the steps.
  EXPECT_EQ(second->report.generation().sensitivity_size(), 5);
  EXPECT_EQ(second->report.generation().trace().DebugString(),
            first->report.generation().trace().DebugString());
}

TEST_F(ResumeTest, VerifiesTheLastStep) {
  v1::JobSpec spec = Spec("candidate");
  ASSERT_TRUE(Attempt(spec).ok());
  spec.mutable_generation()->set_verify_last_step(true);
  steps_.clear();
  absl::StatusOr<JobResult> result = Attempt(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.generation().steps(kSteps - 1).origin(), v1::STEP_ORIGIN_RECOMPUTED);
  EXPECT_EQ(result->report.generation().steps_replayed(), kSteps - 1);
  EXPECT_FALSE(result->report.generation().reused());
  EXPECT_EQ(steps_.back().origin(), v1::STEP_ORIGIN_RECOMPUTED);

  // Bytes that a faulty kernel had saved in good order.
  Change(kSteps - 1, [](steps::SavedStep* step) {
    step->tensors[1][100] ^= 1;
    step->record.mutable_outputs(1)->set_sha256(Sha256Hex(step->tensors[1]));
  });
  result = Attempt(spec);
  EXPECT_EQ(GetReason(result.status()), "STEP_INCONSISTENT");
  EXPECT_THAT(result.status().message(),
              HasSubstr("step 4: velocity.audio: first differing value"));
}

TEST_F(ResumeTest, QuarantinedStepIsComputedAgain) {
  const v1::JobSpec spec = Spec("candidate");
  const absl::StatusOr<JobResult> first = Attempt(spec);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto steps = StoredSteps(run_);
  Change(2, [](steps::SavedStep* step) { step->record.set_quarantined(true); });
  steps_.clear();
  const absl::StatusOr<JobResult> second = Attempt(spec);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->report.generation().steps_recomputed(), 1);
  EXPECT_EQ(second->report.generation().steps_replayed(), kSteps - 1);
  EXPECT_EQ(second->report.generation().steps(2).origin(), v1::STEP_ORIGIN_RECOMPUTED);
  EXPECT_EQ(StoredSteps(run_), steps);
  EXPECT_EQ(LatentDigests(*second), LatentDigests(*first));
}

TEST_F(ResumeTest, QuarantinedStepWithOtherInputsStopsTheRun) {
  const v1::JobSpec spec = Spec("candidate");
  ASSERT_TRUE(Attempt(spec).ok());
  Change(2, [](steps::SavedStep* step) {
    step->record.set_quarantined(true);
    step->record.set_input_digest(std::string(64, '0'));
    step->record.mutable_inputs(3)->set_sha256(std::string(64, '0'));
  });
  const absl::Status status = Attempt(spec).status();
  EXPECT_EQ(GetReason(status), "STEP_INCONSISTENT");
  EXPECT_THAT(status.message(), HasSubstr("step 2: timestep:"));
}

TEST_F(ResumeTest, StepUnderAFalseInputDigestStopsTheRun) {
  const v1::JobSpec spec = Spec("candidate");
  ASSERT_TRUE(Attempt(spec).ok());
  Change(3, [](steps::SavedStep* step) { step->record.set_input_digest(std::string(64, '0')); });
  absl::Status status = Attempt(spec).status();
  EXPECT_EQ(GetReason(status), "STEP_INCONSISTENT");
  EXPECT_THAT(status.message(), HasSubstr(run_));
  EXPECT_THAT(status.message(), HasSubstr("step 3: input_digest:"));

  // Velocities that are whole and another step's: the next step has other inputs.
  Forget();
  ASSERT_TRUE(Attempt(spec).ok());
  Change(1, [this](steps::SavedStep* step) {
    step->tensors = StoredSteps(run_)[0];
    for (int i = 0; i < 2; ++i) {
      step->record.mutable_outputs(i)->set_sha256(Sha256Hex(step->tensors[i]));
    }
  });
  status = Attempt(spec).status();
  EXPECT_THAT(status.message(), HasSubstr("step 2: input.hidden_states:"));
}

TEST_F(ResumeTest, FlippedBitThatTheStoreDidNotFindStopsTheRun) {
  const v1::JobSpec spec = Spec("candidate");
  ASSERT_TRUE(Attempt(spec).ok());
  Change(4, [](steps::SavedStep* step) { step->tensors[0][7] ^= 1; });
  EXPECT_THAT(Attempt(spec).status().message(), HasSubstr("step 4: velocity.video:"));
}

}  // namespace
}  // namespace plumbline::jobs
