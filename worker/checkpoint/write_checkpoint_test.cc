// What is written is what the loader reads, and what a checkpoint looks like.
#include "worker/checkpoint/write_checkpoint.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/h3/checkpoint.h"

namespace plumbline::checkpoint {
namespace {

using ::testing::HasSubstr;

class WriteCheckpointTest : public ::testing::Test {
 protected:
  WriteCheckpointTest()
      : folder_(absl::StrCat(std::getenv("TEST_TMPDIR"), "/",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_);
  }

  std::shared_ptr<const h3::WeightSource> Open(const std::string& spec) {
    const auto source = h3::OpenCheckpoint(spec, {folder_});
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *source : nullptr;
  }

  const std::string folder_;
};

TEST_F(WriteCheckpointTest, HasTheDigestOfItsSourceInAnyNumberOfShards) {
  const auto source = Open("synthetic:tiny:3");
  const int most = static_cast<int>(source->parameters().size());
  for (const int shards : {1, 2, 14, most}) {
    const std::string name = absl::StrCat("written", shards);
    const auto bytes = WriteCheckpoint(*source, shards, absl::StrCat(folder_, "/", name));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto read = Open(name);
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(*read->Digest(), *source->Digest());
    EXPECT_THAT(read->Description(), HasSubstr("released layout"));

    // The bytes are those of the tensors, and the shards share them: none has much more than its
    // part.
    int64_t most_bytes = 0, all = 0;
    std::set<std::string> files;
    const std::string transformer = absl::StrCat(folder_, "/", name, "/transformer");
    for (const auto& file : std::filesystem::directory_iterator(transformer)) {
      if (file.path().extension() != ".safetensors") continue;
      files.insert(file.path().filename());
      all += static_cast<int64_t>(file.file_size());
      most_bytes = std::max(most_bytes, static_cast<int64_t>(file.file_size()));
    }
    EXPECT_EQ(files.size(), shards);
    EXPECT_GE(all, *bytes);
    if (shards == 2) {
      EXPECT_LT(most_bytes, *bytes * 6 / 10);
    }
    const auto index = ReadFile(
        absl::StrCat(transformer, "/diffusion_pytorch_model.safetensors.index.json"), 1 << 20);
    ASSERT_TRUE(index.ok()) << index.status();
    const auto json = nlohmann::json::parse(*index);
    EXPECT_EQ(json["metadata"]["total_size"], *bytes);
    EXPECT_EQ(json["weight_map"].size(), source->parameters().size());
  }
}

TEST_F(WriteCheckpointTest, RefusesMoreShardsThanTensorsAndAFolderThatHasOne) {
  const auto source = Open("synthetic:tiny");
  EXPECT_THAT(WriteCheckpoint(*source, 0, folder_ + "/a").status().message(), HasSubstr("1 to "));
  const int most = static_cast<int>(source->parameters().size());
  EXPECT_TRUE(absl::IsInvalidArgument(WriteCheckpoint(*source, most + 1, folder_ + "/a").status()));
  ASSERT_TRUE(WriteCheckpoint(*source, 1, folder_ + "/a").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(WriteCheckpoint(*source, 1, folder_ + "/a").status()));
}

}  // namespace
}  // namespace plumbline::checkpoint
