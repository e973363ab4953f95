// Every fault that a checkpoint is known to come with, by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/sha256.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/scan.h"
#include "worker/checkpoint/testing/checkpoint_writer.h"
#include "worker/h3/checkpoint.h"

namespace plumbline::checkpoint {
namespace {

using h3::testing::BundledConfig;
using h3::testing::BundledTensors;
using h3::testing::FindTensor;
using h3::testing::NativeConfig;
using h3::testing::OwnedTensor;
using h3::testing::OwnedTensors;
using h3::testing::ToNative;
using h3::testing::WriteCheckpoint;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;
using v1::CheckpointFinding;

constexpr char kStem[] = "diffusion_pytorch_model";
constexpr char kQuery[] = "transformer_blocks.1.attn.to_q.weight";
constexpr char kGateUp[] = "transformer_blocks.0.ff.net.0.proj.weight";

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    std::string pattern = ::testing::TempDir() + "/verify.XXXXXX";
    root_ = std::filesystem::canonical(mkdtemp(pattern.data()));
  }
  ~VerifyTest() override { std::filesystem::remove_all(root_); }

  void Write(const OwnedTensors& tensors, int shards = 2) {
    WriteCheckpoint(root_, tensors, shards, kStem, BundledConfig());
  }

  Scan ScanOrDie(int threads = 2) {
    ScanOptions options;
    options.threads = threads;
    options.on_progress = [this](int64_t done, int64_t total) {
      EXPECT_LE(done, total);
      progress_ = done;
    };
    options.check_cancelled = [] { return absl::OkStatus(); };
    absl::StatusOr<Scan> scan = ScanCheckpoint(root_, {root_}, options);
    EXPECT_TRUE(scan.ok()) << scan.status();
    return scan.ok() ? *std::move(scan) : Scan();
  }

  // The manifest of what lies there.
  Manifest ManifestOrDie() {
    const Scan scan = ScanOrDie();
    EXPECT_THAT(scan.findings, IsEmpty());
    absl::StatusOr<Manifest> manifest = ReadManifest(ManifestText(scan), "manifest");
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return manifest.ok() ? *std::move(manifest) : Manifest();
  }

  // "KIND tensor" or "KIND file" of every finding.
  static std::vector<std::string> Named(const Scan& scan) {
    std::vector<std::string> named;
    for (const CheckpointFinding& finding : scan.findings) {
      named.push_back(absl::StrCat(CheckpointFinding::Kind_Name(finding.kind()).substr(5), " ",
                                   finding.tensor().empty() ? finding.file() : finding.tensor()));
    }
    return named;
  }
  std::vector<std::string> Judged(const Manifest& manifest) {
    Scan scan = ScanOrDie();
    JudgeByManifest(manifest, &scan);
    return Named(scan);
  }

  std::string Shard(int i) {
    return absl::StrCat("transformer/", kStem, "-0000", i, "-of-00002.safetensors");
  }
  std::string ReadOrDie(const std::string& name) {
    return *ReadFile(absl::StrCat(root_, "/", name), 64 << 20);
  }
  void WriteFile(const std::string& name, const std::string& contents) {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(root_, "/", name), contents).ok());
  }

  std::string root_;
  int64_t progress_ = 0;
};

TEST_F(VerifyTest, WholeCheckpointIsReadOnceAndMeasured) {
  Write(BundledTensors());
  const Scan scan = ScanOrDie();
  EXPECT_THAT(scan.findings, IsEmpty());
  EXPECT_EQ(scan.layout, v1::CHECKPOINT_LAYOUT_DIFFUSERS);
  EXPECT_EQ(scan.tensors.size(), 62u);
  int64_t bytes = 0;
  for (const v1::CheckpointReport::File& file : scan.files) {
    const std::string contents = ReadOrDie(file.path());
    EXPECT_EQ(file.size_bytes(), static_cast<int64_t>(contents.size()));
    EXPECT_EQ(file.sha256(), Sha256Hex(contents)) << file.path();
    bytes += file.size_bytes();
  }
  EXPECT_EQ(scan.files.size(), 4u);
  EXPECT_EQ(scan.bytes_read, bytes);
  EXPECT_EQ(progress_, bytes - scan.files[0].size_bytes() - scan.files[3].size_bytes());
  // The digest is that of the weights as the model reads them.
  EXPECT_EQ(scan.sha256, *(*h3::OpenCheckpoint("synthetic:tiny", {root_}))->Digest());

  const OwnedTensors tensors = BundledTensors();
  for (const ScannedTensor& tensor : scan.tensors) {
    OwnedTensors copy = tensors;
    const OwnedTensor& expected = *FindTensor(tensor.name, &copy);
    EXPECT_EQ(tensor.figures.sha256, Sha256Hex(expected.bytes));
    if (expected.spec.dtype != DType::kF32) continue;
    double square = 0;
    for (size_t i = 0; i < expected.bytes.size(); i += 4) {
      float value;
      std::memcpy(&value, &expected.bytes[i], 4);
      square += double{value} * value;
    }
    EXPECT_NEAR(tensor.figures.norm, std::sqrt(square), 1e-12 * tensor.figures.norm) << tensor.name;
  }
}

TEST_F(VerifyTest, NativeLayoutHasTheDigestsOfTheReleasedOne) {
  Write(BundledTensors());
  const Manifest manifest = ManifestOrDie();
  std::filesystem::remove_all(root_ + "/transformer");
  WriteCheckpoint(root_, ToNative(BundledTensors()), 3, "model", NativeConfig(), /*index=*/false);
  Scan scan = ScanOrDie();
  EXPECT_EQ(scan.layout, v1::CHECKPOINT_LAYOUT_NATIVE);
  EXPECT_EQ(scan.sha256, manifest.sha256);
  ASSERT_EQ(scan.tensors.size(), manifest.tensors.size());
  for (const ScannedTensor& tensor : scan.tensors) {
    EXPECT_EQ(tensor.figures.sha256, manifest.tensors.at(tensor.name).sha256) << tensor.name;
    EXPECT_EQ(tensor.figures.part_norms, manifest.tensors.at(tensor.name).part_norms);
  }
  // The released layout's manifest judges it, and the other way round.
  JudgeByManifest(manifest, &scan);
  EXPECT_THAT(scan.findings, IsEmpty());
}

TEST_F(VerifyTest, ComputedWeightsAreMeasuredToo) {
  Write(BundledTensors());
  const Manifest manifest = ManifestOrDie();
  ScanOptions options;
  options.on_progress = [](int64_t, int64_t) {};
  options.check_cancelled = [] { return absl::OkStatus(); };
  Scan scan = *ScanComputed(**h3::OpenCheckpoint("synthetic:tiny", {root_}), options);
  EXPECT_EQ(scan.sha256, manifest.sha256);
  JudgeByManifest(manifest, &scan);
  EXPECT_THAT(scan.findings, IsEmpty());
}

TEST_F(VerifyTest, QkvRowsLeftInterleaved) {
  Write(BundledTensors());
  const Manifest manifest = ManifestOrDie();
  OwnedTensors tensors = BundledTensors();
  h3::testing::LeaveQkvInterleaved(&tensors);
  Write(tensors);
  Scan scan = ScanOrDie();
  EXPECT_THAT(scan.findings, IsEmpty());  // Without the manifest nothing shows.
  JudgeByManifest(manifest, &scan);
  EXPECT_THAT(Named(scan), Contains(absl::StrCat("QKV_ORDER ", kQuery)));
  int orders = 0;
  for (const CheckpointFinding& finding : scan.findings) {
    if (finding.tensor().empty()) continue;  // Files of other bytes.
    EXPECT_EQ(finding.kind(), CheckpointFinding::KIND_QKV_ORDER) << finding.DebugString();
    EXPECT_THAT(finding.message(), HasSubstr("interleaved head by head"));
    ++orders;
  }
  EXPECT_EQ(orders, 12);  // Three of two blocks and two refiner blocks.
}

TEST_F(VerifyTest, QueryHeadsPermuted) {
  Write(BundledTensors());
  const Manifest manifest = ManifestOrDie();
  OwnedTensors tensors = BundledTensors();
  std::string& bytes = FindTensor(kQuery, &tensors)->bytes;
  bytes = bytes.substr(bytes.size() / 2) + bytes.substr(0, bytes.size() / 2);
  Write(tensors);
  Scan scan = ScanOrDie();
  JudgeByManifest(manifest, &scan);
  EXPECT_THAT(Named(scan), Contains(absl::StrCat("QKV_ORDER ", kQuery)));
  EXPECT_THAT(scan.findings.back().message(), HasSubstr("permuted"));
}

TEST_F(VerifyTest, FeedForwardHalvesSwapped) {
  Write(BundledTensors());
  const Manifest manifest = ManifestOrDie();
  OwnedTensors tensors = BundledTensors();
  h3::testing::SwapFfnHalves(&tensors);
  Write(tensors);
  Scan scan = ScanOrDie();
  JudgeByManifest(manifest, &scan);
  EXPECT_THAT(Named(scan), Contains(absl::StrCat("FFN_ORDER ", kGateUp)));
  for (const CheckpointFinding& finding : scan.findings) {
    if (finding.tensor().empty()) continue;
    EXPECT_EQ(finding.kind(), CheckpointFinding::KIND_FFN_ORDER);
    EXPECT_THAT(finding.message(), HasSubstr("halves are swapped"));
  }
}

TEST_F(VerifyTest, TruncatedShard) {
  Write(BundledTensors());
  const Manifest manifest = ManifestOrDie();
  const std::string whole = ReadOrDie(Shard(2));
  for (const size_t size :
       {whole.size() - 1, whole.size() / 2, size_t{500}, size_t{4}, size_t{0}}) {
    WriteFile(Shard(2), whole.substr(0, size));
    EXPECT_THAT(Named(ScanOrDie()), ElementsAre("TRUNCATED_FILE " + Shard(2))) << size;
    EXPECT_THAT(Judged(manifest), ElementsAre("TRUNCATED_FILE " + Shard(2))) << size;
  }
  WriteFile(Shard(2), whole + "x");
  EXPECT_THAT(Named(ScanOrDie()), ElementsAre("CORRUPT_FILE " + Shard(2)));
}

TEST_F(VerifyTest, FlippedByteAnywhere) {
  Write(BundledTensors());
  const Manifest manifest = ManifestOrDie();
  const std::string whole = ReadOrDie(Shard(2));
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const size_t header = static_cast<uint8_t>(whole[0]) + 256 * static_cast<uint8_t>(whole[1]);
  for (int i = 0; i < 20; ++i) {
    // In the data, or in the header.
    const bool in_data = i % 4 != 0;
    const size_t at =
        in_data ? 8 + header + random() % (whole.size() - 8 - header) : random() % (8 + header);
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
    WriteFile(Shard(2), changed);
    SCOPED_TRACE(::testing::Message() << "byte " << at);
    Scan scan = ScanOrDie();
    JudgeByManifest(manifest, &scan);
    ASSERT_FALSE(scan.findings.empty());
    bool file_is_named = false;
    for (const CheckpointFinding& finding : scan.findings) {
      file_is_named = file_is_named || finding.file() == Shard(2);
      if (in_data && finding.kind() != CheckpointFinding::KIND_NONFINITE) {
        EXPECT_EQ(finding.kind(), CheckpointFinding::KIND_DIGEST_MISMATCH);
      }
    }
    EXPECT_TRUE(file_is_named);
  }
}

TEST_F(VerifyTest, NotANumber) {
  OwnedTensors tensors = BundledTensors();
  FindTensor(kQuery, &tensors)->bytes.replace(20, 2, "\xc0\x7f");
  FindTensor("proj_in.bias", &tensors)->bytes.replace(8, 4, std::string("\0\0\x80\xff", 4));
  Write(tensors);
  const Scan scan = ScanOrDie();
  EXPECT_THAT(Named(scan),
              UnorderedElementsAre(absl::StrCat("NONFINITE ", kQuery), "NONFINITE proj_in.bias"));
  for (const CheckpointFinding& finding : scan.findings) {
    EXPECT_THAT(finding.message(),
                HasSubstr(finding.tensor() == kQuery ? "1 values are NaN or infinite, the first at "
                                                       "index 10"
                                                     : "index 2"));
  }
}

TEST_F(VerifyTest, Float32StoredAsBfloat16) {
  OwnedTensors tensors = BundledTensors();
  OwnedTensor* const tensor = FindTensor("time_embedder.linear_1.weight", &tensors);
  std::string narrow;
  for (size_t i = 0; i < tensor->bytes.size(); i += 4) narrow += tensor->bytes.substr(i + 2, 2);
  tensor->spec.dtype = DType::kBF16;
  tensor->bytes = narrow;
  Write(tensors);
  const Scan scan = ScanOrDie();
  ASSERT_THAT(Named(scan), ElementsAre("WRONG_TYPE time_embedder.linear_1.weight"));
  EXPECT_THAT(scan.findings[0].message(),
              HasSubstr("is BF16 (128, 256); the configuration asks for F32 (128, 256)"));
  EXPECT_EQ(scan.sha256, "");
}

TEST_F(VerifyTest, MissingExtraAndMisshapenTensors) {
  OwnedTensors tensors = BundledTensors();
  FindTensor("proj_out.bias", &tensors)->spec.name = "proj_out.bios";
  FindTensor(kQuery, &tensors)->spec.shape = {128, 256};
  Write(tensors);
  EXPECT_THAT(Named(ScanOrDie()),
              UnorderedElementsAre("MISSING_TENSOR proj_out.bias", "EXTRA_TENSOR proj_out.bios",
                                   absl::StrCat("WRONG_SHAPE ", kQuery)));
  // In the native layout a missing fused weight is three missing parameters.
  OwnedTensors native = ToNative(BundledTensors());
  FindTensor("blocks.1.attn.qkv_proj.weight", &native)->spec.name = "blocks.1.attn.qkv";
  std::filesystem::remove_all(root_ + "/transformer");
  WriteCheckpoint(root_, native, 1, "model", NativeConfig());
  EXPECT_THAT(Named(ScanOrDie()),
              UnorderedElementsAre(absl::StrCat("MISSING_TENSOR ", kQuery),
                                   "MISSING_TENSOR transformer_blocks.1.attn.to_k.weight",
                                   "MISSING_TENSOR transformer_blocks.1.attn.to_v.weight",
                                   "EXTRA_TENSOR blocks.1.attn.qkv"));
}

TEST_F(VerifyTest, MissingFilesAndConfigurations) {
  Write(BundledTensors());
  const Manifest manifest = ManifestOrDie();
  const std::string config = ReadOrDie("transformer/config.json");
  unlink((root_ + "/" + Shard(1)).c_str());
  EXPECT_THAT(Judged(manifest), ElementsAre("MISSING_FILE " + Shard(1)));
  Write(BundledTensors());
  WriteFile("transformer/config.json", "{\"num_layers\": 2}");
  EXPECT_THAT(Judged(manifest), Contains("CONFIGURATION transformer/config.json"));
  unlink((root_ + "/transformer/config.json").c_str());
  EXPECT_THAT(Judged(manifest), Contains("MISSING_FILE transformer/config.json"));
  for (int i = 1; i <= 2; ++i) unlink((root_ + "/" + Shard(i)).c_str());
  ScanOptions options;
  EXPECT_EQ(ScanCheckpoint(root_, {root_}, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(VerifyTest, DecodersAreScannedToo) {
  Write(BundledTensors());
  std::filesystem::copy("tests/golden/checkpoint/vae", root_ + "/vae");
  std::filesystem::copy("tests/golden/checkpoint/audio_vae", root_ + "/audio_vae");
  const Manifest manifest = ManifestOrDie();
  EXPECT_EQ(manifest.files.count("vae/diffusion_pytorch_model.safetensors"), 1u);
  EXPECT_EQ(manifest.tensors.count("audio_vae.decoder.conv_post.weight_g"), 1u);
  std::filesystem::remove_all(root_ + "/vae");
  EXPECT_THAT(Judged(manifest),
              IsSupersetOf({"MISSING_FILE vae/config.json",
                            "MISSING_FILE vae/diffusion_pytorch_model.safetensors"}));
}

TEST_F(VerifyTest, CancellationEndsIt) {
  Write(BundledTensors());
  ScanOptions options;
  options.on_progress = [](int64_t, int64_t) {};
  options.check_cancelled = [] { return absl::CancelledError("stop"); };
  EXPECT_EQ(ScanCheckpoint(root_, {root_}, options).status().message(), "stop");
}

TEST_F(VerifyTest, ManifestThatWasChangedIsRefused) {
  Write(BundledTensors());
  std::string text = ManifestText(ScanOrDie());
  ASSERT_TRUE(ReadManifest(text, "m").ok());
  const size_t digit = text.find("\"norm\": ") + 8;
  text[digit] = text[digit] == '1' ? '2' : '1';
  EXPECT_THAT(ReadManifest(text, "m").status().message(), HasSubstr("is not the digest"));
  for (const char* bad : {"", "[]", "{}", "{\"format\": \"plumbline-rule-1\"}"}) {
    EXPECT_EQ(ReadManifest(bad, "m").status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace plumbline::checkpoint
