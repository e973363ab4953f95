// A coordinator, tens of workers and some clients, killed and brought back at random: SIGKILL of
// the coordinator, its end at named crash points, workers that are killed, stay away or hand back
// what they hold, jobs that are cancelled and deleted. Whatever was acknowledged must be there
// afterwards, once.
//
//   soak [--kills=N] [--workers=N] [--seed=N] [--folder=DIR] [--server=PROGRAM]
//
// The seed decides what is killed when; how far each then was is the machine's.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "server/store/store_check.h"
#include "server/testing/acknowledged_load.h"
#include "server/testing/journal.h"
#include "server/testing/server_process.h"

namespace plumbline::server {
namespace {

constexpr int kClients = 2;
constexpr int kMostAtOnce = 8;
constexpr absl::Duration kProgressInterval = absl::Seconds(30);
constexpr absl::Duration kLongestAway = absl::Seconds(4);  // Twice a lease.
constexpr const char* kCrashPoints[] = {"store.before_commit", "store.after_commit",
                                        "store.step_received", "store.blobs_written",
                                        "store.blobs_flushed", "store.step_recorded"};

struct Flags {
  int kills = 200;
  int workers = 30;
  unsigned seed = std::random_device()();
  std::string folder = absl::StrCat("/tmp/plumbline-soak.", getpid());
  std::string server = "server/plumbline-server";
};

class Soak {
 public:
  explicit Soak(Flags flags)
      : flags_(std::move(flags)),
        random_(flags_.seed),
        journal_(flags_.folder + "/journal"),
        book_(&journal_) {}

  bool Run() {
    started_ = SystemClock()->Now();
    if (!StartServer("")) return false;
    for (int i = 0; i < kClients; ++i) {
      clients_.push_back(std::make_unique<LoadClient>(
          server_->Connect(), &book_, absl::StrCat("client", i), random_(), WhenGone::kRetry));
    }
    slots_.resize(flags_.workers);
    for (int i = 0; i < flags_.workers; ++i) StartWorker(i);
    while (kills_ < flags_.kills && book_.problems().empty()) {
      Pause();
      if (!Act()) return false;
      Report();
    }
    for (auto& client : clients_) {
      if (client->ended()) book_.Wrong("a client was refused and made no more jobs");
      client->Stop();
    }
    return Settle() && CheckEverything();
  }

  void Print() {
    std::printf(
        "%.0f s: %lld kills (%lld of the coordinator, %lld of those at named points; %lld "
        "of workers), %lld workers told to end; %s\n",
        absl::ToDoubleSeconds(SystemClock()->Now() - started_), static_cast<long long>(kills_),
        static_cast<long long>(server_kills_), static_cast<long long>(crash_points_),
        static_cast<long long>(kills_ - server_kills_), static_cast<long long>(terminated_),
        book_.Summary().c_str());
    for (const std::string& problem : book_.problems()) std::printf("  %s\n", problem.c_str());
    std::fflush(stdout);
  }

 private:
  struct Slot {
    std::unique_ptr<LoadWorker> worker;
    int incarnation = 0;
    absl::Time away_until = absl::InfinitePast();
  };

  bool StartServer(const std::string& crash_point) {
    ServerProcess::Options options;
    options.program = flags_.server;
    options.folder = flags_.folder;
    options.crash_point = crash_point;
    options.flags = {"--lease-duration=2s", "--log-format=json", "--quota=red=20"};
    if (server_ != nullptr) options.listen = address_;
    Launch(options);
    // One that ends at its crash point while it starts is started once more.
    if (!server_->serves() && !crash_point.empty()) {
      ++kills_;
      ++server_kills_;
      ++crash_points_;
      options.crash_point.clear();
      Launch(options);
    }
    if (!server_->serves()) {
      book_.Wrong("the coordinator does not come back; see its log");
      return false;
    }
    address_ = server_->address();
    return true;
  }

  void Launch(const ServerProcess::Options& options) {
    server_ = std::make_unique<ServerProcess>(options);
    ++launches_;
    const std::string armed =
        options.crash_point.empty() ? "" : absl::StrCat(", ends at ", options.crash_point);
    if (server_->serves()) {
      Note("serves at ", server_->address(), " as process ", server_->pid(), armed);
    } else {
      Note("ended with status ", server_->exit_status(), " before it served", armed);
    }
  }

  void KillServer() {
    Note("is killed");
    server_->Kill();
  }

  // Of the coordinator that was launched last.
  template <typename... Words>
  void Note(const Words&... words) {
    journal_.Note(absl::StrCat("coordinator ", launches_), absl::StrCat(words...));
  }

  void StartWorker(int slot) {
    slots_[slot].worker = std::make_unique<LoadWorker>(
        server_->Connect(), &book_, absl::StrCat("w", slot),
        absl::StrCat("p", ++slots_[slot].incarnation), random_(), WhenGone::kRetry);
  }

  // Until there is something to lose.
  void Pause() {
    const int64_t enough = book_.operations() + static_cast<int64_t>(random_() % 12);
    const absl::Time deadline = SystemClock()->Now() + absl::Seconds(2);
    while (book_.operations() < enough && !server_->HasEnded() && SystemClock()->Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  bool Act() {
    const absl::Time now = SystemClock()->Now();
    for (int i = 0; i < flags_.workers; ++i) {
      Slot& slot = slots_[i];
      if (slot.worker != nullptr && slot.worker->ended()) slot.worker.reset();
      if (slot.worker == nullptr && slot.away_until <= now) StartWorker(i);
    }
    if (server_->HasEnded()) {
      ++crash_points_;
      Note("ended with status ", server_->exit_status());
      return RestartServer();
    }
    const unsigned choice = random_() % 100;
    if (choice < 22) {
      KillServer();
      return RestartServer();
    }
    // Several at once, as when a cluster takes its machines back.
    const int count = 1 + static_cast<int>(random_() % kMostAtOnce);
    for (int i = 0; i < count; ++i) EndWorker(&slots_[random_() % slots_.size()], choice < 32);
    return true;
  }

  void EndWorker(Slot* slot, bool gently) {
    if (slot->worker == nullptr) return;
    if (gently) {
      ++terminated_;
      journal_.Note(slot->worker->name(), "is told to end");
      slot->worker->Terminate();
      return;
    }
    ++kills_;
    journal_.Note(slot->worker->name(), "is killed");
    slot->worker.reset();
    // Some come back only after their lease has expired.
    const double share = (random_() % 100) / 100.0;
    if (random_() % 10 == 0) slot->away_until = SystemClock()->Now() + kLongestAway * share;
  }

  bool RestartServer() {
    ++kills_;
    ++server_kills_;
    const bool armed = random_() % 3 == 0;
    const char* const point = kCrashPoints[random_() % std::size(kCrashPoints)];
    const std::string count = absl::StrCat(point, ":", 1 + random_() % 40);
    if (!StartServer(armed ? count : "")) return false;
    book_.Check(server_->Connect(), 3, &random_, /*may_end=*/true);
    return true;
  }

  // Workers finish what is there.
  bool Settle() {
    KillServer();
    if (!StartServer("")) return false;
    const absl::Time deadline = SystemClock()->Now() + absl::Minutes(5);
    const auto stub = v1::JobService::NewStub(server_->Connect());
    while (SystemClock()->Now() < deadline) {
      for (int i = 0; i < flags_.workers; ++i) {
        Slot& slot = slots_[i];
        if (slot.worker != nullptr && slot.worker->ended()) slot.worker.reset();
        if (slot.worker == nullptr) StartWorker(i);
      }
      grpc::ClientContext context;
      v1::ListJobsRequest request;
      request.mutable_filter()->add_states(v1::JOB_STATE_QUEUED);
      request.mutable_filter()->add_states(v1::JOB_STATE_RUNNING);
      v1::ListJobsResponse response;
      if (stub->ListJobs(&context, request, &response).ok() && response.jobs().empty()) {
        slots_.clear();
        return true;
      }
      absl::SleepFor(absl::Milliseconds(50));
    }
    book_.Wrong("jobs are left that nobody finishes");
    slots_.clear();
    return false;
  }

  bool CheckEverything() {
    book_.Check(server_->Connect(), 0, &random_);
    if (server_->Terminate() != 0) book_.Wrong("the coordinator does not end in good order");
    const absl::StatusOr<StoreCheck::Result> check = StoreCheck::Run(flags_.folder + "/data");
    if (!check.ok()) {
      book_.Wrong(std::string(check.status().message()));
      return false;
    }
    for (const std::string& problem : check->problems) book_.Wrong(problem);
    return book_.problems().empty();
  }

  void Report() {
    const absl::Time now = SystemClock()->Now();
    if (now - reported_ < kProgressInterval) return;
    reported_ = now;
    Print();
  }

  const Flags flags_;
  std::mt19937 random_;
  Journal journal_;
  AcknowledgedBook book_;
  std::unique_ptr<ServerProcess> server_;
  std::string address_;
  std::vector<std::unique_ptr<LoadClient>> clients_;
  std::vector<Slot> slots_;
  absl::Time started_;
  absl::Time reported_ = SystemClock()->Now();
  int64_t launches_ = 0;
  int64_t kills_ = 0;
  int64_t server_kills_ = 0;
  int64_t crash_points_ = 0;
  int64_t terminated_ = 0;
};

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Kills a coordinator and its workers again and again and checks what is left.",
               "soak");
  app.add_option("--kills", flags.kills, "How many")->capture_default_str();
  app.add_option("--workers", flags.workers, "How many work at once")->capture_default_str();
  app.add_option("--seed", flags.seed, "Decides what is killed when. Default: by chance");
  app.add_option("--folder", flags.folder, "Where the coordinator keeps its data")
      ->capture_default_str();
  app.add_option("--server", flags.server, "The coordinator's program")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (const char* const test_folder = std::getenv("TEST_TMPDIR"); test_folder != nullptr) {
    flags.folder = absl::StrCat(test_folder, "/soak");
  }
  std::filesystem::remove_all(flags.folder);
  std::filesystem::create_directories(flags.folder);
  std::printf("seed %u\n", flags.seed);
  bool passed = false;
  {
    Soak soak(flags);
    passed = soak.Run();
    soak.Print();
  }
  if (passed) std::filesystem::remove_all(flags.folder);
  std::printf("%s\n",
              passed ? "PASSED" : ("FAILED: data, log and journal are in " + flags.folder).c_str());
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace plumbline::server

int main(int argc, char** argv) { return plumbline::server::Main(argc, argv); }
