// The one program of `./dev gpu pack`:
//   gpu_tests test [GoogleTest's flags]   every test that needs a GPU
//   gpu_tests bench [IMPLEMENTATION]      times of a block's operations; default: candidate
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "kernels/bench/cuda/block_bench.h"

namespace {

constexpr char kUsage[] = "usage: gpu_tests test [--gtest_...] | bench [IMPLEMENTATION]\n";

int Bench(const std::string& implementation) {
  const absl::Status status = plumbline::RunCudaBench(implementation);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "bench") return Bench(argc > 2 ? argv[2] : "candidate");
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
