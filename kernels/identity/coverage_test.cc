// The kernel identity must cover every source that can decide a number, and no option may let the
// compiler decide one.
//
// How a gap is found. What the identity covers is what an aspect found to be linked into the
// product (kernel_facts.bzl), so a new kernel is covered by being used. This test compares that
// with the source tree as it lies on the disk, which it reaches through a runfile's link: so a file
// that no BUILD file knows, and a folder that has none, are seen too. It must therefore run outside
// the sandbox and never from a cache (`tags` of its target).
#include "kernels/identity/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/sha256.h"
#include "kernels/identity/embedded.h"
#include "kernels/identity/kernel_identity.h"

namespace plumbline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

#ifdef PLUMBLINE_WITH_CUDA
constexpr CudaSources kCudaOfThisBuild = CudaSources::kBuilt;
#else
constexpr CudaSources kCudaOfThisBuild = CudaSources::kLeftOut;
#endif

std::string ReadOrDie(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, 64 << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *std::move(text) : "";
}

std::set<std::string> TestSupport() {
  std::set<std::string> paths;
  const absl::StatusOr<KernelIdentity> facts =
      MakeKernelIdentity(ReadOrDie("kernels/identity/test_support.sources"), "", "", "");
  EXPECT_TRUE(facts.ok()) << facts.status();
  for (const auto& [path, digest] : facts->sources) paths.insert(path);
  return paths;
}

TEST(KernelIdentityCoverageTest, EverySourceOfTheTreeIsCovered) {
  constexpr absl::string_view kThisFile = "kernels/identity/coverage_test.cc";
  char* real = realpath(std::string(kThisFile).c_str(), nullptr);
  ASSERT_NE(real, nullptr);
  const std::string path = real;
  free(real);
  ASSERT_THAT(path, ::testing::EndsWith(std::string(kThisFile)));
  const std::string root = path.substr(0, path.size() - kThisFile.size() - 1);

  const absl::StatusOr<std::vector<std::string>> gaps =
      FindGaps(root, kCudaOfThisBuild, EmbeddedKernelIdentity().sources, TestSupport());
  ASSERT_TRUE(gaps.ok()) << gaps.status();
  EXPECT_THAT(*gaps, IsEmpty())
      << absl::StrJoin(*gaps, "\n")
      << "\nThe product must link a source, or it covers nothing: add its target to `deps` of "
         "//kernels/identity:product. What only tests link belongs to :test_support.";
}

TEST(KernelIdentityCoverageTest, CoversTheKernelsAndTheGraph) {
  const KernelIdentity& identity = EmbeddedKernelIdentity();
  for (const char* path :
       {"kernels/ops.h", "kernels/numerics/elementary.cc", "kernels/golden/cpu/golden.cc",
        "kernels/candidate/cpu/linear.cc", "kernels/provider/cpu/linear.cc", "worker/h3/layout.cc",
        "worker/h3/executor.cc", "worker/h3/numerical_identity.cc",
        "kernels/identity/embedded.cc"}) {
    EXPECT_EQ(identity.sources.count(path), 1) << path;
  }
  EXPECT_THAT(identity.flags, HasSubstr("-O3 -march=x86-64-v3"));
  EXPECT_THAT(identity.flags, HasSubstr("-ffp-contract=off"));
  EXPECT_THAT(identity.compiler, HasSubstr(" "));
  EXPECT_EQ(identity.architecture, "x86_64 avx2 fma");
  EXPECT_EQ(identity.sha256.size(), 64);
  for (const auto& [path, digest] : identity.sources) {
    EXPECT_EQ(TestSupport().count(path), 0) << path << " is the product's and the tests' alone";
  }
}

TEST(KernelIdentityCoverageTest, NoFastMathReachesAKernel) {
  int targets = 0;
  for (absl::string_view line :
       absl::StrSplit(ReadOrDie("kernels/identity/product.commands"), '\n', absl::SkipEmpty())) {
    EXPECT_THAT(FastMathOptions(line), IsEmpty()) << line;
    ++targets;
  }
  EXPECT_GT(targets, 10);
}

// The same aspect over targets that are compiled and linked with such options.
TEST(KernelIdentityCoverageTest, PlantedFastMathIsFound) {
  std::map<std::string, std::vector<std::string>> found;
  for (absl::string_view line :
       absl::StrSplit(ReadOrDie("kernels/identity/planted.commands"), '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    found[parts.first] = FastMathOptions(parts.second);
  }
  EXPECT_THAT(found["//kernels/identity:planted_compile_option"], ElementsAre("-ffast-math"));
  EXPECT_THAT(found["//kernels/identity:planted_link_option"], ElementsAre("-Ofast"));
}

TEST(FastMathOptionsTest, KnowsThem) {
  EXPECT_THAT(FastMathOptions("-O3 -ffp-contract=off -fno-math-errno -fno-fast-math -mrecip=none "
                              "-fno-trapping-math -march=x86-64-v3 -Wall"),
              IsEmpty());
  EXPECT_THAT(
      FastMathOptions("-Ofast -O3 -funsafe-math-optimizations -ffp-contract=fast -mrecip=all"),
      ElementsAre("-Ofast", "-funsafe-math-optimizations", "-ffp-contract=fast", "-mrecip=all"));
  EXPECT_THAT(FastMathOptions("--use_fast_math -prec-div=false"),
              ElementsAre("--use_fast_math", "-prec-div=false"));
}

// A small workspace of its own, complete until something is planted in it.
class PlantedGapTest : public ::testing::Test {
 protected:
  PlantedGapTest() : root_(::testing::TempDir() + "/workspace") {
    std::filesystem::remove_all(root_);
    Write("WORKSPACE", "");
    Cover("kernels/ops.h");
    Cover("kernels/golden/cpu/linear.cc");
    Cover("worker/h3/cuda/graph.cu");
  }

  void Write(const std::string& path, const std::string& text) {
    const std::string full = root_ + "/" + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    ASSERT_TRUE(WriteFileAtomically(full, text).ok());
  }

  void Cover(const std::string& path, const std::string& text = "int x;\n") {
    Write(path, text);
    covered_[path] = Sha256Hex(text);
  }

  std::vector<std::string> Gaps(CudaSources cuda = CudaSources::kBuilt) {
    absl::StatusOr<std::vector<std::string>> gaps =
        FindGaps(root_, cuda, covered_, {"kernels/fake.h"});
    EXPECT_TRUE(gaps.ok()) << gaps.status();
    return *std::move(gaps);
  }

  const std::string root_;
  std::map<std::string, std::string> covered_;
};

TEST_F(PlantedGapTest, NothingPlanted) {
  Write("kernels/golden/cpu/linear_test.cc", "");
  Write("kernels/golden/cpu/BUILD.bazel", "");
  Write("kernels/fake.h", "");
  Write("worker/jobs/job.cc", "");
  Write("worker/h3x/job.cc", "");
  EXPECT_THAT(Gaps(), IsEmpty());
}

TEST_F(PlantedGapTest, NewSources) {
  Write("kernels/foo/bar.cc", "");
  Write("kernels/golden/cpu/linear.h", "");
  Write("kernels/candidate/cuda/sm90_linear.cu", "");
  Write("worker/h3/new.inc", "");
  EXPECT_THAT(Gaps(), ElementsAre("kernels/candidate/cuda/sm90_linear.cu: is not covered",
                                  "kernels/foo/bar.cc: is not covered",
                                  "kernels/golden/cpu/linear.h: is not covered",
                                  "worker/h3/new.inc: is not covered"));
}

TEST_F(PlantedGapTest, SourcesThatThisBuildLeavesOut) {
  Write("kernels/candidate/cuda/sm90_linear.cu", "");
  Write("kernels/cuda/ptx/wgmma.cuh", "");
  Write("kernels/cuda_like.h", "");
  EXPECT_THAT(Gaps(CudaSources::kLeftOut), ElementsAre("kernels/cuda_like.h: is not covered"));
}

TEST_F(PlantedGapTest, LinkedSource) {
  std::filesystem::create_symlink(root_ + "/kernels/ops.h", root_ + "/kernels/more.h");
  EXPECT_THAT(Gaps(), ElementsAre("kernels/more.h: is not covered"));
}

TEST_F(PlantedGapTest, ChangedSource) {
  Write("kernels/ops.h", "int y;\n");
  EXPECT_THAT(Gaps(), ElementsAre("kernels/ops.h: is not the file that was hashed"));
}

TEST_F(PlantedGapTest, SourceThatAsksForOtherArithmetic) {
  Cover("kernels/sly.cc", "#pragma GCC optimize(\"fast-math\")\n");
  Cover("kernels/slyer.cc", "__attribute__((optimize(\"fast-math\"))) int f();\n");
  EXPECT_THAT(Gaps(), ElementsAre("kernels/sly.cc: says \"pragma GCC optimize\"",
                                  "kernels/slyer.cc: says \"__attribute__((optimize\""));
}

TEST_F(PlantedGapTest, NoWorkspace) {
  std::filesystem::remove(root_ + "/WORKSPACE");
  EXPECT_EQ(FindGaps(root_, CudaSources::kBuilt, covered_, {}).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace plumbline
