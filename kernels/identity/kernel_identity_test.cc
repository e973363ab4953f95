#include "kernels/identity/kernel_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/sha256.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;

const std::string kA(64, 'a');
const std::string kB(64, 'b');

KernelIdentity Make(const std::string& sources, const std::string& flags,
                    const std::string& compiler = "gcc 12.2.0",
                    const std::string& architecture = "x86_64") {
  absl::StatusOr<KernelIdentity> identity =
      MakeKernelIdentity(sources, flags, compiler, architecture);
  EXPECT_TRUE(identity.ok()) << identity.status();
  return *std::move(identity);
}

TEST(KernelIdentityTest, DigestIsTheDocumentedOne) {
  const KernelIdentity identity =
      Make(kB + "  kernels/b.cc\n" + kA + "  kernels/a.h\n", "//k:b -O3 -mfma\n//k:a\n");
  EXPECT_EQ(identity.sha256, Sha256Hex("plumbline-kernel-identity-1\n"
                                       "compiler gcc 12.2.0\n"
                                       "architecture x86_64\n"
                                       "flags //k:a \n"
                                       "flags //k:b -O3 -mfma\n"
                                       "source kernels/a.h " +
                                       kA +
                                       "\n"
                                       "source kernels/b.cc " +
                                       kB + "\n"));
  EXPECT_EQ(identity.sources.at("kernels/b.cc"), kB);
  EXPECT_EQ(identity.target_flags.at("//k:b"), "-O3 -mfma");
  EXPECT_EQ(identity.flags, "; -O3 -mfma");
}

TEST(KernelIdentityTest, EveryPartCounts) {
  const std::string sources = kA + "  kernels/a.h\n";
  const std::string flags = "//k:a -O3\n";
  std::set<std::string> digests = {
      Make(sources, flags).sha256,
      Make(kB + "  kernels/a.h\n", flags).sha256,
      Make(kA + "  kernels/b.h\n", flags).sha256,
      Make(sources + kA + "  kernels/b.h\n", flags).sha256,
      Make(sources, "//k:a -O2\n").sha256,
      Make(sources, "//k:b -O3\n").sha256,
      Make(sources, flags, "gcc 13").sha256,
      Make(sources, flags, "gcc 12.2.0", "aarch64").sha256,
  };
  EXPECT_EQ(digests.size(), 8);
}

TEST(KernelIdentityTest, RefusesOtherLines) {
  const std::string line = kA + "  kernels/a.h\n";
  EXPECT_THAT(MakeKernelIdentity("abc  kernels/a.h\n", "", "", "").status().message(),
              HasSubstr("no line of a digest and a path"));
  EXPECT_THAT(MakeKernelIdentity(kA + "\n", "", "", "").status().message(),
              HasSubstr("no line of a digest and a path"));
  EXPECT_THAT(MakeKernelIdentity(line + line, "", "", "").status().message(),
              HasSubstr("a path twice"));
  EXPECT_THAT(MakeKernelIdentity("", "k:a -O3\n", "", "").status().message(),
              HasSubstr("no line of a label and options"));
  EXPECT_THAT(MakeKernelIdentity("", "//k:a\n//k:a\n", "", "").status().message(),
              HasSubstr("a label twice"));
}

}  // namespace
}  // namespace plumbline
