#include "common/access/access_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/access/token.h"
#include "common/status.h"

namespace plumbline {
namespace {

AccessEntry Entry(const std::string& name, v1::Role role) {
  AccessEntry entry;
  entry.name = name;
  entry.role = role;
  entry.created = absl::FromUnixSeconds(1'700'000'000);
  return entry;
}

TEST(AccessFileTest, TokensAreKeptAsHashesOnly) {
  AccessFile file;
  const std::string token = AddAccess(Entry("ci", v1::ROLE_SUBMITTER), &file).value();
  const TokenParts parts = ParseToken(token).value();
  EXPECT_EQ(parts.id, file.entries[0].id);
  EXPECT_GE(parts.secret.size(), 43u);
  const std::string text = FormatAccessFile(file);
  EXPECT_FALSE(absl::StrContains(text, parts.secret));
  EXPECT_EQ(file.entries[0].sha256, HashTokenSecret(file.entries[0].salt, parts.secret));
  // Two of the same name and role share nothing.
  AccessFile other;
  ASSERT_TRUE(AddAccess(Entry("ci", v1::ROLE_SUBMITTER), &other).ok());
  EXPECT_NE(other.entries[0].salt, file.entries[0].salt);
  EXPECT_NE(other.entries[0].id, file.entries[0].id);
}

TEST(AccessFileTest, WhatIsWrittenIsRead) {
  const std::string path = absl::StrCat(testing::TempDir(), "/access.json");
  AccessFile file;
  ASSERT_TRUE(AddAccess(Entry("ci", v1::ROLE_VIEWER), &file).ok());
  AccessEntry certificate = Entry("node-1", v1::ROLE_WORKER);
  certificate.certificate = "node-1.cluster";
  certificate.expires = absl::FromUnixSeconds(1'800'000'000);
  EXPECT_EQ(AddAccess(certificate, &file).value(), "");
  ASSERT_TRUE(RevokeAccess("ci", absl::FromUnixSeconds(1'750'000'000), &file).ok());
  ASSERT_TRUE(SaveAccessFile(path, file).ok());
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const AccessFile read = LoadAccessFile(path).value();
  EXPECT_EQ(FormatAccessFile(read), FormatAccessFile(file));
  EXPECT_EQ(read.entries[0].revoked, absl::FromUnixSeconds(1'750'000'000));
  EXPECT_EQ(read.entries[1].certificate, "node-1.cluster");
  EXPECT_TRUE(absl::IsNotFound(LoadAccessFile(path + ".none").status()));
  EXPECT_TRUE(LoadAccessFile(path + ".none", /*may_be_missing=*/true).value().entries.empty());
}

TEST(AccessFileTest, NamesAreUniqueUntilRevoked) {
  AccessFile file;
  ASSERT_TRUE(AddAccess(Entry("ci", v1::ROLE_VIEWER), &file).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(AddAccess(Entry("ci", v1::ROLE_ADMIN), &file).status()));
  ASSERT_TRUE(RevokeAccess("ci", absl::FromUnixSeconds(1), &file).ok());
  EXPECT_TRUE(absl::IsNotFound(RevokeAccess("ci", absl::FromUnixSeconds(1), &file)));
  EXPECT_TRUE(AddAccess(Entry("ci", v1::ROLE_ADMIN), &file).ok());
  EXPECT_EQ(file.entries.size(), 1u);
  for (const char* name : {"", "a b", "a/b", "\n", "a\xe2\x80\xae"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(AddAccess(Entry(name, v1::ROLE_ADMIN), &file).status()));
  }
  for (const char* name : {" ", "node\n", "node\xe2\x80\xae",
                           "node\xc2\xa0"
                           "1"}) {
    AccessEntry node = Entry("node", v1::ROLE_WORKER);
    node.certificate = name;
    EXPECT_TRUE(absl::StartsWith(AddAccess(node, &file).status().message(), "certificate: "))
        << name;
  }
}

TEST(AccessFileTest, OtherFilesAreRefusedSayingWhere) {
  AccessFile file;
  ASSERT_TRUE(AddAccess(Entry("ci", v1::ROLE_VIEWER), &file).ok());
  const std::string good = FormatAccessFile(file);
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("{\"access\": 1}"),
        with("viewer", "root"), with("\"name\": \"ci\"", "\"name\": \"\""),
        with("\"name\"", "\"nome\""), with("\"salt\"", "\"pepper\""),
        with("\"sha256\": \"", "\"sha256\": \"x"), with("\"created\": \"", "\"created\": \"x")}) {
    const absl::Status status = ParseAccessFile(text, "F").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_TRUE(absl::StrContains(status.message(), "F")) << status;
  }
}

TEST(TokenTest, Parts) {
  for (const char* text :
       {"", "plumbline_", "plumbline_a", "plumbline_a_", "plumbline__b", "x_a_b"}) {
    EXPECT_FALSE(ParseToken(text).has_value()) << text;
  }
  EXPECT_EQ(ParseToken("plumbline_a_b_c")->secret, "b_c");
}

}  // namespace
}  // namespace plumbline
