#include "kernels/plugin/library.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/plugin/plumbline_plugin.h"

namespace plumbline::plugin {
namespace {

using ::testing::HasSubstr;

plumbline_status Forward(const plumbline_call*) { return plumbline_ok(); }

// What a plug-in of this name comes to: empty where it is taken.
std::string ErrorOfName(const char* name) {
  static const char* const kNodes[] = {"swiglu"};
  static plumbline_kernel kernel = {};
  kernel.struct_bytes = sizeof(kernel);
  kernel.num_nodes = 1;
  kernel.nodes = kNodes;
  kernel.device = PLUMBLINE_CPU;
  kernel.type = PLUMBLINE_BF16;
  kernel.forward = &Forward;
  plumbline_plugin description = {};
  description.abi_version = PLUMBLINE_PLUGIN_ABI_VERSION;
  description.struct_bytes = sizeof(description);
  description.name = name;
  description.owner = "a test";
  description.identity = "1";
  description.num_kernels = 1;
  description.kernels = &kernel;
  const auto library = Library::FromDescription(&description, std::string(64, 'a'));
  return std::string(library.status().message());
}

TEST(LibraryTest, ANameIsAWordThatCompositionsCanSay) {
  EXPECT_EQ(ErrorOfName("a"), "");
  EXPECT_EQ(ErrorOfName(std::string(63, 'x').c_str()), "");
  const std::string accepted = "; accepted: 1 to 63 characters of [A-Za-z0-9._-]";
  const std::string long_name(64, 'x');
  EXPECT_EQ(ErrorOfName(long_name.c_str()),
            "plugin.name: is \"" + long_name + "\", 64 characters" + accepted);
  EXPECT_EQ(ErrorOfName(std::string(1000, 'x').c_str()),
            "plugin.name: is longer than 256 characters" + accepted);
  EXPECT_EQ(ErrorOfName("a b"), "plugin.name: is \"a b\", 3 characters" + accepted);
  EXPECT_EQ(ErrorOfName(""), "plugin.name: is \"\"" + accepted);
  EXPECT_EQ(ErrorOfName(nullptr), "plugin.name: is NULL" + accepted);
  EXPECT_THAT(ErrorOfName("a\n"), HasSubstr(accepted));
}

}  // namespace
}  // namespace plumbline::plugin
