// The one program of `./dev gpu pack`, so that what the project's programs have in common travels
// once. Under the name of one of them it is that one: plumbline, plumbline-server,
// plumbline-worker, write_checkpoint. Else:
//   gpu_tests test [GoogleTest's flags]            every test that needs a GPU
//   gpu_tests bench [IMPLEMENTATION [JSON FILE]]   times of a block's operations and of a block;
//                                                  default: candidate
//   gpu_tests bench difference                     times of the comparison of a block's gradients
//   gpu_tests bench loading                        times of the loading of a block's weights
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "client/client_main.h"
#include "kernels/bench/cuda/block_bench.h"
#include "kernels/bench/cuda/difference_bench.h"
#include "kernels/bench/cuda/loading_bench.h"
#include "server/server_main.h"
#include "worker/bench/cuda/block_times.h"
#include "worker/checkpoint/write_checkpoint_command.h"
#include "worker/plugin/probe.h"
#include "worker/worker_main.h"

namespace {

constexpr char kUsage[] =
    "usage: gpu_tests test [--gtest_...] | bench [IMPLEMENTATION [JSON FILE]] |\n"
    "       bench difference | bench loading\n";

struct Program {
  const char* name;
  int (*main)(int argc, char** argv);
};
constexpr Program kPrograms[] = {
    {"plumbline", plumbline::client::ClientMain},
    {"plumbline-server", plumbline::server::ServerMain},
    {"plumbline-worker", plumbline::worker::WorkerMain},
    {"write_checkpoint", plumbline::checkpoint::WriteCheckpointMain},
};

int Bench(const std::string& implementation, const std::string& path) {
  nlohmann::json results;
  absl::Status status;
  if (implementation == "difference") {
    status = plumbline::RunDifferenceBench();
  } else if (implementation == "loading") {
    status = plumbline::RunLoadingBench();
  } else {
    status = plumbline::BenchBlocks(implementation, results);
    if (status.ok()) status = plumbline::BenchNodes(implementation, results);
  }
  if (!path.empty() && !(std::ofstream(path) << results.dump(1) << '\n').flush()) {
    status.Update(absl::InternalError(path + ": cannot be written"));
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  // Programs start themselves again, by another name, to probe a plug-in.
  if (const std::optional<int> probed = plumbline::worker::RunProbe(argc, argv)) return *probed;
  const std::string path = argv[0];
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const Program& program : kPrograms) {
    if (name == program.name) return program.main(argc, argv);
  }
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "bench" && argc <= 4) {
    return Bench(argc > 2 ? argv[2] : "candidate", argc > 3 ? argv[3] : "");
  }
  if (command != "test") {
    std::fputs(kUsage, stderr);
    return 2;
  }
  argv[1] = argv[0];
  --argc;
  ++argv;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
