// The plug-in interface as it was released, version by version. A plug-in that was built against a
// version's header runs where that version is accepted, so nothing of a released one may change.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/sha256.h"
#include "kernels/plugin/plumbline_plugin.h"

namespace plumbline::plugin {
namespace {

std::string ReadOrDie(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *std::move(text) : "";
}

// What a compiler sees of a header in C, each run of white space as one space: comments may change.
std::string WithoutComments(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "/*") == 0) {
      const size_t end = text.find("*/", i + 2);
      i = end == std::string::npos ? text.size() : end + 2;
      result += ' ';
    } else {
      result += text[i++];
    }
  }
  std::vector<std::string> words =
      absl::StrSplit(result, absl::ByAnyChar(" \n\t"), absl::SkipEmpty());
  result.clear();
  for (const std::string& word : words) absl::StrAppend(&result, word, " ");
  return result;
}

TEST(PluginAbiTest, TheHeaderIsThatOfItsVersion) {
  std::map<int, std::string> digests;
  for (absl::string_view line :
       absl::StrSplit(ReadOrDie("kernels/plugin/abi_versions.txt"), '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
    ASSERT_EQ(parts.size(), 2) << line;
    int version = 0;
    ASSERT_TRUE(absl::SimpleAtoi(parts[0], &version)) << line;
    EXPECT_TRUE(digests.emplace(version, parts[1]).second) << line;
  }
  ASSERT_EQ(digests.count(PLUMBLINE_PLUGIN_ABI_VERSION), 1);
  EXPECT_EQ(PLUMBLINE_PLUGIN_ABI_VERSION, digests.rbegin()->first);
  const std::string digest =
      Sha256Hex(WithoutComments(ReadOrDie("kernels/plugin/plumbline_plugin.h")));
  EXPECT_EQ(digest, digests.at(PLUMBLINE_PLUGIN_ABI_VERSION))
      << "The interface has changed. Raise PLUMBLINE_PLUGIN_ABI_VERSION, and add a line with the "
         "new version and this digest to abi_versions.txt; plug-ins must then be built again.";
}

TEST(PluginAbiTest, OtherTextHasAnotherDigest) {
  EXPECT_EQ(WithoutComments("int a; /* b */\n  int\tc;\n"), WithoutComments("int a;\nint c;"));
  EXPECT_NE(WithoutComments("int a;"), WithoutComments("long a;"));
}

// The same by the compiler's own word, so that a type that comes from elsewhere cannot change it.
TEST(PluginAbiTest, StructuresLieInMemoryAsInVersion1) {
  EXPECT_EQ(sizeof(plumbline_tensor), 56);
  EXPECT_EQ(offsetof(plumbline_tensor, batch), 16);
  EXPECT_EQ(offsetof(plumbline_tensor, batch_stride), 48);
  EXPECT_EQ(sizeof(plumbline_attributes), 24);
  EXPECT_EQ(sizeof(plumbline_node_call), 144);
  EXPECT_EQ(offsetof(plumbline_node_call, attributes), 32);
  EXPECT_EQ(offsetof(plumbline_node_call, output), 56);
  EXPECT_EQ(offsetof(plumbline_node_call, saved), 112);
  EXPECT_EQ(offsetof(plumbline_node_call, grad_parameters), 136);
  EXPECT_EQ(sizeof(plumbline_call), 72);
  EXPECT_EQ(offsetof(plumbline_call, parallel_for), 40);
  EXPECT_EQ(sizeof(plumbline_status), 16);
  EXPECT_EQ(sizeof(plumbline_constraints), 48);
  EXPECT_EQ(sizeof(plumbline_kernel), 128);
  EXPECT_EQ(offsetof(plumbline_kernel, constraints), 40);
  EXPECT_EQ(offsetof(plumbline_kernel, forward), 112);
  EXPECT_EQ(sizeof(plumbline_plugin), 48);
  EXPECT_EQ(offsetof(plumbline_plugin, kernels), 40);
}

}  // namespace
}  // namespace plumbline::plugin
