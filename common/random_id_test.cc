#include "common/random_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace plumbline {
namespace {

using ::testing::MatchesRegex;

TEST(RandomIdTest, IdsAreResourceNamesAndDiffer) {
  std::set<std::string> ids;
  std::set<char> characters;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = RandomIds()->NewId();
    EXPECT_EQ(id.size(), 16u);
    EXPECT_THAT(id, MatchesRegex("[a-z][a-z2-7]*"));
    ids.insert(id);
    characters.insert(id.begin(), id.end());
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(characters.size(), 32u);
}

}  // namespace
}  // namespace plumbline
