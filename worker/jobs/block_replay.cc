#include "worker/jobs/block_replay.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/jobs/replay_run.h"
#include "worker/jobs/replay_setup.h"

namespace plumbline::jobs {
namespace {

class SetUpBlockReplay final : public BlockReplay {
 public:
  SetUpBlockReplay(std::unique_ptr<ReplaySetup> setup) : setup_(std::move(setup)) {}

  int64_t EstimatedBytes() const override { return setup_->EstimatedBytes(); }

  absl::StatusOr<BlockReplayResult> Run() override {
    const int64_t memory_bytes = setup_->context.device->MemoryBytes();
    if (EstimatedBytes() > memory_bytes) {
      return WithNeededMemory(absl::ResourceExhaustedError(absl::StrCat(
                                  "layout ", setup_->inputs.label, " needs ", EstimatedBytes(),
                                  " bytes of device memory; this worker has ", memory_bytes)),
                              EstimatedBytes());
    }
    return ReplayRun(*setup_).Run();
  }

 private:
  const std::unique_ptr<ReplaySetup> setup_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockReplay>> BlockReplay::Create(const BlockReplayRequest& request,
                                                                 const h3::WeightSource& weights,
                                                                 const JobContext& context) {
  PLUMBLINE_ASSIGN_OR_RETURN(std::unique_ptr<ReplaySetup> setup,
                             ReplaySetup::Make(request, weights, context));
  return std::make_unique<SetUpBlockReplay>(std::move(setup));
}

}  // namespace plumbline::jobs
