// Watchers that read nothing: the coordinator holds a page for each and no more, and whoever reads
// gets everything meanwhile.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/sanitizer.h"
#include "gtest/gtest.h"
#include "server/testing/coordinator_fixture.h"
#include "server/testing/server_process.h"

namespace plumbline::server {
namespace {

constexpr int kSlow = 60;
constexpr int64_t kEvents = 8000;
constexpr int64_t kEventsABatch = 100;
constexpr size_t kEventBytes = 4096;
// A tenth of what all events come to, once for every watcher that does not read them.
constexpr int64_t kMostGrowthBytes = kSlow * kEvents * static_cast<int64_t>(kEventBytes) / 10;

// The most memory that a process had at once, bytes.
int64_t HighWaterOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string word;
  int64_t kilobytes = 0;
  while (file >> word) {
    if (word == "VmHWM:" && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

class SlowWatchersTest : public CoordinatorTest {
 protected:
  struct Slow {
    std::shared_ptr<grpc::Channel> channel;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::JobEvent>> stream;
  };

  // Has the stream begin, and reads its first event alone.
  std::unique_ptr<Slow> BeginToWatch(const ServerProcess& server, const std::string& job) {
    auto slow = std::make_unique<Slow>();
    slow->channel = server.Connect();
    v1::WatchJobRequest request;
    request.set_name(job);
    slow->stream = v1::JobService::NewStub(slow->channel)->WatchJob(&slow->context, request);
    v1::JobEvent event;
    EXPECT_TRUE(slow->stream->Read(&event));
    return slow;
  }

  absl::Status ReportAll(const v1::Lease& lease) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::ReportEventsResponse response;
    const auto stream = workers_->ReportEvents(&context, &response);
    for (int64_t first = 1; first <= kEvents; first += kEventsABatch) {
      v1::ReportEventsRequest request;
      request.set_task(lease.task());
      request.set_fencing_token(lease.fencing_token());
      for (int64_t number = first; number < first + kEventsABatch; ++number) {
        auto& event = *request.add_events();
        event.set_client_sequence(number);
        event.mutable_event()->mutable_log()->set_message(std::string(kEventBytes, 'x'));
      }
      if (!stream->Write(request)) break;
    }
    stream->WritesDone();
    return FromGrpcStatus(stream->Finish());
  }
};

TEST_F(SlowWatchersTest, CostLittleAndDelayNobody) {
  ServerProcess::Options options;
  options.folder = options_.data_dir;
  options.flags = {"--lease-duration=1m"};
  const ServerProcess server(options);
  ASSERT_TRUE(server.serves());
  jobs_ = v1::JobService::NewStub(server.Connect());
  workers_ = v1::WorkerService::NewStub(server.Connect());
  ASSERT_TRUE(Register("one", "i").ok());
  const std::string job = Create(Replay({"tiny"}))->name();
  const v1::Lease lease = Acquire("one", "i")->assignment().lease();
  std::vector<std::unique_ptr<Slow>> slow;
  for (int i = 0; i < kSlow; ++i) slow.push_back(BeginToWatch(server, job));
  const int64_t before = HighWaterOf(server.pid());
  const absl::Status reported = ReportAll(lease);
  ASSERT_TRUE(reported.ok()) << reported;
  ASSERT_TRUE(Complete(lease, Passed(), kEvents).ok());

  // The slow ones are still there and have read one event.
  int64_t logs = 0;
  int64_t sequence = 0;
  for (const v1::JobEvent& event : Watch(job, 0)) {
    ASSERT_EQ(event.sequence(), ++sequence);
    logs += event.has_log() ? 1 : 0;
  }
  EXPECT_EQ(logs, kEvents);
  const int64_t grown = HighWaterOf(server.pid()) - before;
  std::printf("grown by %.0f MB\n", static_cast<double>(grown) / 1e6);

  // Nothing is lost to one that reads on after all.
  v1::JobEvent event;
  int64_t read = 1;
  while (slow[0]->stream->Read(&event)) ASSERT_EQ(event.sequence(), ++read);
  EXPECT_EQ(read, sequence);
  for (const auto& each : slow) each->context.TryCancel();

  PLUMBLINE_SKIP_UNDER_SANITIZERS("what the coordinator freed stays resident for a while");
  EXPECT_LT(grown, kMostGrowthBytes);
}

}  // namespace
}  // namespace plumbline::server
