#include "worker/h3/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files.h"
#include "common/safetensors.h"
#include "common/safetensors_writer.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGolden[] = "tests/golden/checkpoint/transformer";
constexpr char kIndexName[] = "diffusion_pytorch_model.safetensors.index.json";
constexpr char kFirstShard[] = "diffusion_pytorch_model-00001-of-00002.safetensors";
constexpr char kSecondShard[] = "diffusion_pytorch_model-00002-of-00002.safetensors";

// Of tests/golden/checkpoint, computed from WeightSource::Digest's comment by a Python script.
constexpr char kTinyDigest[] = "d735879bb577915184ebd4b1b114fd6299cdcc1420a432562d2618754a1c76a7";
constexpr char kTinyConfigDigest[] =
    "72508deeff4cc439d5eec3ae9f7aebdcc59b6bde0f832af9aa0833746c1475c8";

std::string ReadOrDie(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, 64 << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *std::move(text) : "";
}

// A copy of the bundled checkpoint under a root of its own, to be damaged.
class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    std::string pattern = ::testing::TempDir() + "/checkpoint.XXXXXX";
    root_ = mkdtemp(pattern.data());
    mkdir((root_ + "/c").c_str(), 0700);
    mkdir((root_ + "/c/transformer").c_str(), 0700);
    for (const char* name : {"config.json", kIndexName, kFirstShard, kSecondShard}) {
      Write(name, ReadOrDie(absl::StrCat(kGolden, "/", name)));
    }
  }

  std::string PathOf(absl::string_view name) {
    return absl::StrCat(root_, "/c/transformer/", name);
  }
  void Write(absl::string_view name, absl::string_view contents) {
    ASSERT_TRUE(WriteFileAtomically(PathOf(name), contents).ok());
  }

  // Replaces the shards by one file of the bundled tensors after `change`.
  void WriteSingleFile(const std::function<void(std::vector<TensorView>*)>& change) {
    const absl::StatusOr<SafetensorsFile> golden =
        SafetensorsFile::Open(absl::StrCat(kGolden, "/", kIndexName));
    ASSERT_TRUE(golden.ok()) << golden.status();
    std::vector<TensorView> tensors;
    for (const TensorInfo& tensor : golden->tensors()) {
      tensors.push_back({{tensor.name, tensor.dtype, tensor.shape}, golden->Bytes(tensor)});
    }
    change(&tensors);
    for (const char* name : {kIndexName, kFirstShard, kSecondShard}) {
      unlink(PathOf(name).c_str());
    }
    const absl::Status written =
        WriteSafetensors(PathOf("diffusion_pytorch_model.safetensors"), tensors);
    ASSERT_TRUE(written.ok()) << written;
  }

  std::shared_ptr<const WeightSource> OpenOrDie(absl::string_view spec) {
    absl::StatusOr<std::shared_ptr<const WeightSource>> weights = OpenCheckpoint(spec, {root_});
    EXPECT_TRUE(weights.ok()) << weights.status();
    return weights.ok() ? *std::move(weights) : nullptr;
  }

  std::string ErrorOf(absl::string_view spec) {
    const absl::Status status = OpenCheckpoint(spec, {root_}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec;
    EXPECT_EQ(GetFieldViolations(status).size(), 1) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith("checkpoint: "));
    return std::string(status.message());
  }

  std::string root_;
};

TEST_F(CheckpointTest, SyntheticTinyEqualsTheBundledCheckpoint) {
  const auto file = OpenOrDie("c");
  const auto synthetic = OpenOrDie("synthetic:tiny");
  ASSERT_TRUE(file != nullptr && synthetic != nullptr);
  ASSERT_EQ(file->parameters().size(), 62);
  for (const ParameterSpec& parameter : file->parameters()) {
    const absl::StatusOr<WeightView> a = file->Get(parameter.name);
    const absl::StatusOr<WeightView> b = synthetic->Get(parameter.name);
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(b.ok()) << b.status();
    EXPECT_EQ(a->tensor.dtype, parameter.dtype);
    EXPECT_EQ(a->tensor.width, parameter.shape.back());
    EXPECT_EQ(a->tensor.NumElements(), parameter.NumElements());
    EXPECT_TRUE(a->tensor.IsDense());
    EXPECT_EQ(a->Bytes(), b->Bytes()) << parameter.name;
  }
}

TEST_F(CheckpointTest, DigestIsOfTheWeightsAndIdentityIsCheap) {
  const auto file = OpenOrDie("c");
  const auto synthetic = OpenOrDie("synthetic:tiny");
  ASSERT_TRUE(file != nullptr && synthetic != nullptr);
  EXPECT_EQ(*file->Digest(), kTinyDigest);
  EXPECT_EQ(*synthetic->Digest(), kTinyDigest);
  EXPECT_EQ(*synthetic->Digest(), kTinyDigest);  // The kept one.
  EXPECT_EQ(*file->Identity(), absl::StrCat("sha256:", kTinyDigest));
  EXPECT_EQ(*synthetic->Identity(), absl::StrCat("synthetic:", kTinyConfigDigest, ":1"));
  EXPECT_EQ(file->Description(), "released layout, 2 shards");
  EXPECT_EQ(synthetic->Description(), "synthetic, seed 1");
}

TEST_F(CheckpointTest, DigestSeesEveryPart) {
  EXPECT_NE(*OpenOrDie("synthetic:tiny:2")->Digest(), kTinyDigest);
  // Only the configuration differs.
  Write("config.json", absl::StrReplaceAll(ReadOrDie(PathOf("config.json")),
                                           {{"\"norm_eps\": 1e-05", "\"norm_eps\": 2e-05"}}));
  EXPECT_NE(*OpenOrDie("c")->Digest(), kTinyDigest);
}

TEST_F(CheckpointTest, OneBitChangesTheDigest) {
  std::string shard = ReadOrDie(PathOf(kSecondShard));
  shard.back() ^= 1;
  Write(kSecondShard, shard);
  EXPECT_NE(*OpenOrDie("c")->Digest(), kTinyDigest);
}

TEST_F(CheckpointTest, OneFileNeedsNoIndex) {
  WriteSingleFile([](std::vector<TensorView>*) {});
  const auto weights = OpenOrDie("c");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(*weights->Digest(), kTinyDigest);
  EXPECT_EQ(weights->Description(), "released layout, 1 file");
}

TEST_F(CheckpointTest, ViewsOutliveTheirSource) {
  auto file = OpenOrDie("c");
  const WeightView view = *file->Get("proj_in.weight");
  const std::vector<uint8_t> before(view.Bytes().begin(), view.Bytes().end());
  file.reset();
  EXPECT_EQ(view.Bytes(), absl::MakeConstSpan(before));
  EXPECT_EQ(view.tensor.rows, 128);
  EXPECT_EQ(view.tensor.width, 96);
}

// A header of odd length puts every tensor at an odd address.
TEST_F(CheckpointTest, UnalignedTensorsAreCopied) {
  std::string shard = ReadOrDie(PathOf(kFirstShard));
  shard[0] = static_cast<char>(shard[0] + 1);
  const size_t header_bytes = 3064;  // The test's own knowledge of the bundled file.
  ASSERT_EQ(static_cast<uint8_t>(shard[0]) + 256 * static_cast<uint8_t>(shard[1]),
            header_bytes + 1);
  shard.insert(8 + header_bytes, " ");
  Write(kFirstShard, shard);
  const auto weights = OpenOrDie("c");
  ASSERT_NE(weights, nullptr);
  const WeightView view = *weights->Get("proj_in.weight");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.tensor.data) % 4, 0);
  EXPECT_EQ(view.Bytes(), OpenOrDie("synthetic:tiny")->Get("proj_in.weight")->Bytes());
  EXPECT_EQ(*weights->Digest(), kTinyDigest);
}

TEST_F(CheckpointTest, SyntheticSpecs) {
  EXPECT_EQ(OpenOrDie("synthetic:released")->config(), ReleasedConfig());
  EXPECT_EQ(OpenOrDie("synthetic:tiny:18446744073709551615")->Description(),
            "synthetic, seed 18446744073709551615");
  Write("wide.json", absl::StrReplaceAll(ReadOrDie(PathOf("config.json")),
                                         {{"\"num_layers\": 2", "\"num_layers\": 3"}}));
  EXPECT_EQ(OpenOrDie("synthetic:c/transformer/wide.json")->config().num_layers, 3);
  EXPECT_EQ(OpenOrDie("synthetic:c/transformer/wide.json:7")->Description(), "synthetic, seed 7");
  EXPECT_EQ(OpenOrDie("synthetic:c/transformer/config.json")->Identity().value(),
            OpenOrDie("synthetic:tiny:1")->Identity().value());

  for (const char* name : {"", "huge", "tiny.jso"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("synthetic:", name)),
                AllOf(HasSubstr(absl::StrCat("\"", name, "\"")),
                      HasSubstr("accepted: synthetic:released, synthetic:tiny, synthetic:CONFIG")));
  }
  for (const char* seed : {"", "x", "-1", "+1", " 1", "1.5", "18446744073709551616"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("synthetic:tiny:", seed)),
                HasSubstr(absl::StrCat("\"", seed, "\" is no seed")));
  }
}

TEST_F(CheckpointTest, PathsStayUnderTheRoots) {
  for (const char* path : {"../c", "/etc", "c/../../c", "nothing", "synthetic:../a.json",
                           "synthetic:/etc/a.json", "synthetic:nothing.json"}) {
    EXPECT_THAT(ErrorOf(path), HasSubstr("accepted: an existing path under")) << path;
  }
  // A configuration, an index and a shard that are links to the outside.
  const std::string outside = ::testing::TempDir() + "/outside.json";
  ASSERT_TRUE(WriteFileAtomically(outside, ReadOrDie(PathOf("config.json"))).ok());
  ASSERT_EQ(symlink(outside.c_str(), PathOf("link.json").c_str()), 0);
  EXPECT_THAT(ErrorOf("synthetic:c/transformer/link.json"), HasSubstr("link out of"));
  unlink(PathOf(kSecondShard).c_str());
  ASSERT_EQ(symlink(outside.c_str(), PathOf(kSecondShard).c_str()), 0);
  EXPECT_THAT(ErrorOf("c"), HasSubstr("link out of"));
  unlink(PathOf("config.json").c_str());
  ASSERT_EQ(symlink(outside.c_str(), PathOf("config.json").c_str()), 0);
  EXPECT_THAT(ErrorOf("c"), HasSubstr("link out of"));
}

TEST_F(CheckpointTest, MissingFiles) {
  unlink(PathOf(kSecondShard).c_str());
  EXPECT_THAT(ErrorOf("c"), AllOf(HasSubstr(kIndexName), HasSubstr(kSecondShard)));
  // Without its index the names of the shards say what is missing.
  unlink(PathOf(kIndexName).c_str());
  EXPECT_THAT(ErrorOf("c"), HasSubstr(absl::StrCat(kSecondShard, ": is missing")));
  unlink(PathOf(kFirstShard).c_str());
  EXPECT_THAT(ErrorOf("c"), AllOf(HasSubstr("holds no weights"), HasSubstr(kIndexName)));
  Write(kFirstShard, "");
  unlink(PathOf("config.json").c_str());
  EXPECT_THAT(ErrorOf("c"), HasSubstr("transformer/config.json"));
}

TEST_F(CheckpointTest, DamagedFiles) {
  const std::string shard = ReadOrDie(PathOf(kFirstShard));
  Write(kFirstShard, shard.substr(0, shard.size() - 1));
  EXPECT_THAT(ErrorOf("c"), HasSubstr(kFirstShard));
  Write(kFirstShard, shard.substr(0, 4));
  EXPECT_THAT(ErrorOf("c"), HasSubstr(kFirstShard));
  Write(kFirstShard, "");
  EXPECT_THAT(ErrorOf("c"), HasSubstr(kFirstShard));
  Write(kIndexName, "{");
  EXPECT_THAT(ErrorOf("c"), HasSubstr(kIndexName));
  Write(kIndexName, ReadOrDie(absl::StrCat(kGolden, "/", kIndexName)));
  Write("config.json", "[]");
  EXPECT_THAT(ErrorOf("c"), HasSubstr("transformer/config.json"));
}

TEST_F(CheckpointTest, ConfigurationThatDisagreesWithTheTensors) {
  const std::string config = ReadOrDie(PathOf("config.json"));
  Write("config.json", absl::StrReplaceAll(config, {{"\"ffn_dim\": 256", "\"ffn_dim\": 258"}}));
  EXPECT_THAT(ErrorOf("c"), AllOf(HasSubstr(kIndexName),
                                  HasSubstr("token_refiner.refiner_blocks.0.ff.net.0.proj.weight"),
                                  HasSubstr("is BF16 (512, 128)"), HasSubstr("BF16 (516, 128)")));
  Write("config.json", absl::StrReplaceAll(config, {{"\"num_layers\": 2", "\"num_layers\": 3"}}));
  EXPECT_THAT(ErrorOf("c"), AllOf(HasSubstr("\"transformer_blocks.2.norm1.weight\": is missing"),
                                  HasSubstr("4 more tensors do not fit")));
  Write("config.json", absl::StrReplaceAll(config, {{"\"num_layers\": 2", "\"num_layers\": 1"}}));
  EXPECT_THAT(ErrorOf("c"), AllOf(HasSubstr("\"transformer_blocks.1."),
                                  HasSubstr("is no tensor of the configured transformer")));
}

TEST_F(CheckpointTest, TensorOfAnotherType) {
  const std::vector<uint8_t> narrow(128 * 2);
  WriteSingleFile([&](std::vector<TensorView>* tensors) {
    for (TensorView& tensor : *tensors) {
      if (tensor.spec.name == "proj_in.bias") {
        tensor.spec.dtype = DType::kBF16;
        tensor.bytes = narrow;
      }
    }
  });
  EXPECT_THAT(ErrorOf("c"),
              HasSubstr("\"proj_in.bias\": is BF16 (128); the configuration asks for F32 (128)"));
}

TEST_F(CheckpointTest, MissingAndExtraTensors) {
  WriteSingleFile([](std::vector<TensorView>* tensors) {
    for (TensorView& tensor : *tensors) {
      if (tensor.spec.name == "proj_out.bias") tensor.spec.name = "proj_out.bios";
    }
  });
  EXPECT_THAT(ErrorOf("c"), AllOf(HasSubstr("\"proj_out.bias\": is missing"),
                                  HasSubstr("\"proj_out.bios\": F32 (96) is no tensor of")));
}

TEST_F(CheckpointTest, UnknownNames) {
  EXPECT_EQ(OpenOrDie("c")->Get("nothing").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenOrDie("synthetic:tiny")->Get("nothing").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::h3
