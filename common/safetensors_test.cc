#include "common/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/safetensors_writer.h"
#include "common/sha256.h"

namespace plumbline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kGolden[] = "tests/golden";
constexpr char kIndex[] = "diffusion_pytorch_model.safetensors.index.json";
constexpr char kShard1[] = "diffusion_pytorch_model-00001-of-00002.safetensors";
constexpr char kShard2[] = "diffusion_pytorch_model-00002-of-00002.safetensors";

class SafetensorsTest : public ::testing::Test {
 protected:
  SafetensorsTest() {
    std::string pattern = ::testing::TempDir() + "/safetensors_XXXXXX";
    folder_ = std::filesystem::canonical(mkdtemp(pattern.data()));
  }
  ~SafetensorsTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }

  void Write(absl::string_view name, absl::string_view contents) const {
    ASSERT_TRUE(WriteFileAtomically(Path(name), contents).ok());
  }

  // A sharded set of our own: a file per shard with tensors of one byte, and an index.
  void WriteShard(absl::string_view name, const std::vector<std::string>& tensors) const {
    static constexpr uint8_t kByte[] = {7};
    std::vector<TensorView> views;
    for (const std::string& tensor : tensors) views.push_back({{tensor, DType::kU8, {1}}, kByte});
    ASSERT_TRUE(WriteSafetensors(Path(name), views).ok());
  }
  void WriteIndex(const json& weight_map) const {
    Write("m.safetensors.index.json", json{{"weight_map", weight_map}}.dump());
  }
  std::string ErrorOfIndex(const SafetensorsOptions& options = {}) const {
    const auto file = SafetensorsFile::Open(Path("m.safetensors.index.json"), options);
    if (file.ok()) return "no error";
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << file.status();
    return std::string(file.status().message());
  }

  std::string folder_;
};

// Every file in tests/golden was written by the reference implementation: what we read from it and
// write again must be the same bytes.
TEST_F(SafetensorsTest, RoundTripsOfTheReferenceFilesReproduceTheirBytes) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kGolden)) {
    const std::string path = entry.path();
    if (!absl::EndsWith(path, ".safetensors")) continue;
    SCOPED_TRACE(path);
    ++files;
    const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE(file->tensors().empty());
    std::vector<TensorView> views;
    for (const TensorInfo& tensor : file->tensors()) {
      views.push_back({{tensor.name, tensor.dtype, tensor.shape}, file->Bytes(tensor)});
    }
    std::reverse(views.begin(), views.end());  // The order given must not matter.
    ASSERT_TRUE(WriteSafetensors(Path("copy"), views, file->metadata()).ok());
    EXPECT_EQ(Sha256Hex(*ReadFile(Path("copy"), 1 << 30)), Sha256Hex(*ReadFile(path, 1 << 30)));
  }
  EXPECT_GE(files, 10);
}

TEST_F(SafetensorsTest, BytesHaveTheDigestsThatTheCaptureScriptComputed) {
  const absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(absl::StrCat(kGolden, "/layouts.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  const json golden = json::parse(*ReadFile(absl::StrCat(kGolden, "/golden.json"), 1 << 20));
  int digests = 0;
  for (const auto& [layout, facts] : golden["layouts"].items()) {
    for (const char* tensor : {"position_ids", "token_tags"}) {
      const auto bytes = file->Bytes(absl::StrCat(layout, ".", tensor));
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      EXPECT_EQ(Sha256Hex(*bytes), facts[absl::StrCat(tensor, "_sha256")]) << layout;
      ++digests;
    }
  }
  EXPECT_GE(digests, 8);
}

TEST_F(SafetensorsTest, OneViewOfAllShards) {
  const std::string folder = absl::StrCat(kGolden, "/checkpoint/transformer/");
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(folder + kIndex);
  ASSERT_TRUE(file.ok()) << file.status();
  const json index = json::parse(*ReadFile(folder + kIndex, 1 << 20));
  uint64_t total_bytes = 0;
  for (const TensorInfo& tensor : file->tensors()) total_bytes += tensor.size_bytes();
  EXPECT_EQ(total_bytes, index["metadata"]["total_size"].get<uint64_t>());
  EXPECT_EQ(file->tensors().size(), index["weight_map"].size());
  EXPECT_EQ(file->metadata().at("format"), "pt");
  for (const char* shard : {kShard1, kShard2}) {
    const absl::StatusOr<SafetensorsFile> alone = SafetensorsFile::Open(folder + shard);
    ASSERT_TRUE(alone.ok()) << alone.status();
    for (const TensorInfo& tensor : alone->tensors()) {
      EXPECT_EQ(*file->Bytes(tensor.name), alone->Bytes(tensor)) << tensor.name;
    }
  }
  EXPECT_EQ(file->Find("no.such"), nullptr);
  EXPECT_EQ(file->Bytes("no.such").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SafetensorsTest, ATruncatedFileIsRefusedAtEveryLength) {
  const std::string path = Path("cut.safetensors");
  std::filesystem::copy_file(absl::StrCat(kGolden, "/transformer_inputs.safetensors"), path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  for (size_t size = std::filesystem::file_size(path); size > 0;) {
    size -= size <= 2000 ? 1 : 997;
    std::filesystem::resize_file(path, size);
    const absl::Status status = SafetensorsFile::Open(path).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << size;
    ASSERT_THAT(status.message(), HasSubstr(path)) << size;
  }
}

TEST_F(SafetensorsTest, AFileReplacedByRenamingStaysWholeForItsReader) {
  WriteShard("f.safetensors", {"a"});
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(Path("f.safetensors"));
  ASSERT_TRUE(file.ok());
  Write("f.safetensors", "");
  EXPECT_EQ((*file->Bytes("a"))[0], 7);
}

TEST_F(SafetensorsTest, OpensNothingButRegularFiles) {
  EXPECT_EQ(SafetensorsFile::Open(Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(SafetensorsFile::Open(folder_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SafetensorsTest, ShardsMustHoldExactlyWhatTheIndexSays) {
  WriteShard("1.safetensors", {"a", "b"});
  WriteShard("2.safetensors", {"c"});
  WriteIndex({{"a", "1.safetensors"}, {"b", "1.safetensors"}, {"c", "2.safetensors"}});
  EXPECT_EQ(ErrorOfIndex(), "no error");

  WriteIndex({{"a", "1.safetensors"}, {"b", "1.safetensors"}, {"c", "3.safetensors"}});
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("index.json: weight_map: shard \"3.safetensors\" of "
                                        "tensor \"c\" is missing"));
  WriteIndex({{"a", "1.safetensors"}, {"b", "2.safetensors"}, {"c", "2.safetensors"}});
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("does not name tensor \"b\" for shard \"1.safetensors\""));
  WriteIndex({{"a", "1.safetensors"}, {"b", "1.safetensors"}, {"x", "2.safetensors"}});
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("tensor \"x\" is not in shard \"2.safetensors\""));
  WriteIndex({{"a", "1.safetensors"}, {"c", "2.safetensors"}});
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("does not name tensor \"b\""));
  WriteShard("2.safetensors", {"b", "c"});
  WriteIndex({{"a", "1.safetensors"}, {"b", "1.safetensors"}, {"c", "2.safetensors"}});
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("2.safetensors: tensor \"b\" is in an earlier shard too"));
}

TEST_F(SafetensorsTest, AnIndexNamesFilesBesideIt) {
  WriteShard("1.safetensors", {"a"});
  for (const char* shard :
       {"", ".", "..", "../1.safetensors", "/etc/passwd", "sub/1.safetensors", "./1.safetensors"}) {
    WriteIndex({{"a", shard}});
    EXPECT_THAT(ErrorOfIndex(), HasSubstr("accepted: the name of a file beside the index"));
  }
  WriteIndex({{"a", std::string("1.safetensors\0x", 15)}});
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("beside the index"));
  WriteIndex({{"a", 1}});
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("shard of tensor \"a\" is \"1\""));
  WriteIndex(json::array());
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("weight_map: is missing"));
  WriteIndex(json::object());
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("names no tensor"));
  Write("m.safetensors.index.json", "{\"weight_map\":{\"a\":\"1\",\"a\":\"2\"}}");
  EXPECT_THAT(ErrorOfIndex(), HasSubstr("key \"a\" appears twice"));
}

TEST_F(SafetensorsTest, LinkedShardsStayUnderTheRoots) {
  std::filesystem::create_directories(Path("root/model"));
  std::filesystem::create_directories(Path("root/blobs"));
  WriteShard("root/blobs/inside", {"a"});
  WriteShard("outside", {"a"});
  const std::string index = "root/model/m.safetensors.index.json";
  Write(index, R"({"weight_map":{"a":"1.safetensors"}})");
  SafetensorsOptions options;
  options.shard_roots = {Path("root")};
  std::filesystem::create_symlink("../blobs/inside", Path("root/model/1.safetensors"));
  EXPECT_TRUE(SafetensorsFile::Open(Path(index), options).ok());
  std::filesystem::remove(Path("root/model/1.safetensors"));
  std::filesystem::create_symlink(Path("outside"), Path("root/model/1.safetensors"));
  EXPECT_TRUE(SafetensorsFile::Open(Path(index)).ok());
  EXPECT_THAT(SafetensorsFile::Open(Path(index), options).status().message(),
              HasSubstr("leads through a link out of the configured roots"));
}

}  // namespace
}  // namespace plumbline
