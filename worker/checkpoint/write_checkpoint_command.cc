#include "worker/checkpoint/write_checkpoint_command.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "worker/checkpoint/write_checkpoint.h"
#include "worker/h3/checkpoint.h"

namespace plumbline::checkpoint {

int WriteCheckpointMain(int argc, char** argv) {
  int shards = 0;
  if (argc < 4 || argc > 5 || !absl::SimpleAtoi(argv[2], &shards)) {
    std::fprintf(stderr, "usage: write_checkpoint CHECKPOINT SHARDS FOLDER [ROOT]\n");
    return 2;
  }
  std::vector<std::string> roots;
  if (argc == 5) roots.push_back(argv[4]);
  const auto weights = h3::OpenCheckpoint(argv[1], roots);
  const absl::StatusOr<int64_t> bytes =
      weights.ok() ? WriteCheckpoint(**weights, shards, argv[3]) : weights.status();
  if (!bytes.ok()) {
    std::fprintf(stderr, "write_checkpoint: %s\n", std::string(bytes.status().message()).c_str());
    return 1;
  }
  std::printf("%lld\n", static_cast<long long>(*bytes));
  return 0;
}

}  // namespace plumbline::checkpoint
